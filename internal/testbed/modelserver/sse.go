package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// event is one server-sent event. Either value or text is its data.
type event struct {
	name  string // "" for none
	value any
	text  string
}

// stream answers with server-sent events, each flushed as it comes.
func (s *Server) stream(d dialect, g *generation, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	send := func(events []event) {
		for _, e := range events {
			if err := e.write(w); err != nil {
				panic(http.ErrAbortHandler) // the caller is gone
			}
		}
		_ = http.NewResponseController(w).Flush()
	}
	send(d.begin(g))
	text := s.run(g, r, func(n int, word string) { send(d.token(g, n, word)) })
	send(d.end(g, text))
}

func (e event) write(w http.ResponseWriter) error {
	data := []byte(e.text)
	if e.value != nil {
		var err error
		if data, err = json.Marshal(e.value); err != nil {
			return err
		}
	}
	if e.name != "" {
		if _, err := fmt.Fprintf(w, "event: %s\n", e.name); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "data: %s\n\n", data)
	return err
}
