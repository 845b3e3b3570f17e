package cache

import (
	"bytes"
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

// Contents is what a store held when it was opened.
type Contents struct {
	// Snapshots are sorted by viewpoint.
	Snapshots []Saved
	// Note is what was attached to them; empty where nothing was.
	Note []byte
	// Torn counts the bytes of a write that was interrupted. They are ignored: the rest is what there was before it.
	Torn int
	// Damage says what was wrong with the file that was found, and where it was put; nil where nothing was. There is
	// nothing else then.
	Damage error
}

// Store keeps on disk what was last published, so that a control plane which starts with nothing reachable can serve it.
// Its methods may be called from any goroutine.
type Store struct {
	// Set once.
	config StoreConfig
	log    *slog.Logger
	wake   chan struct{} // holds one token while something is pending

	// Only by Run.
	file *storeFile
	// What the file holds, or is to hold with the next write.
	held map[world.ViewpointID]Saved
	note []byte

	// Under mu.
	mu      sync.Mutex
	pending pending
	given   uint64 // how often something was handed over
	written uint64 // given, when the last write that succeeded began
}

// pending is what was handed over since the last write. Newest wins.
type pending struct {
	saved map[world.ViewpointID]Saved
	note  []byte                       // empty: no other
	keep  func(world.ViewpointID) bool // nil: nothing to drop
}

// OpenStore opens the store in a folder and reads what it holds. A file that is corrupt is set aside and is no error: see
// Contents.Damage. Errors are ErrFormat, where a version of Meridian that this one does not know wrote the file, which is
// left alone; ErrInUse, where another process has the store open; and those of the file system.
func OpenStore(config StoreConfig) (*Store, Contents, error) {
	if config.Dir == "" {
		return nil, Contents{}, errors.New("store: StoreConfig.Dir is required")
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
	file, found, err := openStoreFile(config.Dir)
	if err != nil {
		return nil, Contents{}, err
	}
	s := &Store{config: config, log: config.Log, wake: make(chan struct{}, 1), file: file, held: map[world.ViewpointID]Saved{}, note: found.Note}
	for _, saved := range found.Snapshots {
		s.held[saved.Snapshot.Viewpoint] = saved
	}
	return s, found, nil
}

// Close gives the folder back, where Run has not done so: it is for a Store that is not run.
func (s *Store) Close() error { return s.file.close() }

// Save hands a snapshot over to be written, in the place of one for its viewpoint. It never waits for the disk.
func (s *Store) Save(snapshot *xds.Snapshot, at time.Time) {
	s.change(func(p *pending) {
		if p.saved == nil {
			p.saved = map[world.ViewpointID]Saved{}
		}
		p.saved[snapshot.Viewpoint] = Saved{snapshot, at}
	})
}

// Attach hands over what must be known to serve the snapshots besides them, in the place of what was attached before. The
// store does not look into it. It never waits for the disk. The caller must not change note afterwards.
func (s *Store) Attach(note []byte) { s.change(func(p *pending) { p.note = note }) }

// Retain drops the viewpoints that keep does not want. It never waits for the disk.
func (s *Store) Retain(keep func(world.ViewpointID) bool) {
	s.change(func(p *pending) {
		p.keep = keep
		maps.DeleteFunc(p.saved, func(v world.ViewpointID, _ Saved) bool { return !keep(v) })
	})
}

func (s *Store) change(what func(*pending)) {
	s.mu.Lock()
	what(&s.pending)
	s.given++
	s.mu.Unlock()
	s.poke()
}

// Behind says whether something that was handed over is not on disk.
func (s *Store) Behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given != s.written
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
	p, given := s.take()
	b := s.apply(p)
	if len(b.changes) > 0 || len(b.note) > 0 || !s.file.current() {
		if !s.commit(b) {
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = given
	return true
}

func (s *Store) take() (p pending, given uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, s.pending = s.pending, pending{}
	return p, s.given
}

// commit writes a batch, or everything where that is due.
func (s *Store) commit(b batch) bool {
	started := time.Now()
	w := StoreWrite{Whole: s.file.overgrown()}
	if w.Whole {
		w.Bytes, w.Err = s.file.rewrite(s.note, s.held)
	} else {
		w.Bytes, w.Err = s.file.append(b)
	}
	w.Took = time.Since(started)
	if w.Err != nil {
		s.log.Error("what is published is not on disk, serving goes on; it is tried again", "error", w.Err)
	}
	s.config.OnWrite(w)
	return w.Err == nil
}

// apply brings what is held up to date and returns how it changed, sorted by viewpoint.
func (s *Store) apply(p pending) batch {
	b := batch{}
	if !bytes.Equal(p.note, s.note) && len(p.note) > 0 {
		b.note, s.note = p.note, p.note
	}
	for _, v := range slices.Sorted(maps.Keys(s.held)) {
		if p.keep != nil && !p.keep(v) {
			b.changes = append(b.changes, change{viewpoint: v})
			delete(s.held, v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(p.saved)) {
		c, after := change{viewpoint: v}, p.saved[v]
		if before, held := s.held[v]; held {
			c.before = &before
		}
		c.after = &after
		b.changes = append(b.changes, c)
		s.held[v] = after
	}
	return b
}
