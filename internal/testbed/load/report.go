package load

import (
	"cmp"
	"slices"
	"time"
)

// Report is what came of a run. Its lists are sorted by what they count, Seconds by time. Durations are since the start of
// the run, or of a request; in JSON they are nanoseconds.
type Report struct {
	Start   time.Time     `json:"start"`
	Elapsed time.Duration `json:"elapsed"`
	// Sent is the sum of the other three. Interrupted were under way when Run's context ended.
	Sent        int `json:"sent"`
	OK          int `json:"ok"`
	Failed      int `json:"failed"`
	Interrupted int `json:"interrupted"`
	// Statuses count answers, Errors what had none or an incomplete one.
	Statuses []StatusCount `json:"statuses"`
	Errors   []ErrorCount  `json:"errors"`
	// Answers count all that had a status, by who gave it and why. Clusters say when each answered.
	Answers  []AnswerCount `json:"answers"`
	Clusters []Cluster     `json:"clusters"`
	// FirstByte and Whole are of those that succeeded, from when they were due.
	FirstByte Latency `json:"first_byte"`
	Whole     Latency `json:"whole"`
	// Seconds are all seconds from the start to the last result, by when requests ended.
	Seconds []Second `json:"seconds"`

	// Only while Run adds to it.
	statuses  map[int]int
	errors    map[ErrorKind]*ErrorCount
	answers   map[Answerer]int
	clusters  map[string]*Cluster
	firstByte []time.Duration
	whole     []time.Duration
}

// StatusCount counts the answers with a status.
type StatusCount struct {
	Status int `json:"status"`
	Count  int `json:"count"`
}

// ErrorCount counts the errors of a kind. Example is the first that came, which was of request N.
type ErrorCount struct {
	Kind    ErrorKind `json:"kind"`
	Count   int       `json:"count"`
	Example string    `json:"example"`
	N       int       `json:"n"`
}

// AnswerCount counts the answers that one gave for one reason.
type AnswerCount struct {
	Answerer
	Count int `json:"count"`
}

// Cluster is when a cluster answered with success, first and last: after its death nothing later may be there.
type Cluster struct {
	Name  string        `json:"name"`
	OK    int           `json:"ok"`
	First time.Duration `json:"first"`
	Last  time.Duration `json:"last"`
}

// Latency is a distribution. It is zero where nothing succeeded.
type Latency struct {
	P50 time.Duration `json:"p50"`
	P90 time.Duration `json:"p90"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// Second counts what ended in one second. Clusters count successes by who gave them.
type Second struct {
	OK       int            `json:"ok"`
	Failed   int            `json:"failed"`
	Clusters map[string]int `json:"clusters,omitempty"`
}

func newReport(start time.Time) *Report {
	return &Report{
		Start: start, statuses: map[int]int{}, errors: map[ErrorKind]*ErrorCount{}, answers: map[Answerer]int{},
		clusters: map[string]*Cluster{},
	}
}

// Answered is how many answers a cluster gave, whatever their status.
func (r *Report) Answered(cluster string) int {
	n := 0
	for _, a := range r.Answers {
		if a.Cluster == cluster {
			n += a.Count
		}
	}
	return n
}

// Cluster says when a cluster answered; false if it never did with success.
func (r *Report) Cluster(name string) (Cluster, bool) {
	i, found := slices.BinarySearchFunc(r.Clusters, name, func(c Cluster, name string) int { return cmp.Compare(c.Name, name) })
	if !found {
		return Cluster{}, false
	}
	return r.Clusters[i], true
}

func (r *Report) add(result Result) {
	r.Sent++
	if result.Status != 0 {
		r.statuses[result.Status]++
		r.answers[result.Answerer]++
	}
	second := r.second(result.Done())
	switch {
	case result.OK():
		r.OK++
		second.OK++
		r.addOK(result, second)
	case result.Kind == Interrupted:
		r.Interrupted++
	default:
		r.Failed++
		second.Failed++
	}
	if result.Err == nil {
		return
	}
	if e := r.errors[result.Kind]; e != nil {
		e.Count++
		return
	}
	r.errors[result.Kind] = &ErrorCount{Kind: result.Kind, Count: 1, Example: result.Err.Error(), N: result.N}
}

// addOK adds what is known only of a success.
func (r *Report) addOK(result Result, second *Second) {
	r.firstByte = append(r.firstByte, result.FirstByte)
	r.whole = append(r.whole, result.Whole)
	name, done := result.Answerer.Cluster, result.Done()
	second.Clusters[name]++
	c := r.clusters[name]
	if c == nil {
		c = &Cluster{Name: name, First: done, Last: done}
		r.clusters[name] = c
	}
	c.OK++
	c.First, c.Last = min(c.First, done), max(c.Last, done)
}

// second is the second of a time, after those before it.
func (r *Report) second(at time.Duration) *Second {
	i := int(at / time.Second)
	for len(r.Seconds) <= i {
		r.Seconds = append(r.Seconds, Second{Clusters: map[string]int{}})
	}
	return &r.Seconds[i]
}

// finish makes lists of what was counted.
func (r *Report) finish(elapsed time.Duration) {
	r.Elapsed = elapsed
	for status, n := range r.statuses {
		r.Statuses = append(r.Statuses, StatusCount{status, n})
	}
	slices.SortFunc(r.Statuses, func(a, b StatusCount) int { return cmp.Compare(a.Status, b.Status) })
	for _, e := range r.errors {
		r.Errors = append(r.Errors, *e)
	}
	slices.SortFunc(r.Errors, func(a, b ErrorCount) int { return cmp.Compare(a.Kind, b.Kind) })
	for answerer, n := range r.answers {
		r.Answers = append(r.Answers, AnswerCount{answerer, n})
	}
	slices.SortFunc(r.Answers, func(a, b AnswerCount) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Reason, b.Reason))
	})
	for _, c := range r.clusters {
		r.Clusters = append(r.Clusters, *c)
	}
	slices.SortFunc(r.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	r.FirstByte, r.Whole = latencyOf(r.firstByte), latencyOf(r.whole)
	r.statuses, r.errors, r.answers, r.clusters, r.firstByte, r.whole = nil, nil, nil, nil, nil, nil
}

func latencyOf(all []time.Duration) Latency {
	if len(all) == 0 {
		return Latency{}
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] } // the nearest rank
	return Latency{P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}
