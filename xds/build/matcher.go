package build

import (
	xdscore "github.com/cncf/xds/go/xds/core/v3"
	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	input "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
)

// onHeader makes a tree that looks a request header's value up in a table. A value that is not there, and a header that
// is absent, come to none.
func onHeader(c *collector, header string, table map[string]*match.Matcher_OnMatch, none *match.Matcher_OnMatch) *match.Matcher {
	return &match.Matcher{OnNoMatch: none, MatcherType: &match.Matcher_MatcherTree_{MatcherTree: &match.Matcher_MatcherTree{
		Input:    headerInput(c, header),
		TreeType: &match.Matcher_MatcherTree_ExactMatchMap{ExactMatchMap: &match.Matcher_MatcherTree_MatchMap{Map: table}},
	}}}
}

// onPrefix makes a tree that finds the longest prefix of a header's value in a table.
func onPrefix(c *collector, header string, table map[string]*match.Matcher_OnMatch, none *match.Matcher_OnMatch) *match.Matcher {
	return &match.Matcher{OnNoMatch: none, MatcherType: &match.Matcher_MatcherTree_{MatcherTree: &match.Matcher_MatcherTree{
		Input:    headerInput(c, header),
		TreeType: &match.Matcher_MatcherTree_PrefixMatchMap{PrefixMatchMap: &match.Matcher_MatcherTree_MatchMap{Map: table}},
	}}}
}

// ifHeader goes on to then where a header matches a regular expression as a whole, else to none.
func ifHeader(c *collector, header, regex string, then, none *match.Matcher_OnMatch) *match.Matcher {
	predicate := &match.Matcher_MatcherList_Predicate_SinglePredicate{Input: headerInput(c, header),
		Matcher: &match.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: &match.StringMatcher{
			MatchPattern: &match.StringMatcher_SafeRegex{SafeRegex: &match.RegexMatcher{Regex: regex, EngineType: &match.RegexMatcher_GoogleRe2{GoogleRe2: &match.RegexMatcher_GoogleRE2{}}}}}}}
	return &match.Matcher{OnNoMatch: none, MatcherType: &match.Matcher_MatcherList_{MatcherList: &match.Matcher_MatcherList{Matchers: []*match.Matcher_MatcherList_FieldMatcher{{
		Predicate: &match.Matcher_MatcherList_Predicate{MatchType: &match.Matcher_MatcherList_Predicate_SinglePredicate_{SinglePredicate: predicate}},
		OnMatch:   then,
	}}}}}
}

func headerInput(c *collector, header string) *xdscore.TypedExtensionConfig {
	return &xdscore.TypedExtensionConfig{Name: header, TypedConfig: c.any(&input.HttpRequestHeaderMatchInput{HeaderName: header})}
}

// then ends a match with an action.
func then(c *collector, name string, action proto.Message) *match.Matcher_OnMatch {
	return &match.Matcher_OnMatch{OnMatch: &match.Matcher_OnMatch_Action{Action: &xdscore.TypedExtensionConfig{Name: name, TypedConfig: c.any(action)}}}
}

// nest goes on matching.
func nest(m *match.Matcher) *match.Matcher_OnMatch {
	return &match.Matcher_OnMatch{OnMatch: &match.Matcher_OnMatch_Matcher{Matcher: m}}
}
