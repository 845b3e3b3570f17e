package modelserver

import "slices"

// response is the dialect of /v1/responses.
type response struct{}

type responseAnswer struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	CreatedAt         int64             `json:"created_at"`
	Status            string            `json:"status"`
	IncompleteDetails *incompleteReason `json:"incomplete_details"`
	Model             string            `json:"model"`
	Output            []responseItem    `json:"output"`
	Usage             *responseUsage    `json:"usage"`
}

type incompleteReason struct {
	Reason string `json:"reason"`
}

type responseItem struct {
	Type    string         `json:"type"`
	ID      string         `json:"id"`
	Role    string         `json:"role"`
	Status  string         `json:"status"`
	Content []responsePart `json:"content"`
}

type responsePart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

type responseUsage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Total  int `json:"total_tokens"`
}

// responseEvent is any event of the stream; each type has some of the fields.
type responseEvent struct {
	Type         string          `json:"type"`
	Sequence     int             `json:"sequence_number"`
	Response     *responseAnswer `json:"response,omitempty"`
	ItemID       string          `json:"item_id,omitempty"`
	OutputIndex  *int            `json:"output_index,omitempty"`
	ContentIndex *int            `json:"content_index,omitempty"`
	Item         *responseItem   `json:"item,omitempty"`
	Part         *responsePart   `json:"part,omitempty"`
	Delta        string          `json:"delta,omitempty"`
	Text         string          `json:"text,omitempty"`
}

func (response) prompt(q request) (content, *int, *failure) {
	if len(q.Input) == 0 {
		return nil, nil, badRequest("input is required.")
	}
	return slices.Concat(q.Instructions, q.Input), q.MaxOutputTokens, nil
}

// unfinished is the answer before it has any output.
func (response) unfinished(g *generation) *responseAnswer {
	return &responseAnswer{
		ID: "resp_" + g.id, Object: "response", CreatedAt: g.created, Status: "in_progress", Model: g.model,
		Output: []responseItem{},
	}
}

func (r response) finished(g *generation, text string) *responseAnswer {
	a := r.unfinished(g)
	a.Status = r.status(g)
	if a.Status == "incomplete" {
		a.IncompleteDetails = &incompleteReason{Reason: "max_output_tokens"}
	}
	a.Output = append(a.Output, r.item(g, a.Status, r.part(text)))
	a.Usage = &responseUsage{Input: g.promptTokens, Output: g.outputTokens, Total: g.promptTokens + g.outputTokens}
	return a
}

func (response) status(g *generation) string {
	if g.reason == "length" {
		return "incomplete"
	}
	return "completed"
}

func (response) item(g *generation, status string, parts ...responsePart) responseItem {
	return responseItem{
		Type: "message", ID: "msg_" + g.id, Role: "assistant", Status: status, Content: append([]responsePart{}, parts...),
	}
}

func (response) part(text string) responsePart {
	return responsePart{Type: "output_text", Text: text, Annotations: []any{}}
}

func (r response) whole(g *generation, text string) any { return r.finished(g, text) }

// eventsBefore is how many events begin sends: the first token's is the next.
const eventsBefore = 4

func (r response) begin(g *generation) []event {
	item, part, zero := r.item(g, "in_progress"), r.part(""), 0
	return numbered(0,
		responseEvent{Type: "response.created", Response: r.unfinished(g)},
		responseEvent{Type: "response.in_progress", Response: r.unfinished(g)},
		responseEvent{Type: "response.output_item.added", OutputIndex: &zero, Item: &item},
		responseEvent{Type: "response.content_part.added", ItemID: item.ID, OutputIndex: &zero, ContentIndex: &zero, Part: &part},
	)
}

func (r response) token(g *generation, n int, word string) []event {
	zero := 0
	return numbered(eventsBefore+n, responseEvent{
		Type: "response.output_text.delta", ItemID: "msg_" + g.id, OutputIndex: &zero, ContentIndex: &zero, Delta: word,
	})
}

func (r response) end(g *generation, text string) []event {
	item, part, zero := r.item(g, r.status(g), r.part(text)), r.part(text), 0
	return numbered(eventsBefore+g.outputTokens,
		responseEvent{Type: "response.output_text.done", ItemID: item.ID, OutputIndex: &zero, ContentIndex: &zero, Text: text},
		responseEvent{Type: "response.content_part.done", ItemID: item.ID, OutputIndex: &zero, ContentIndex: &zero, Part: &part},
		responseEvent{Type: "response.output_item.done", OutputIndex: &zero, Item: &item},
		responseEvent{Type: "response." + r.status(g), Response: r.finished(g, text)},
	)
}

// numbered are events with the numbers from first on.
func numbered(first int, events ...responseEvent) []event {
	all := make([]event, len(events))
	for i, e := range events {
		e.Sequence = first + i
		all[i] = event{name: e.Type, value: e}
	}
	return all
}
