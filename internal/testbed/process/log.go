package process

import "sync"

// logSize is how many bytes of a process's log are kept: enough for what led to a failure.
const logSize = 64 << 10

// tail is a writer that keeps the last logSize bytes, so that a long run costs no more than a short one.
type tail struct {
	mu    sync.Mutex
	bytes []byte // under mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, p...)
	if over := len(t.bytes) - logSize; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.bytes)
}
