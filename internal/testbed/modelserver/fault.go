package modelserver

import (
	"fmt"
	"net/http"
)

// Fault is what is wrong with a Server. The zero Fault is none; fields may be combined.
type Fault struct {
	// Refuse resets all connections and refuses new ones: the server has crashed, and nothing has restarted it yet.
	Refuse bool
	// Hang accepts connections and requests, and answers none, not even for health or metrics: the process is stopped.
	// Once it is lifted, what is still connected is answered.
	Hang bool
	// Unhealthy answers 503 at /health and serves everything else.
	Unhealthy bool
	// Status answers each request for inference with this code, 400 to 599. 0 serves.
	Status int
	// ResetAfterChunks resets the connection of each generation after it has sent that many tokens, or has made them if
	// the answer is not streamed. 0 resets none.
	ResetAfterChunks int
	// Slow makes each step of the engine take that many times as long. 0 is as configured.
	Slow float64
}

func (f Fault) check() error {
	switch {
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("fault: status %d is none of 400 to 599", f.Status)
	case f.ResetAfterChunks < 0:
		return fmt.Errorf("fault: reset after %d chunks", f.ResetAfterChunks)
	case !(f.Slow >= 0 && f.Slow <= 1e6):
		return fmt.Errorf("fault: slow %v times, which is none of 0 to a million", f.Slow)
	}
	return nil
}

// SetFault replaces the fault from now on, for what is in flight as well. A Fault that makes no sense changes nothing.
func (s *Server) SetFault(f Fault) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("model server %s: %w", s.config.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	close(s.faultChanged)
	s.faultChanged = make(chan struct{})
	if f.Slow == 0 {
		f.Slow = 1
	}
	s.engine.setSlowdown(f.Slow)
	if !f.Refuse {
		return s.port.Listen()
	}
	err := s.port.Refuse()
	s.port.Reset()
	return err
}

// faultNow is the fault in force, and a channel that is closed when another is.
func (s *Server) faultNow() (Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault, s.faultChanged
}

// unhung waits while the fault is to hang, and returns the one in force then. If the request ends meanwhile, it ends the
// handler, without an answer.
func (s *Server) unhung(r *http.Request) Fault {
	for {
		f, changed := s.faultNow()
		if !f.Hang {
			return f
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}
