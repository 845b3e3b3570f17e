package stub

import (
	"maps"
	"sync"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// object is what a collection holds.
type object interface {
	runtime.Object
	meta.Object
}

// kind is what one resource of the API is called.
type kind struct {
	group, version, resource, name string
	namespaced                     bool
}

func (k kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.name}
}

// collection are the objects of one kind: those that were there from the start are made when they are asked for.
type collection struct {
	// Set once.
	kind
	count int
	make  func(i int) object

	mu      sync.Mutex
	version int64          // under mu: of the newest change
	changed map[int]object // under mu: those that are no longer as they were made
	history []event        // under mu: all changes, the oldest first
	pulse   chan struct{}  // under mu: closed and made anew at each change
}

// event is a change of one object.
type event struct {
	version int64
	index   int
	object  object
}

// firstVersion is the resource version of what was there from the start.
const firstVersion = 1000000

func newCollection(k kind, count int, of func(i int) object) *collection {
	return &collection{kind: k, count: count, make: of, version: firstVersion, changed: map[int]object{}, pulse: make(chan struct{})}
}

// put replaces an object by a changed one, which nobody changes any more, at a version.
func (c *collection) put(i int, o object, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version, c.changed[i] = version, o
	c.history = append(c.history, event{version, i, o})
	close(c.pulse)
	c.pulse = make(chan struct{})
}

// snapshot is the state at a version: those objects that have been changed. Without one it is the state of now.
func (c *collection) snapshot(at int64) (version int64, changed map[int]object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at == 0 || at > c.version {
		return c.version, maps.Clone(c.changed)
	}
	changed = map[int]object{}
	for _, e := range c.history {
		if e.version <= at {
			changed[e.index] = e.object
		}
	}
	return at, changed
}

// get is an object as of a snapshot.
func (c *collection) get(i int, changed map[int]object) object {
	if o, ok := changed[i]; ok {
		return o
	}
	return c.make(i)
}

// now is an object as it is.
func (c *collection) now(i int) object {
	c.mu.Lock()
	o, ok := c.changed[i]
	c.mu.Unlock()
	if ok {
		return o
	}
	return c.make(i)
}

// since are the changes after a version, and what is closed when there are more.
func (c *collection) since(version int64) (later []event, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.history)
	for n > 0 && c.history[n-1].version > version {
		n--
	}
	return c.history[n:], c.pulse
}

// bookmark is an object that holds nothing but a version; ended says that all that there was has been sent.
func (c *collection) bookmark(version int64, ended bool) watch.Event {
	o := newObject(c.gvk())
	o.SetResourceVersion(versionText(version))
	if ended {
		o.SetAnnotations(map[string]string{meta.InitialEventsAnnotationKey: "true"})
	}
	return watch.Event{Type: watch.Bookmark, Object: o}
}
