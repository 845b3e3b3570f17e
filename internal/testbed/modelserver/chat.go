package modelserver

import "slices"

// chat is the dialect of /v1/chat/completions.
type chat struct{}

type chatAnswer struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"`
	Created           int64        `json:"created"`
	Model             string       `json:"model"`
	SystemFingerprint string       `json:"system_fingerprint"`
	Choices           []chatChoice `json:"choices"`
	Usage             *usage       `json:"usage,omitempty"`
}

type chatChoice struct {
	Index        int          `json:"index"`
	Message      *chatMessage `json:"message,omitempty"` // not streamed
	Delta        *chatMessage `json:"delta,omitempty"`   // streamed
	FinishReason *string      `json:"finish_reason"`
}

type chatMessage struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

func (chat) prompt(q request) (content, *int, *failure) {
	if len(q.Messages) == 0 {
		return nil, nil, badRequest("messages must have at least one message.")
	}
	var all content
	for _, m := range q.Messages {
		all = slices.Concat(all, m.Content)
	}
	if q.MaxCompletionTokens != nil {
		return all, q.MaxCompletionTokens, nil
	}
	return all, q.MaxTokens, nil
}

func (chat) answer(g *generation, object string, choices ...chatChoice) chatAnswer {
	return chatAnswer{
		ID: "chatcmpl-" + g.id, Object: object, Created: g.created, Model: g.model, SystemFingerprint: g.name,
		Choices: append([]chatChoice{}, choices...),
	}
}

func (c chat) whole(g *generation, text string) any {
	a := c.answer(g, "chat.completion", chatChoice{
		Message: &chatMessage{Role: "assistant", Content: text}, FinishReason: &g.reason,
	})
	spent := g.spent()
	a.Usage = &spent
	return a
}

func (c chat) begin(g *generation) []event {
	return []event{{value: c.answer(g, "chat.completion.chunk", chatChoice{Delta: &chatMessage{Role: "assistant"}})}}
}

func (c chat) token(g *generation, n int, word string) []event {
	choice := chatChoice{Delta: &chatMessage{Content: word}}
	if n == g.outputTokens-1 {
		choice.FinishReason = &g.reason
	}
	return []event{{value: c.answer(g, "chat.completion.chunk", choice)}}
}

func (c chat) end(g *generation, _ string) []event {
	var events []event
	if g.usage {
		a := c.answer(g, "chat.completion.chunk")
		spent := g.spent()
		a.Usage = &spent
		events = append(events, event{value: a})
	}
	return append(events, event{text: "[DONE]"})
}
