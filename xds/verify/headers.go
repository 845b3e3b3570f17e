package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
)

// certainty says how much is known of a header.
type certainty uint8

const (
	// anything: it may be absent or have any value, as the client likes. The zero value.
	anything certainty = iota
	// absent: it is not there.
	absent
	// exactly: it has one value, a constant of the configuration.
	exactly
	// named: it has one value, which stands for all that no rule and no table names; only equality may be asked.
	named
)

// value is what is known of one header.
type value struct {
	certainty certainty
	text      string
}

// headers are a request's headers as far as they are certain. A header that is not listed is the client's to choose.
type headers struct {
	listed map[string]value
	// stripped are prefixes of names whose headers are absent unless they are listed.
	stripped []string
}

func (h headers) get(name string) value {
	if v, ok := h.listed[name]; ok {
		return v
	}
	if slices.ContainsFunc(h.stripped, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return value{certainty: absent}
	}
	return value{}
}

// set overwrites a header. A text with a command operator can turn out to be anything.
func (h headers) set(name, text string) {
	v := value{exactly, text}
	if strings.Contains(text, "%") {
		v = value{}
	}
	h.listed[strings.ToLower(name)] = v
}

// strip removes all headers with a prefix.
func (h *headers) strip(prefix string) {
	maps.DeleteFunc(h.listed, func(name string, _ value) bool { return strings.HasPrefix(name, prefix) })
	h.stripped = append(h.stripped, prefix)
}

// key tells header states apart as far as the given headers go.
func (h headers) key(names []string) string {
	var b strings.Builder
	for _, name := range names {
		v := h.get(name)
		b.WriteByte('0' + byte(v.certainty))
		b.WriteString(v.text)
		b.WriteByte(0)
	}
	return b.String()
}

// mutate applies header mutations in their order.
func (h *headers) mutate(all []*mutation.HeaderMutation) error {
	for _, m := range all {
		switch a := m.GetAction().(type) {
		case *mutation.HeaderMutation_Remove:
			h.listed[strings.ToLower(a.Remove)] = value{certainty: absent}
		case *mutation.HeaderMutation_RemoveOnMatch_:
			prefix := a.RemoveOnMatch.GetKeyMatcher().GetPrefix()
			if prefix == "" {
				return fmt.Errorf("%w: headers removed by another match than a prefix", errNotAnalysable)
			}
			h.strip(prefix)
		case *mutation.HeaderMutation_Append:
			if !overwrites(a.Append) {
				return fmt.Errorf("%w: header %s is added to what is there", errNotAnalysable, a.Append.GetHeader().GetKey())
			}
			h.set(a.Append.GetHeader().GetKey(), a.Append.GetHeader().GetValue())
		default:
			return fmt.Errorf("%w: a header mutation of an unknown kind", errNotAnalysable)
		}
	}
	return nil
}
