package serve

import (
	"fmt"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// crowd joins ten clients, and gives back which of them got a response first that only one was to get.
func crowd(t *testing.T, refuse string, config Config) ([]*client, *Server, *cache.Cache) {
	t.Helper()
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	config.Cache = c
	s, ads := running(t, config)
	var all []*client
	for i := range 10 {
		all = append(all, join(t, ads, fmt.Sprintf("proxy-%d", i), refuse, cds))
		all[i].gets("C a=1")
	}
	until(t, "all are synced", func() bool { return count(s, Synced) == 10 })
	return all, s, c
}

func count(s *Server, state State) (n int) {
	for _, p := range s.Status() {
		if p.State == state {
			n++
		}
	}
	return n
}

// first waits until one of the clients has a response.
func first(t *testing.T, all []*client) (canary *client, rest []*client, got string) {
	t.Helper()
	until(t, "somebody has it", func() bool {
		for i, c := range all {
			select {
			case got = <-c.came:
				canary, rest = c, append(append([]*client{}, all[:i]...), all[i+1:]...)
				return true
			default:
			}
		}
		return false
	})
	return canary, rest, got
}

func TestNewConfigurationGoesToAllOnceACanaryHasAcceptedIt(t *testing.T) {
	all, _, c := crowd(t, "", Config{CanaryTimeout: time.Hour})
	c.Publish(snapshot("C:a=2"), time.Now())
	for _, p := range all {
		p.gets("C a=2")
	}
}

func TestWhatACanaryRefusesReachesNobodyElse(t *testing.T) {
	quarantines := make(chan Quarantine, 1)
	all, s, c := crowd(t, "a=2", Config{CanaryTimeout: time.Hour, OnQuarantine: func(v world.ViewpointID, q Quarantine) {
		if v != "gateway/r/c" {
			t.Errorf("quarantine for %s", v)
		}
		quarantines <- q
	}})
	c.Publish(snapshot("C:a=2"), time.Now())
	canary, rest, got := first(t, all)
	if got != "C a=2" {
		t.Fatalf("got %q", got)
	}
	q := <-quarantines
	if q.Reason != "cluster a: no such field" || len(q.Refused) != 1 || q.Refused[0].Name != "a" {
		t.Errorf("quarantine %+v", q)
	}
	canary.gets("C a=1") // the last good one again
	until(t, "the canary is well again", func() bool { return count(s, Synced) == 10 })
	c.Publish(snapshot("C:a=2", "E:a=2"), time.Now()) // not mended, so not tried
	for _, p := range append(rest, canary) {
		p.getsNothing()
	}
	c.Publish(snapshot("C:a=3"), time.Now())
	for _, p := range append(rest, canary) {
		p.gets("C a=3")
	}
}

func TestCanaryThatSaysNothingHoldsNobodyUpForLong(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	_, ads := running(t, Config{Cache: c, CanaryTimeout: 50 * time.Millisecond, CanaryShare: 0.99})
	awake := join(t, ads, "awake", "", cds)
	awake.gets("C a=1")
	silent := delta(t, ads, nodeOf("silent"))
	if _, err := silent.Recv(); err != nil { // and says nothing to it
		t.Fatal(err)
	}
	c.Publish(snapshot("C:a=2"), time.Now())
	awake.gets("C a=2")
	late := join(t, ads, "late", "", cds)
	until(t, "who comes later has it too", func() bool {
		select {
		case got := <-late.came:
			return got == "C a=2"
		default:
			return false
		}
	})
}

func TestEndpointsDoNotWaitForCanaries(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("E:a=1"), time.Now())
	_, ads := running(t, Config{Cache: c, CanaryTimeout: time.Hour})
	one, other := join(t, ads, "one", "", xds.TypeEndpoint), delta(t, ads, nodeOf("silent"))
	one.gets("C a=1")
	if _, err := other.Recv(); err != nil {
		t.Fatal(err)
	}
	c.Publish(snapshot("E:a=2"), time.Now())
	one.gets("C a=2")
}
