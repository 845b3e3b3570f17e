package gpu

import (
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// labelSet are a node's labels, sorted by key. It is a labels.Labels that takes a quarter of a map's memory.
type labelSet []label

type label struct{ key, value text }

func labelsOf(all map[string]string) labelSet {
	set := make(labelSet, 0, len(all))
	for key, value := range all {
		set = append(set, label{textOf(key), textOf(value)})
	}
	slices.SortFunc(set, func(a, b label) int { return strings.Compare(a.key.String(), b.key.String()) })
	return set
}

// Lookup finds the value of a label.
func (s labelSet) Lookup(key string) (value string, exists bool) {
	i, ok := slices.BinarySearchFunc(s, key, func(l label, key string) int { return strings.Compare(l.key.String(), key) })
	if !ok {
		return "", false
	}
	return s[i].value.String(), true
}

// Has tells whether there is a label.
func (s labelSet) Has(key string) bool {
	_, ok := s.Lookup(key)
	return ok
}

// Get is the value of a label, empty where there is none.
func (s labelSet) Get(key string) string {
	value, _ := s.Lookup(key)
	return value
}

// first is the value of the first label of some that has one.
func (s labelSet) first(keys ...[]string) string {
	for _, key := range slices.Concat(keys...) {
		if value := s.Get(key); value != "" {
			return value
		}
	}
	return ""
}

// selector is a core.NodeSelector, ready to be asked of many nodes. A node matches if it matches one of the terms.
type selector []selectorTerm

type selectorTerm struct {
	labels labels.Selector
	names  []core.NodeSelectorRequirement
}

// selectorOf reads a node selector. A term that is empty or invalid matches nothing, as for the scheduler.
func selectorOf(s *core.NodeSelector) (all selector) {
	for _, t := range s.NodeSelectorTerms {
		if term, ok := termOf(t); ok {
			all = append(all, term)
		}
	}
	return all
}

var operators = map[core.NodeSelectorOperator]selection.Operator{
	core.NodeSelectorOpIn: selection.In, core.NodeSelectorOpNotIn: selection.NotIn, core.NodeSelectorOpExists: selection.Exists,
	core.NodeSelectorOpDoesNotExist: selection.DoesNotExist, core.NodeSelectorOpGt: selection.GreaterThan, core.NodeSelectorOpLt: selection.LessThan,
}

func termOf(t core.NodeSelectorTerm) (term selectorTerm, ok bool) {
	term = selectorTerm{labels.NewSelector(), t.MatchFields}
	for _, e := range t.MatchExpressions {
		r, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
		if err != nil {
			return selectorTerm{}, false
		}
		term.labels = term.labels.Add(*r)
	}
	for _, f := range t.MatchFields {
		if f.Key != "metadata.name" || f.Operator != core.NodeSelectorOpIn && f.Operator != core.NodeSelectorOpNotIn {
			return selectorTerm{}, false
		}
	}
	return term, len(t.MatchExpressions)+len(t.MatchFields) > 0
}

func (s selector) matches(name string, has labelSet) bool {
	return slices.ContainsFunc(s, func(t selectorTerm) bool {
		return t.labels.Matches(has) && !slices.ContainsFunc(t.names, func(f core.NodeSelectorRequirement) bool {
			return slices.Contains(f.Values, name) != (f.Operator == core.NodeSelectorOpIn)
		})
	})
}
