package serve

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// publication makes one of words as snapshot takes them.
func publication(words ...string) *cache.Published {
	return &cache.Published{Snapshot: snapshot(words...)}
}

// those gives a list of nodes as a rollout asks for them.
func those(nodes ...string) func() []string { return func() []string { return nodes } }

func newRollout(share float64) *rollout { return &rollout{share: share, timeout: time.Second} }

// given is what each node is given, as a publication's place in a list.
func (r *rollout) given(nodes []string, of ...*cache.Published) []int {
	var all []int
	for _, n := range nodes {
		all = append(all, slices.Index(of, r.newest(n)))
	}
	return all
}

var start = time.Unix(1000, 0)

func TestStructureIsTriedByAFewFirst(t *testing.T) {
	nodes := []string{"a", "b", "c", "d"}
	old, new, newer := publication("C:a=1", "E:a=1"), publication("C:a=2", "E:a=1"), publication("C:a=2", "E:a=2")
	for name, c := range map[string]struct {
		then func(*rollout, string)
		want int // what the nodes that try nothing are given in the end: 0 old, 1 new, 2 newer
	}{
		"nothing is heard of the canary yet":      {func(*rollout, string) {}, 0},
		"the canary accepts":                      {func(r *rollout, canary string) { r.accept(canary, new) }, 1},
		"another accepts what it had":             {func(r *rollout, canary string) { r.accept(other(nodes, canary), old) }, 0},
		"the canary accepts what it had before":   {func(r *rollout, canary string) { r.accept(canary, old) }, 0},
		"the canary says nothing for too long":    {func(r *rollout, _ string) { r.tick(start.Add(time.Second)) }, 1},
		"the canary has time left":                {func(r *rollout, _ string) { r.tick(start.Add(time.Second - 1)) }, 0},
		"endpoints change meanwhile, it accepts":  {func(r *rollout, canary string) { r.offer(newer, those(nodes...), start); r.accept(canary, newer) }, 2},
		"endpoints change after it had accepted?": {func(r *rollout, canary string) { r.accept(canary, new); r.offer(newer, those(nodes...), start) }, 2},
		"the canary refuses":                      {func(r *rollout, canary string) { r.refuse(canary, new.Snapshot, bad(new), "no", start) }, 0},
		"one that tries nothing refuses":          {func(r *rollout, canary string) { r.refuse(other(nodes, canary), new.Snapshot, bad(new), "no", start) }, 0},
		"the canary goes, another tries":          {func(r *rollout, canary string) { r.leave(canary, those(without(nodes, canary)...), start) }, 0},
		"all go, nobody has refused":              {func(r *rollout, canary string) { r.leave(canary, those(), start) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(0.25)
			r.offer(old, those(nodes...), start)
			if got := r.given(nodes, old, new); !slices.Equal(got, []int{0, 0, 0, 0}) {
				t.Fatalf("the first goes to %v", got)
			}
			r.accept("a", old)
			r.offer(new, those(nodes...), start)
			canary := slices.Index(r.given(nodes, old, new), 1)
			if trying := len(slices.DeleteFunc(r.given(nodes, old, new), func(i int) bool { return i == 0 })); canary < 0 || trying != 1 {
				t.Fatalf("%d nodes try it", trying)
			}
			c.then(r, nodes[canary])
			rest := "never seen"
			if got := r.given([]string{rest}, old, new, newer); got[0] != c.want {
				t.Errorf("others are given %d, want %d", got[0], c.want)
			}
		})
	}
}

func other(nodes []string, not string) string { return without(nodes, not)[0] }

func without(nodes []string, not string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == not })
}

func bad(p *cache.Published) []*xds.Resource {
	return []*xds.Resource{p.Snapshot.Resource(xds.TypeCluster, "a")}
}

func TestEndpointsGoToAllAtOnce(t *testing.T) {
	r := newRollout(0.25)
	old, new := publication("C:a=1", "E:a=1"), publication("C:a=1", "E:a=2")
	r.offer(old, those("a", "b"), start)
	r.offer(new, those("a", "b"), start)
	if got := r.given([]string{"a", "b"}, old, new); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("given %v", got)
	}
}

