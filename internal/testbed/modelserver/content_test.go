package modelserver

import (
	"encoding/json"
	"testing"
)

// Whatever a request has where text is meant: it is text, or an error.
func FuzzContent(f *testing.F) {
	for _, seed := range []string{
		`"a"`, `["a","b"]`, `[1,2]`, `[[1],[2]]`, `{"content":[{"text":"a"}]}`, `null`, `[null]`, `[]`, `[[]]`, `true`, `-1`, `{"text":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c content
		if err := json.Unmarshal(data, &c); err == nil && c.tokens() < 1 {
			t.Errorf("%d tokens", c.tokens())
		}
	})
}
