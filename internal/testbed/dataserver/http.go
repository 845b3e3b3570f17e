package dataserver

import (
	"io"
	"net/http"
)

func (s *Server) httpHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Served-By", s.config.Name)
		if s.unhealthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", s.echoHTTP)
	return mux
}

// echoHTTP receives a body whole before it answers, as HTTP/1.1 callers expect.
func (s *Server) echoHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	s.received.Add(int64(len(body)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Served-By", s.config.Name)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := w.Write(append([]byte(s.config.Name+"\n"), body...)); err == nil {
		s.served.Add(1)
	}
}

// maxMessage is the most that is received at once.
const maxMessage = 64 << 20
