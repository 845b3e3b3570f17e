package world_test

import (
	"fmt"
	"testing"

	"github.com/meridian-mesh/meridian/world"
)

// BenchmarkCommitOneOfMany changes the verdict of one endpoint among many: what a fleet's health costs the loop.
func BenchmarkCommitOneOfMany(b *testing.B) {
	for _, endpoints := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			const perPool = 20
			pools := map[string]int{}
			for i := range endpoints / perPool {
				pools[fmt.Sprintf("model-%03d@r%d-1", i/10, i%10)] = perPool
			}
			var w world.Writer
			w.Commit([]world.Fact{world.PoliciesLoaded{Set: setOf("bench", pools)}})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Commit([]world.Fact{judged("model-007@r3-1", 11, world.Verdict(1+i%2))})
			}
		})
	}
}
