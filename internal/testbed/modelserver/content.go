package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// content is whatever OpenAI's API allows where text is meant: a string, a list of strings, tokens or lists of tokens,
// parts with a text, messages with a content. Each text in it counts, in order.
type content []string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(data []byte) error {
	*c = nil
	return c.add(bytes.TrimSpace(data))
}

func (c *content) add(data []byte) error {
	switch {
	case len(data) == 0 || data[0] == 'n': // null
		return nil
	case data[0] == '"':
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*c = append(*c, text)
		return nil
	case data[0] == '[':
		return c.addList(data)
	case data[0] == '{':
		var part struct{ Text, Content content }
		if err := json.Unmarshal(data, &part); err != nil {
			return err
		}
		*c = append(append(*c, part.Text...), part.Content...)
		return nil
	default:
		return fmt.Errorf("expected text, not %.20s", data)
	}
}

func (c *content) addList(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) > 0 && list[0][0] >= '0' && list[0][0] <= '9' {
		*c = append(*c, strings.Repeat("tokn", len(list))) // tokens by their numbers, of four bytes as any
		return nil
	}
	for _, element := range list {
		if err := c.add(element); err != nil {
			return err
		}
	}
	return nil
}

// tokens is about how many tokens a tokenizer makes of it: one for four bytes.
func (c content) tokens() int {
	n := 0
	for _, text := range c {
		n += len(text)
	}
	return max(1, (n+3)/4)
}
