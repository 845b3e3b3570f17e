package cache

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func empty(v world.ViewpointID) *xds.Snapshot { return xds.NewSnapshot(v, nil) }

func TestWatchIsToldOfItsViewpointOnly(t *testing.T) {
	var c Cache
	told := 0
	w := c.Watch("gateway/a/b", func() { told++ })
	if c.Newest("gateway/a/b") != nil {
		t.Fatal("a snapshot before the first was published")
	}
	c.Publish(empty("gateway/a/c"), time.Time{})
	last := empty("gateway/a/b")
	c.Publish(last, time.Time{})
	if told != 1 || c.Newest("gateway/a/b").Snapshot != last {
		t.Errorf("told %d times, newest %v", told, c.Newest("gateway/a/b"))
	}
	w.Close()
	w.Close()
	c.Publish(empty("gateway/a/b"), time.Time{})
	if told != 1 {
		t.Error("told after Close")
	}
}

func TestRestoredIsStaleAndGivesWay(t *testing.T) {
	var c Cache
	old, fresh := empty("v"), empty("v")
	c.Restore(old, time.Unix(1, 0))
	if p := c.Newest("v"); !p.Stale || p.Snapshot != old || !p.Since.Equal(time.Unix(1, 0)) {
		t.Errorf("%+v", p)
	}
	c.Publish(fresh, time.Unix(2, 0))
	c.Restore(old, time.Unix(1, 0))
	if p := c.Newest("v"); p.Stale || p.Snapshot != fresh {
		t.Errorf("what is older took the place of what is newer: %+v", p)
	}
}

func TestConcurrentPublishAndWatch(t *testing.T) {
	var c Cache
	var published, watching sync.WaitGroup
	stop := make(chan struct{})
	published.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c.Publish(empty("v"), time.Now())
			}
		}
	})
	for range 8 {
		watching.Go(func() {
			var told atomic.Int64
			once := make(chan struct{})
			w := c.Watch("v", func() {
				if told.Add(1) == 1 {
					close(once)
				}
			})
			defer w.Close()
			<-once
			if c.Newest("v") == nil {
				t.Error("told without a snapshot")
			}
		})
	}
	watching.Wait()
	close(stop)
	published.Wait()
}
