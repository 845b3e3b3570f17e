package modelserver

// completion is the dialect of /v1/completions.
type completion struct{}

type completionAnswer struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	Created           int64              `json:"created"`
	Model             string             `json:"model"`
	SystemFingerprint string             `json:"system_fingerprint"`
	Choices           []completionChoice `json:"choices"`
	Usage             *usage             `json:"usage,omitempty"`
}

type completionChoice struct {
	Index        int     `json:"index"`
	Text         string  `json:"text"`
	FinishReason *string `json:"finish_reason"`
}

func (completion) prompt(q request) (content, *int, *failure) {
	if len(q.Prompt) == 0 {
		return nil, nil, badRequest("prompt is required.")
	}
	return q.Prompt, q.MaxTokens, nil
}

func (completion) answer(g *generation, choices ...completionChoice) completionAnswer {
	return completionAnswer{
		ID: "cmpl-" + g.id, Object: "text_completion", Created: g.created, Model: g.model, SystemFingerprint: g.name,
		Choices: append([]completionChoice{}, choices...),
	}
}

func (c completion) whole(g *generation, text string) any {
	a := c.answer(g, completionChoice{Text: text, FinishReason: &g.reason})
	spent := g.spent()
	a.Usage = &spent
	return a
}

func (completion) begin(*generation) []event { return nil }

func (c completion) token(g *generation, n int, word string) []event {
	choice := completionChoice{Text: word}
	if n == g.outputTokens-1 {
		choice.FinishReason = &g.reason
	}
	return []event{{value: c.answer(g, choice)}}
}

func (c completion) end(g *generation, _ string) []event {
	var events []event
	if g.usage {
		a := c.answer(g)
		spent := g.spent()
		a.Usage = &spent
		events = append(events, event{value: a})
	}
	return append(events, event{text: "[DONE]"})
}
