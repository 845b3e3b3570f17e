package cache

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWatchSeesTheNewestAndNotTheStepsBetween(t *testing.T) {
	var c Cache
	w := c.Watch("gateway/a/b")
	defer w.Close()
	if w.Newest() != nil {
		t.Fatal("a snapshot before the first was published")
	}
	var last *xds.Snapshot
	for range 10 {
		last = &xds.Snapshot{Viewpoint: "gateway/a/b"}
		c.Publish(last, time.Time{})
	}
	<-w.Changed()
	if w.Newest().Snapshot != last {
		t.Error("not the newest snapshot")
	}
	select {
	case <-w.Changed():
		t.Error("poked again though nothing was published since")
	default:
	}
}

func TestPublishPokesOnlyItsViewpoint(t *testing.T) {
	var c Cache
	w := c.Watch("gateway/a/b")
	defer w.Close()
	c.Publish(&xds.Snapshot{Viewpoint: "gateway/a/c"}, time.Time{})
	select {
	case <-w.Changed():
		t.Error("poked for another viewpoint")
	default:
	}
}

func TestClosedWatchIsNotPoked(t *testing.T) {
	var c Cache
	w := c.Watch("v")
	w.Close()
	w.Close()
	c.Publish(&xds.Snapshot{Viewpoint: "v"}, time.Time{})
	select {
	case <-w.Changed():
		t.Error("poked after Close")
	default:
	}
}

func TestConcurrentPublishAndWatch(t *testing.T) {
	var c Cache
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			w := c.Watch("v")
			defer w.Close()
			<-w.Changed()
			if w.Newest() == nil {
				t.Error("poked without a snapshot")
			}
		})
	}
	stop := make(chan struct{})
	go func() { wg.Wait(); close(stop) }()
	for {
		select {
		case <-stop:
			return
		default:
			c.Publish(&xds.Snapshot{Viewpoint: "v"}, time.Now())
		}
	}
}