func TestWhatWasRefusedIsNotTriedAgain(t *testing.T) {
	first, broken := publication("C:a=1", "E:a=1"), publication("C:a=2", "E:a=1")
	for name, c := range map[string]struct {
		next  *cache.Published
		tried bool
	}{
		"the same again":                      {broken, false},
		"the same with other endpoints":       {publication("C:a=2", "E:a=2"), false},
		"the same with something else beside": {publication("C:a=2", "C:b=1", "E:a=1"), false},
		"mended":                              {publication("C:a=3", "E:a=1"), true},
		"without it":                          {publication("C:b=1", "E:a=1"), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(0.5)
			r.offer(first, those("a"), start)
			r.accept("a", first)
			r.offer(broken, those("a"), start)
			q := r.refuse("a", broken.Snapshot, bad(broken), "no such field", start)
			if q == nil || q.Node != "a" || q.Reason != "no such field" || q.Good != first.Snapshot || q.Tried != broken.Snapshot {
				t.Fatalf("quarantine %+v", q)
			}
			r.offer(c.next, those("a"), start)
			if got := r.newest("a") == c.next; got != c.tried {
				t.Errorf("tried: %v, want %v", got, c.tried)
			}
		})
	}
}

// A proxy that refuses what others have accepted must not take it from them.
func TestOneProxysRefusalDoesNotTakeFromOthersWhatTheyAccepted(t *testing.T) {
	r := newRollout(0.5)
	first, second := publication("C:a=1"), publication("C:a=1", "E:a=1")
	r.offer(first, those("a", "b"), start)
	r.accept("a", first)
	r.offer(second, those("a", "b"), start)
	r.accept("a", second)
	if q := r.refuse("b", second.Snapshot, nil, "no", start); q != nil || r.newest("a") != second {
		t.Errorf("quarantine %+v", q)
	}
	// But where nobody has accepted it yet, it is withdrawn.
	third := publication("C:a=1", "E:a=2")
	r.offer(third, those("a", "b"), start)
	if q := r.refuse("b", third.Snapshot, nil, "no", start); q == nil || r.newest("a") != second {
		t.Errorf("quarantine %+v, given %v", q, r.newest("a"))
	}
}

// What kills those that try it looks like silence: the next is asked, and after a few it is withdrawn.
func TestConfigurationThatCanariesDoNotSurviveIsWithdrawn(t *testing.T) {
	nodes := []string{"a", "b", "c", "d", "e"}
	r := newRollout(0.1)
	first, deadly := publication("C:a=1"), publication("C:a=2")
	r.offer(first, those(nodes...), start)
	r.accept("a", first)
	r.offer(deadly, those(nodes...), start)
	for i := range lostMost {
		canary := nodes[slices.Index(r.given(nodes, first, deadly), 1)]
		nodes = without(nodes, canary)
		q, moved := r.leave(canary, those(nodes...), start)
		if !moved || (q != nil) != (i == lostMost-1) {
			t.Fatalf("canary %d went: quarantine %+v", i, q)
		}
	}
	if got := r.given(nodes, first, deadly); !slices.Equal(got, []int{0, 0}) {
		t.Errorf("given %v", got)
	}
}

// Whatever happens, a node is given something that was published, and never what is quarantined.
func TestRolloutNeverGivesWhatIsQuarantined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRollout(rapid.Float64Range(0.01, 1).Draw(t, "share"))
		nodes := []string{"a", "b", "c", "d", "e", "f"}
		first := publication("C:a=0", "E:a=0")
		r.offer(first, those(nodes...), start)
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			node := rapid.SampledFrom(nodes).Draw(t, "node")
			given := r.newest(node)
			switch rapid.SampledFrom([]string{"offer", "accept", "refuse", "leave", "tick"}).Draw(t, "what") {
			case "offer":
				p := publication(fmt.Sprintf("C:a=%d", rapid.IntRange(0, 4).Draw(t, "cluster")), fmt.Sprintf("E:a=%d", rapid.IntRange(0, 4).Draw(t, "endpoint")))
				r.offer(p, those(nodes...), now)
			case "accept":
				r.accept(node, given)
			case "refuse":
				if q := r.refuse(node, given.Snapshot, bad(given), "no", now); q != nil && r.newest(node) == given {
					t.Fatalf("%s is given again what it refused", node)
				}
			case "leave":
				r.leave(node, those(without(nodes, node)...), now)
			case "tick":
				now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)
				r.tick(now)
			}
			for _, n := range nodes {
				p := r.newest(n)
				if p == nil {
					t.Fatalf("%s is given nothing", n)
				}
				if q := r.quarantine; q != nil && p.Snapshot == q.Tried {
					t.Fatalf("%s is given what is quarantined", n)
				}
			}
		}
	})
}
