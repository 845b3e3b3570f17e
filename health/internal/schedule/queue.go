package schedule

import (
	"container/heap"
	"hash/fnv"
	"time"
)

// entry is one target's place in the schedule.
type entry[T comparable] struct {
	target  T
	every   time.Duration
	due     time.Time
	group   *group[T]
	busy    bool
	removed bool
}

// group is targets that fail together.
type group[T comparable] struct {
	busy   int
	parked []*entry[T] // due, but the group has its share of workers
}

// queue is a heap by due time.
type queue[T comparable] []*entry[T]

func (q queue[T]) Len() int           { return len(q) }
func (q queue[T]) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue[T]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push and Pop are for container/heap.
func (q *queue[T]) Push(x any) { *q = append(*q, x.(*entry[T])) }

func (q *queue[T]) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}

// replace takes the latest targets over. A target that is taken away in the middle of a run stays an entry until the
// run ends, so that it is not worked on twice should it come back.
func (s *Scheduler[T, O]) replace(now time.Time) {
	s.mu.Lock()
	targets := s.latest
	s.mu.Unlock()
	before := s.entries
	s.entries, s.queue = make(map[T]*entry[T], len(targets)), nil
	groups := map[string]*group[T]{}
	for _, t := range targets {
		if s.entries[t] == nil {
			s.keep(t, before[t], groups, now)
		}
	}
	s.targets.Store(int64(len(s.entries)))
	for t, e := range before {
		if s.entries[t] == nil && e.busy {
			e.removed = true
			s.entries[t] = e
		}
	}
	heap.Init(&s.queue)
}

// keep enters a target: anew, or with the turn and the run that it has.
func (s *Scheduler[T, O]) keep(t T, e *entry[T], groups map[string]*group[T], now time.Time) {
	if e == nil {
		e = s.newEntry(t, now)
	}
	name := s.config.Group(t)
	if groups[name] == nil {
		groups[name] = &group[T]{}
	}
	e.removed, e.group = false, groups[name]
	s.entries[t] = e
	if e.busy {
		e.group.busy++
	} else {
		s.queue = append(s.queue, e)
	}
}

// newEntry gives a target its turn: a point in its interval that only its name decides, so that it is the same after
// a restart, and the first comes within one interval.
func (s *Scheduler[T, O]) newEntry(t T, now time.Time) *entry[T] {
	every := max(s.config.Every(t), time.Millisecond)
	hash := fnv.New64a()
	hash.Write([]byte(s.config.Name(t)))
	turn := time.Duration(hash.Sum64() % uint64(every))
	wait := (turn - time.Duration(now.UnixNano())%every + every) % every
	return &entry[T]{target: t, every: every, due: now.Add(wait)}
}

// begin starts what is due, as far as there are workers.
func (s *Scheduler[T, O]) begin(now time.Time, start func(*entry[T])) {
	share := max(1, s.config.Workers/2)
	for s.busy < s.config.Workers && len(s.queue) > 0 && !s.queue[0].due.After(now) {
		e := heap.Pop(&s.queue).(*entry[T])
		if e.group.busy >= share {
			e.group.parked = append(e.group.parked, e)
			continue
		}
		if now.Sub(e.due) > e.every {
			s.late.Add(1)
		}
		e.busy = true
		e.group.busy++
		s.busy++
		s.inFlight.Store(int64(s.busy))
		start(e)
	}
}

// finish delivers an outcome and gives its target the next turn: an interval after the last one, or now where that has
// passed, since a target that answers late is just the one to look at again.
func (s *Scheduler[T, O]) finish(o outcome[T, O], now time.Time) {
	e := o.entry
	e.busy = false
	e.group.busy--
	s.busy--
	s.inFlight.Store(int64(s.busy))
	if g := e.group; len(g.parked) > 0 {
		heap.Push(&s.queue, g.parked[0])
		g.parked = g.parked[1:]
	}
	if e.removed {
		delete(s.entries, e.target)
		return
	}
	if e.due = e.due.Add(e.every); e.due.Before(now) {
		e.due = now
	}
	heap.Push(&s.queue, e)
	s.config.Deliver(o.value)
}
