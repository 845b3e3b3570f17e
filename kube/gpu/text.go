package gpu

import "unique"

// text is a string of which there is one copy, however many pods and nodes have it.
type text struct{ handle unique.Handle[string] }

func textOf(s string) text {
	if s == "" {
		return text{}
	}
	return text{unique.Make(s)}
}

func (t text) String() string {
	if t == (text{}) {
		return ""
	}
	return t.handle.Value()
}
