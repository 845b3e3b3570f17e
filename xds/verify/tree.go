package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	input "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

var errNotAnalysable = errors.New("cannot be followed")

// node is a match tree, read once so that it can be walked for many requests.
type node struct {
	// action, with end, is what the request comes to; nil for nothing, which Envoy answers itself.
	action *anypb.Any
	end    bool
	// tests are tried in order.
	tests []test
	none  *node
}

// test looks at one header.
type test struct {
	header string
	// exact and prefixes are a table; the longest prefix comes first.
	exact    map[string]*node
	values   []string // those of exact, sorted
	prefixes []prefixed
	// pattern and then are a predicate, unless pattern is nil. present says that it asks only whether there is a value.
	pattern *regexp.Regexp
	present bool
	then    *node
}

type prefixed struct {
	prefix string
	to     *node
}

// readTree reads a matcher.
func readTree(m *match.Matcher) (*node, error) {
	none, err := readMatch(m.GetOnNoMatch())
	if err != nil {
		return nil, err
	}
	n := &node{none: none}
	switch kind := m.GetMatcherType().(type) {
	case *match.Matcher_MatcherTree_:
		t, err := readTable(kind.MatcherTree)
		n.tests = []test{t}
		return n, err
	case *match.Matcher_MatcherList_:
		for _, f := range kind.MatcherList.GetMatchers() {
			t, err := readPredicate(f)
			if err != nil {
				return nil, err
			}
			n.tests = append(n.tests, t)
		}
		return n, nil
	}
	return nil, fmt.Errorf("%w: a matcher of an unknown kind", errNotAnalysable)
}

// readMatch reads what a match leads to.
func readMatch(o *match.Matcher_OnMatch) (*node, error) {
	switch {
	case o == nil:
		return &node{end: true}, nil
	case o.GetMatcher() != nil:
		return readTree(o.GetMatcher())
	case o.GetAction() != nil:
		return &node{end: true, action: o.GetAction().GetTypedConfig()}, nil
	}
	return nil, fmt.Errorf("%w: a match that leads nowhere", errNotAnalysable)
}

func readTable(t *match.Matcher_MatcherTree) (test, error) {
	header, err := headerOf(t.GetInput())
	if err != nil {
		return test{}, err
	}
	out := test{header: header, exact: map[string]*node{}}
	for v, o := range t.GetExactMatchMap().GetMap() {
		if out.exact[v], err = readMatch(o); err != nil {
			return test{}, err
		}
	}
	for p, o := range t.GetPrefixMatchMap().GetMap() {
		to, err := readMatch(o)
		if err != nil {
			return test{}, err
		}
		out.prefixes = append(out.prefixes, prefixed{p, to})
	}
	out.values = slices.Sorted(maps.Keys(out.exact))
	slices.SortFunc(out.prefixes, func(a, b prefixed) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), strings.Compare(a.prefix, b.prefix))
	})
	return out, nil
}

func readPredicate(f *match.Matcher_MatcherList_FieldMatcher) (test, error) {
	single := f.GetPredicate().GetSinglePredicate()
	header, err := headerOf(single.GetInput())
	if err != nil {
		return test{}, err
	}
	expression := ""
	switch p := single.GetValueMatch().GetMatchPattern().(type) {
	case *match.StringMatcher_Exact:
		expression = regexp.QuoteMeta(p.Exact)
	case *match.StringMatcher_Prefix:
		expression = regexp.QuoteMeta(p.Prefix) + `(?s:.*)`
	case *match.StringMatcher_SafeRegex:
		expression = p.SafeRegex.GetRegex()
	default:
		return test{}, fmt.Errorf("%w: a string match of an unknown kind", errNotAnalysable)
	}
	pattern, err := regexp.Compile(`\A(?:` + expression + `)\z`)
	if err != nil {
		return test{}, fmt.Errorf("%w: regular expression %q", errNotAnalysable, expression)
	}
	then, err := readMatch(f.GetOnMatch())
	return test{header: header, pattern: pattern, present: expression == ".+", then: then}, err
}

// headerOf is the request header that a match looks at.
func headerOf(in *xdscore.TypedExtensionConfig) (string, error) {
	var header input.HttpRequestHeaderMatchInput
	if !unpackAny(in.GetTypedConfig(), &header) {
		return "", fmt.Errorf("%w: a match on %s", errNotAnalysable, typeOf(in.GetTypedConfig().GetTypeUrl()))
	}
	return strings.ToLower(header.GetHeaderName()), nil
}

// leaves calls leaf with every action that a request can come to, in a fixed order, and says whether it is sure to come
// to one. Where a branch may come to nothing, what follows it is taken as well: Envoy goes on there.
func (n *node) leaves(h headers, leaf func(*anypb.Any) error) (sure bool, err error) {
	if n.end {
		if n.action == nil {
			return false, nil
		}
		return true, leaf(n.action)
	}
	for i := range n.tests {
		sure, err := n.tests[i].leaves(h, leaf)
		if sure || err != nil {
			return sure, err
		}
	}
	return n.none.leaves(h, leaf)
}

// leaves follows a test where it may hold.
func (t *test) leaves(h headers, leaf func(*anypb.Any) error) (sure bool, err error) {
	v := h.get(t.header)
	switch {
	case v.certainty == absent:
		return false, nil
	case v.certainty == anything:
		return false, t.every(func(to *node) error {
			_, err := to.leaves(h, leaf)
			return err
		})
	case t.pattern == nil:
		if v.certainty == named && len(t.prefixes) > 0 {
			return false, fmt.Errorf("%w: values of %s are told apart by prefix", errNotAnalysable, t.header)
		}
		return t.find(v.text, h, leaf)
	case v.certainty == named && !t.present:
		return false, fmt.Errorf("%w: values of %s are told apart by %s", errNotAnalysable, t.header, t.pattern)
	case t.pattern.MatchString(v.text):
		return t.then.leaves(h, leaf)
	}
	return false, nil
}

// find looks a value up in the table.
func (t *test) find(v string, h headers, leaf func(*anypb.Any) error) (sure bool, err error) {
	if to, ok := t.exact[v]; ok {
		return to.leaves(h, leaf)
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(v, p.prefix) {
			if sure, err = p.to.leaves(h, leaf); sure || err != nil {
				return sure, err
			}
		}
	}
	return false, nil
}

// every calls to with all that the test can lead to, in a fixed order.
func (t *test) every(to func(*node) error) error {
	if t.pattern != nil {
		return to(t.then)
	}
	for _, v := range t.values {
		if err := to(t.exact[v]); err != nil {
			return err
		}
	}
	for _, p := range t.prefixes {
		if err := to(p.to); err != nil {
			return err
		}
	}
	return nil
}

// values collects the values that a tree looks for, by header.
func (n *node) values(into map[string]map[string]bool) {
	if n.end {
		return
	}
	for i := range n.tests {
		t := &n.tests[i]
		if into[t.header] == nil {
			into[t.header] = map[string]bool{}
		}
		for v := range t.exact {
			into[t.header][v] = true
		}
		_ = t.every(func(to *node) error { to.values(into); return nil }) // nothing in it fails
	}
	n.none.values(into)
}
