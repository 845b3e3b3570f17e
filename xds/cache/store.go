package cache

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// StoreConfig configures a Store.
type StoreConfig struct {
	// Dir is the folder that the store keeps its file in, for itself alone. It is made where it is missing. Required.
	Dir string
	// Interval is the least time between two writes. Default 1s.
	Interval time.Duration
	// OnWrite, where given, is told of each write, from Run's goroutine.
	OnWrite func(StoreWrite)
	// Log defaults to slog's default.
	Log *slog.Logger
}

// StoreWrite is one write of a Store.
type StoreWrite struct {
	// Bytes is how much was written.
	Bytes int
	// Whole says that everything was written anew, and not only what changed.
	Whole bool
	// Took is how long it took until it was safe on disk.
	Took time.Duration
	// Err is why it failed. What was to be written is tried again.
	Err error
}

// Saved is a snapshot and when it was published.
type Saved struct {
	Snapshot *xds.Snapshot
	At       time.Time
}

// Store keeps on disk what was last published, so that a control plane which starts with nothing reachable can serve it.
// Its methods may be called from any goroutine.
type Store struct {
	// Set once.
	config   StoreConfig
	log      *slog.Logger
	restored []Saved
	damage   error
	wake     chan struct{} // holds one token while something is pending

	// Only by Run.
	file *storeFile
	held map[world.ViewpointID]Saved // what the file holds, or is to hold with the next write

	mu      sync.Mutex
	pending map[world.ViewpointID]Saved  // under mu; newest wins
	keep    func(world.ViewpointID) bool // under mu; nil: nothing to drop
}

// OpenStore opens the store in a folder and reads what it holds. A file that is corrupt is set aside and is no error:
// see Damage. Errors are ErrFormat, where a version of Meridian that this one does not know wrote the file, which is left
// alone; ErrInUse, where another process has the store open; and those of the file system.
func OpenStore(config StoreConfig) (*Store, error) {
	if config.Dir == "" {
		return nil, errors.New("store: StoreConfig.Dir is required")
	}
	if config.Interval <= 0 {
		config.Interval = time.Second
	}
	if config.OnWrite == nil {
		config.OnWrite = func(StoreWrite) {}
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	s := &Store{config: config, log: config.Log, wake: make(chan struct{}, 1), held: map[world.ViewpointID]Saved{}, pending: map[world.ViewpointID]Saved{}}
	var err error
	if s.file, s.restored, err = openStoreFile(config.Dir); errors.Is(err, ErrCorrupt) {
		s.damage, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	if s.file.torn > 0 {
		s.log.Warn("the last write to disk was interrupted, what was there before it is restored", "file", s.file.path(fileName), "bytes ignored", s.file.torn)
	}
	for _, r := range s.restored {
		s.held[r.Snapshot.Viewpoint] = r
	}
	return s, nil
}

// Close gives the folder back. It is for a Store that is not run.
func (s *Store) Close() error { return s.file.close() }

// Restored is what the store held when it was opened, sorted by viewpoint.
func (s *Store) Restored() []Saved { return s.restored }

// Damage says what was wrong with the file that was found, and where it was put; nil where nothing was. None of it is
// restored.
func (s *Store) Damage() error { return s.damage }

// Save hands a snapshot over to be written, in the place of one for its viewpoint. It never waits for the disk.
func (s *Store) Save(snapshot *xds.Snapshot, at time.Time) {
	s.mu.Lock()
	s.pending[snapshot.Viewpoint] = Saved{snapshot, at}
	s.mu.Unlock()
	s.poke()
}

// Retain drops the viewpoints that keep does not want. It never waits for the disk.
func (s *Store) Retain(keep func(world.ViewpointID) bool) {
	s.mu.Lock()
	s.keep = keep
	maps.DeleteFunc(s.pending, func(v world.ViewpointID, _ Saved) bool { return !keep(v) })
	s.mu.Unlock()
	s.poke()
}

func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default: // it will find this too
	}
}

// mostPatience is how long a write that keeps failing is put off at most.
const mostPatience = time.Minute

// Run writes what is handed over until ctx ends, and then once more. The first change after a pause is written at once,
// a stream of changes once an interval. A write that fails is tried again, ever more rarely; it is no reason to return.
func (s *Store) Run(ctx context.Context) error {
	wait := s.config.Interval
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.wake:
			wait = s.pace(wait, s.write())
			pause(ctx, wait)
		}
	}
	s.write()
	return s.file.close()
}

// pace is how long to wait after a write.
func (s *Store) pace(before time.Duration, written bool) time.Duration {
	if written {
		return s.config.Interval
	}
	s.poke()
	return min(2*before, max(mostPatience, s.config.Interval))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// write brings the file up to date. It reports whether that succeeded.
func (s *Store) write() bool {
	changes := s.take()
	if len(changes) == 0 && s.file.current() {
		return true
	}
	started := time.Now()
	w := StoreWrite{Whole: s.file.overgrown()}
	if w.Whole {
		w.Bytes, w.Err = s.file.rewrite(s.held)
	} else {
		w.Bytes, w.Err = s.file.append(changes)
	}
	w.Took = time.Since(started)
	if w.Err != nil {
		s.log.Error("what is published is not on disk, serving goes on; it is tried again", "error", w.Err)
	}
	s.config.OnWrite(w)
	return w.Err == nil
}

// take brings held up to date and returns how it changed, sorted by viewpoint.
func (s *Store) take() []change {
	s.mu.Lock()
	pending, keep := s.pending, s.keep
	s.pending, s.keep = map[world.ViewpointID]Saved{}, nil
	s.mu.Unlock()
	var changes []change
	for _, v := range slices.Sorted(maps.Keys(s.held)) {
		if keep != nil && !keep(v) {
			changes = append(changes, change{viewpoint: v})
			delete(s.held, v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(pending)) {
		c, after := change{viewpoint: v}, pending[v]
		if before, held := s.held[v]; held {
			c.before = &before
		}
		c.after = &after
		changes = append(changes, c)
		s.held[v] = after
	}
	return changes
}
