package verify

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	input "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

var errNotAnalysable = errors.New("cannot be followed")

// headers are a request's headers as far as they are known. A header in free can have any value: every branch on it
// is taken.
type headers struct {
	known map[string]string
	free  map[string]bool
}

// leaves calls leaf with every action that a request can come to in a tree. Coming to nothing is leaf(nil).
func leaves(m *match.Matcher, h headers, leaf func(*anypb.Any) error) error {
	switch kind := m.GetMatcherType().(type) {
	case *match.Matcher_MatcherTree_:
		return treeLeaves(kind.MatcherTree, m.GetOnNoMatch(), h, leaf)
	case *match.Matcher_MatcherList_:
		return listLeaves(kind.MatcherList, m.GetOnNoMatch(), h, leaf)
	}
	return fmt.Errorf("%w: a matcher of an unknown kind", errNotAnalysable)
}

// onMatch follows what a match leads to.
func onMatch(o *match.Matcher_OnMatch, h headers, leaf func(*anypb.Any) error) error {
	switch {
	case o == nil:
		return leaf(nil)
	case o.GetMatcher() != nil:
		return leaves(o.GetMatcher(), h, leaf)
	case o.GetAction() != nil:
		return leaf(o.GetAction().GetTypedConfig())
	}
	return fmt.Errorf("%w: a match that leads nowhere", errNotAnalysable)
}

func treeLeaves(t *match.Matcher_MatcherTree, none *match.Matcher_OnMatch, h headers, leaf func(*anypb.Any) error) error {
	header, err := headerOf(t.GetInput())
	if err != nil {
		return err
	}
	exact, prefixes := t.GetExactMatchMap().GetMap(), t.GetPrefixMatchMap().GetMap()
	if t.GetExactMatchMap() == nil && t.GetPrefixMatchMap() == nil {
		return fmt.Errorf("%w: a tree of an unknown kind", errNotAnalysable)
	}
	if h.free[header] {
		for _, table := range []map[string]*match.Matcher_OnMatch{exact, prefixes} {
			for _, to := range table {
				if err := onMatch(to, h, leaf); err != nil {
					return err
				}
			}
		}
		return onMatch(none, h, leaf)
	}
	value, present := h.known[header]
	if !present {
		return onMatch(none, h, leaf)
	}
	if to, ok := exact[value]; ok {
		return onMatch(to, h, leaf)
	}
	if to := longest(prefixes, value); to != nil {
		return onMatch(to, h, leaf)
	}
	return onMatch(none, h, leaf)
}

func longest(prefixes map[string]*match.Matcher_OnMatch, value string) *match.Matcher_OnMatch {
	var found *match.Matcher_OnMatch
	best := -1
	for p, to := range prefixes {
		if strings.HasPrefix(value, p) && len(p) > best {
			found, best = to, len(p)
		}
	}
	return found
}

func listLeaves(l *match.Matcher_MatcherList, none *match.Matcher_OnMatch, h headers, leaf func(*anypb.Any) error) error {
	for _, m := range l.GetMatchers() {
		holds, sure, err := predicate(m.GetPredicate(), h)
		if err != nil {
			return err
		}
		if holds || !sure {
			if err := onMatch(m.GetOnMatch(), h, leaf); err != nil {
				return err
			}
		}
		if holds && sure {
			return nil
		}
	}
	return onMatch(none, h, leaf)
}

// predicate says whether a predicate holds, and whether that is sure.
func predicate(p *match.Matcher_MatcherList_Predicate, h headers) (holds, sure bool, err error) {
	single := p.GetSinglePredicate()
	if single == nil || single.GetCustomMatch() != nil {
		return false, false, fmt.Errorf("%w: a predicate of an unknown kind", errNotAnalysable)
	}
	header, err := headerOf(single.GetInput())
	if err != nil || h.free[header] {
		return false, false, err
	}
	value, present := h.known[header]
	if !present {
		return false, true, nil
	}
	holds, err = stringMatches(single.GetValueMatch(), value)
	return holds, true, err
}

func stringMatches(m *match.StringMatcher, value string) (bool, error) {
	if m.GetIgnoreCase() {
		return false, fmt.Errorf("%w: a match that ignores case", errNotAnalysable)
	}
	switch p := m.GetMatchPattern().(type) {
	case *match.StringMatcher_Exact:
		return value == p.Exact, nil
	case *match.StringMatcher_Prefix:
		return strings.HasPrefix(value, p.Prefix), nil
	case *match.StringMatcher_SafeRegex:
		re, err := regexp.Compile(`^(?:` + p.SafeRegex.GetRegex() + `)$`)
		if err != nil {
			return false, fmt.Errorf("%w: regular expression %q", errNotAnalysable, p.SafeRegex.GetRegex())
		}
		return re.MatchString(value), nil
	}
	return false, fmt.Errorf("%w: a string match of an unknown kind", errNotAnalysable)
}

// headerOf is the request header that a match looks at.
func headerOf(in *xdscore.TypedExtensionConfig) (string, error) {
	var header input.HttpRequestHeaderMatchInput
	if !unpackAny(in.GetTypedConfig(), &header) {
		return "", fmt.Errorf("%w: a match on %s", errNotAnalysable, typeOf(in.GetTypedConfig().GetTypeUrl()))
	}
	return strings.ToLower(header.GetHeaderName()), nil
}

// valuesIn collects the values that a tree looks for, by header.
func valuesIn(m *match.Matcher, into map[string]map[string]bool) {
	var each func(*match.Matcher_OnMatch)
	each = func(o *match.Matcher_OnMatch) {
		if o.GetMatcher() != nil {
			valuesIn(o.GetMatcher(), into)
		}
	}
	each(m.GetOnNoMatch())
	for _, f := range m.GetMatcherList().GetMatchers() {
		each(f.GetOnMatch())
	}
	t := m.GetMatcherTree()
	if t == nil {
		return
	}
	header, err := headerOf(t.GetInput())
	if err != nil {
		return // the walk reports it
	}
	if into[header] == nil {
		into[header] = map[string]bool{}
	}
	for _, table := range []map[string]*match.Matcher_OnMatch{t.GetExactMatchMap().GetMap(), t.GetPrefixMatchMap().GetMap()} {
		for value, to := range table {
			into[header][value] = true
			each(to)
		}
	}
}
