package plan

import (
	"iter"
	"math/bits"
)

// ruleSet is a set of residency rules by their place in Set.Residencies, a bit each. Sets of one compiler have equal
// length.
type ruleSet []uint64

func newRuleSet(rules int) ruleSet { return make(ruleSet, (rules+63)/64) }

func (s ruleSet) add(rule int) { s[rule/64] |= 1 << (rule % 64) }

// and is the rules in both.
func (s ruleSet) and(o ruleSet) ruleSet {
	both := make(ruleSet, len(s))
	for i := range s {
		both[i] = s[i] & o[i]
	}
	return both
}

func (s ruleSet) empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// all yields the rules in order.
func (s ruleSet) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(64*i + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// key is the set as a key of maps.
func (s ruleSet) key() string {
	bytes := make([]byte, 0, 8*len(s))
	for _, word := range s {
		for shift := 0; shift < 64; shift += 8 {
			bytes = append(bytes, byte(word>>shift))
		}
	}
	return string(bytes)
}
