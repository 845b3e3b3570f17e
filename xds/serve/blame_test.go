package serve

import (
	"slices"
	"testing"
)

// Envoy names what it refuses; what it does not name it has taken.
func TestOnlyWhatTheReasonNamesIsBlamed(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		want   []string
	}{
		"one":                          {"Error adding/updating cluster(s) pool/a/x: no such field", []string{"pool/a/x"}},
		"two":                          {"Error adding/updating cluster(s) pool/a/x: bad, pool/b: bad", []string{"pool/a/x", "pool/b"}},
		"none is all":                  {"Proto constraint validation failed", []string{"pool/a", "pool/a/x", "pool/b"}},
		"a longer name is not a part":  {"cluster pool/a/x is bad", []string{"pool/a/x"}},
		"a name at the end":            {"bad: pool/b", []string{"pool/b"}},
		"a part first, the name later": {"not pool/abc but pool/a", []string{"pool/a"}},
		"a name that ends a sentence":  {"I do not like pool/b.", []string{"pool/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range blamed(slices.Collect(snapshot("C:pool/a=1", "C:pool/a/x=1", "C:pool/b=1").All()), c.reason) {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("blamed %q, want %q", got, c.want)
			}
		})
	}
}
