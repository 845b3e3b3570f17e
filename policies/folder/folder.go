package folder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/meridian-mesh/meridian/policies"
)

// Config says which folder is watched and who is told. Dir and OnSet are required.
type Config struct {
	// Dir is the folder, or a single file.
	Dir string
	// OnSet gets each new valid Set, the first one soon after Run begins. It is called again where files changed
	// and mean the same (equal Hash), because objects' origins may have moved.
	OnSet func(*policies.Set)
	// OnError gets each new reason why the folder as it is now is not in force; nil: only Status tells.
	OnError func(error)
	// Debounce is how long the folder must be quiet before it is read, and a tenth of how long that waits at most.
	// 0: 100ms.
	Debounce time.Duration
	// Poll is the time between looks at the folder that need no event. 0: 5s.
	Poll time.Duration
}

// Status is what is in force and, where that is not what the folder holds now, why.
type Status struct {
	// Set is the last good set; nil before there was one.
	Set *policies.Set
	// Loaded is when Set was read.
	Loaded time.Time
	// Err is why the folder as it is now is not in force; nil where it is.
	Err error
	// NoEvents is why changes are only found by polling; nil where events work.
	NoEvents error
}

// Folder watches a folder. Make one with New.
type Folder struct {
	// Set once.
	config     Config
	newWatcher func() (*fsnotify.Watcher, error)

	status atomic.Pointer[Status]

	// Only by Run.
	published content // what the set in force was made of
	seen      listing // what was last read, good or bad
	unread    bool    // whether the last reading failed, so that nothing was seen
}

// New checks the configuration. It does not touch the folder: that may appear later.
func New(c Config) (*Folder, error) {
	if c.Dir == "" || c.OnSet == nil {
		return nil, errors.New("policy folder: Dir and OnSet are required")
	}
	if c.Debounce < 0 || c.Poll < 0 {
		return nil, fmt.Errorf("policy folder %s: Debounce %s and Poll %s must not be negative", c.Dir, c.Debounce, c.Poll)
	}
	if c.Debounce == 0 {
		c.Debounce = 100 * time.Millisecond
	}
	if c.Poll == 0 {
		c.Poll = 5 * time.Second
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	f := &Folder{config: c, newWatcher: fsnotify.NewWatcher}
	f.status.Store(&Status{})
	return f, nil
}

// Status is what is in force now.
func (f *Folder) Status() Status { return *f.status.Load() }

// Run reads the folder and watches it until ctx ends. What is wrong with the folder is no reason to return.
func (f *Folder) Run(ctx context.Context) error {
	w := f.watch()
	defer w.close()
	f.load(w)
	f.loop(ctx, w)
	return nil
}

// loop reacts to one thing at a time: an event begins or prolongs the wait, so does a poll that finds a difference,
// and when the wait is over the folder is read.
func (f *Folder) loop(ctx context.Context, w *watcher) {
	poll := time.NewTicker(f.config.Poll)
	defer poll.Stop()
	wait := newDebounce(f.config.Debounce)
	defer wait.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.events:
			if e.Op != fsnotify.Chmod {
				wait.begin(time.Now())
			}
		case <-w.errors: // events were lost
			wait.begin(time.Now())
		case <-poll.C:
			if f.changed(w) {
				wait.begin(time.Now())
			}
		case <-wait.over():
			wait.end()
			f.load(w)
		}
	}
}

// changed says whether the folder is not as it was when it was last read.
func (f *Folder) changed(w *watcher) bool {
	now, err := list(f.config.Dir)
	w.follow(now.folders)
	return err != nil || f.unread || !now.same(f.seen)
}

// load reads the folder and publishes what it means, or why it means nothing. It follows the folders before it reads,
// so that no change falls between.
func (f *Folder) load(w *watcher) {
	now, _ := list(f.config.Dir) // read tells the error
	w.follow(now.folders)
	c, err := read(f.config.Dir)
	f.unread = err != nil
	if err != nil {
		f.fail(err)
		return
	}
	f.seen = c.list
	set, err := c.parse()
	if err != nil {
		f.fail(err)
		return
	}
	f.publish(c, set)
}

func (f *Folder) fail(err error) {
	s := f.Status()
	news := s.Err == nil || s.Err.Error() != err.Error()
	s.Err = err
	f.status.Store(&s)
	if news {
		f.config.OnError(err)
	}
}

func (f *Folder) publish(c content, set *policies.Set) {
	s := f.Status()
	s.Err = nil
	if s.Set != nil && c.sameFiles(f.published) {
		f.status.Store(&s)
		return
	}
	s.Set, s.Loaded = set, time.Now()
	f.published = c
	f.status.Store(&s)
	f.config.OnSet(set)
}
