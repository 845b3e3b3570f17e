package policies

import (
	"fmt"
	"strings"
)

// File is one policy file: a name for diagnostics and its bytes, with one or many YAML documents.
type File struct {
	Name  string
	Bytes []byte
}

// Diagnostic is one thing that is wrong with a policy file: where, what, and what to do.
type Diagnostic struct {
	// File, Line and Column say where; Line and Column are 1-based, 0 where the whole file is meant.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Object is the kind and name, as "Service/llama"; empty before they are known.
	Object string `json:"object,omitempty"`
	// Field is the path within the document, as "spec.pools[0].cluster".
	Field string `json:"field,omitempty"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
	// Nearest is the valid name closest to what was written, where there is one.
	Nearest string `json:"nearest,omitempty"`
}

// String is the one-line form, as compilers print: file:line:column: object: field: message.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Column)
	}
	for _, part := range []string{d.Object, d.Field, d.Message} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if d.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", d.Nearest)
	}
	return b.String()
}

// Diagnostics is everything that is wrong with a run's files, sorted by file, line and column. As an error it is
// all of them, a line each.
type Diagnostics []Diagnostic

// Error lists every diagnostic, a line each.
func (d Diagnostics) Error() string {
	lines := make([]string, len(d))
	for i, one := range d {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}
