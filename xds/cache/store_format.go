package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// A store's file is text: a header that names the format, then a line for each write,
//
//	meridian-published 1
//	<checksum> {"resources":[...],"snapshots":[{"viewpoint":"gateway/r/c","published":"...","put":[0,1],"gone":[]}]}
//
// A line holds the resources that no earlier line has, which are numbered from 0 through the file, and what became of
// viewpoints: resources that they now have, by number, each in the place of one with its type and name, and those that
// they have no more. So a resource that a hundred viewpoints share is written once, and a change costs what changed. It may
// hold a note, in the place of an earlier one.
//
// The checksum is the SHA-256 of the line before's checksum and of the JSON, in hex: a line that is damaged, missing or
// in another place is found. A write that was interrupted leaves a last line that is not whole; the lines before it are
// what was on disk when it began.
const (
	formatName    = "meridian-published "
	formatVersion = 1
	header        = formatName + "1\n"
)

// ErrFormat says that a file was written in a format that this version does not know.
var ErrFormat = errors.New("format is not known to this version")

// ErrCorrupt says that a file is not what was written.
var ErrCorrupt = errors.New("corrupt")

// storedLine is the JSON of a line.
type storedLine struct {
	Note      []byte            `json:"note,omitempty"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Snapshots []storedChange    `json:"snapshots,omitempty"`
}

// storedChange is what became of a viewpoint.
type storedChange struct {
	Viewpoint world.ViewpointID `json:"viewpoint"`
	Published time.Time         `json:"published,omitzero"`
	Put       []int             `json:"put,omitempty"`
	Gone      []int             `json:"gone,omitempty"`
	// Dropped says that the viewpoint is no more.
	Dropped bool `json:"dropped,omitempty"`
}

// storedResource is the JSON of a resource.
type storedResource struct {
	Type    xds.Type      `json:"type"`
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Aliases []string      `json:"aliases,omitempty"`
	TTL     time.Duration `json:"ttl,omitempty"`
	Bytes   []byte        `json:"bytes"`
}

// checksum chains a line to the one before.
type checksum [sha256.Size]byte

// of is the checksum of the line that follows one with checksum c.
func (c checksum) of(payload []byte) checksum {
	h := sha256.New()
	h.Write(c[:])
	h.Write(payload)
	return checksum(h.Sum(nil))
}

// batch is what a line is to say.
type batch struct {
	note    []byte // empty: the one before stays
	changes []change
}

// change is what is to be written of a viewpoint. Before is nil for one that the file does not hold, after is nil for one
// that it is to hold no more.
type change struct {
	viewpoint     world.ViewpointID
	before, after *Saved
}

// encoder makes the lines of one file, in order.
type encoder struct {
	last    checksum
	numbers map[[sha256.Size]byte]int // of resources, by the hash of their JSON
}

func newEncoder() *encoder {
	return &encoder{last: sha256.Sum256([]byte(header)), numbers: map[[sha256.Size]byte]int{}}
}

// encode makes the line of a batch. known remembers resources between calls, so that one which many viewpoints share is
// looked at once. After an error the encoder must not be used any more.
func (e *encoder) encode(b batch, known map[*xds.Resource]int) ([]byte, error) {
	w := lineWriter{encoder: e, known: known, line: storedLine{Note: b.note}}
	for _, c := range b.changes {
		if err := w.add(c); err != nil {
			return nil, err
		}
	}
	payload, err := json.Marshal(w.line)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	e.last = e.last.of(payload)
	line := make([]byte, 0, len(payload)+2*sha256.Size+2)
	line = append(hex.AppendEncode(line, e.last[:]), ' ')
	return append(append(line, payload...), '\n'), nil
}

// lineWriter gathers one line.
type lineWriter struct {
	*encoder
	known map[*xds.Resource]int
	line  storedLine
}

func (w *lineWriter) add(c change) error {
	if c.after == nil {
		w.line.Snapshots = append(w.line.Snapshots, storedChange{Viewpoint: c.viewpoint, Dropped: true})
		return nil
	}
	var before *xds.Snapshot
	if c.before != nil {
		before = c.before.Snapshot
	}
	put, gone := differences(before, c.after.Snapshot)
	s := storedChange{Viewpoint: c.viewpoint, Published: c.after.At}
	var err error
	if s.Put, err = w.numbersOf(put); err != nil {
		return err
	}
	if s.Gone, err = w.numbersOf(gone); err != nil {
		return err
	}
	w.line.Snapshots = append(w.line.Snapshots, s)
	return nil
}

// differences are what after has that before has not, and the other way round.
func differences(before, after *xds.Snapshot) (put, gone []*xds.Resource) {
	types := after.Types()
	if before != nil {
		types = append(types, before.Types()...)
		slices.SortFunc(types, xds.Type.Compare)
		types = slices.Compact(types)
	}
	for _, t := range types {
		changed, removed := xds.Diff(before.Of(t), after.Of(t))
		put, gone = append(put, changed...), append(gone, removed...)
	}
	return put, gone
}

func (w *lineWriter) numbersOf(resources []*xds.Resource) ([]int, error) {
	numbers := make([]int, 0, len(resources))
	for _, r := range resources {
		n, known := w.known[r]
		if !known {
			var err error
			if n, err = w.numberOf(r); err != nil {
				return nil, err
			}
			w.known[r] = n
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// numberOf finds a resource that the file has, or adds it to the line.
func (w *lineWriter) numberOf(r *xds.Resource) (int, error) {
	for _, text := range append([]string{string(r.Type), r.Name, r.Version}, r.Aliases...) {
		if !utf8.ValidString(text) {
			return 0, fmt.Errorf("encode %s %q: %q is not UTF-8, and xDS has no other text", r.Type.Short(), r.Name, text)
		}
	}
	stored, err := json.Marshal(storedResource{r.Type, r.Name, r.Version, r.Aliases, r.TTL, r.Bytes})
	if err != nil {
		return 0, fmt.Errorf("encode %s %q: %w", r.Type.Short(), r.Name, err)
	}
	sum := sha256.Sum256(stored)
	n, known := w.numbers[sum]
	if !known {
		n = len(w.numbers)
		w.numbers[sum] = n
		w.line.Resources = append(w.line.Resources, stored)
	}
	return n, nil
}

// decode reads a file. Errors are ErrFormat and ErrCorrupt.
func decode(file []byte) (Contents, error) {
	if err := checkHeader(file); err != nil {
		return Contents{}, err
	}
	d := decoder{held: map[world.ViewpointID]*holding{}}
	last, at := checksum(sha256.Sum256([]byte(header))), len(header)
	for at < len(file) {
		line, _, whole := bytes.Cut(file[at:], []byte("\n"))
		if torn := !whole || bytes.IndexByte(line, 0) >= 0; torn && at+len(line)+1 >= len(file) {
			break
		}
		payload, sum := checked(line, last)
		if payload == nil {
			return Contents{}, fmt.Errorf("%w: the line at byte %d does not have its checksum", ErrCorrupt, at)
		}
		if err := d.apply(payload); err != nil {
			return Contents{}, fmt.Errorf("%w: the line at byte %d: %w", ErrCorrupt, at, err)
		}
		last, at = sum, at+len(line)+1
	}
	return Contents{Snapshots: d.saved(), Note: d.note, Torn: len(file) - at}, nil
}

func checkHeader(file []byte) error {
	line, _, _ := strings.Cut(string(file[:min(len(file), 64)]), "\n")
	version, ours := strings.CutPrefix(line, formatName)
	n, err := strconv.Atoi(version)
	switch {
	case !ours || err != nil || len(file) <= len(line):
		return fmt.Errorf("%w: it does not begin with %q", ErrCorrupt, formatName)
	case n != formatVersion || version != strconv.Itoa(n):
		return fmt.Errorf("%w: it is %s, want %d", ErrFormat, version, formatVersion)
	}
	return nil
}

// checked is the JSON of a line and its checksum; nil where that is not right.
func checked(line []byte, last checksum) ([]byte, checksum) {
	text, payload, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return nil, last
	}
	sum := last.of(payload)
	if string(text) != hex.EncodeToString(sum[:]) {
		return nil, last
	}
	return payload, sum
}

// decoder is what the lines so far say.
type decoder struct {
	note      []byte
	resources []*xds.Resource // by number
	held      map[world.ViewpointID]*holding
}

// holding is a viewpoint's resources.
type holding struct {
	published time.Time
	resources map[resourceKey]*xds.Resource
}

type resourceKey struct {
	typ  xds.Type
	name string
}

func keyOf(r *xds.Resource) resourceKey { return resourceKey{r.Type, r.Name} }

func (d *decoder) apply(payload []byte) error {
	var line storedLine
	if err := json.Unmarshal(payload, &line); err != nil {
		return err
	}
	if len(line.Note) > 0 {
		d.note = line.Note
	}
	for _, raw := range line.Resources {
		var s storedResource
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		d.resources = append(d.resources, xds.Serialised(s.Type, s.Name, s.Version, s.Bytes, xds.WithAliases(s.Aliases...), xds.WithTTL(s.TTL)))
	}
	for _, c := range line.Snapshots {
		if err := d.change(c); err != nil {
			return fmt.Errorf("viewpoint %q: %w", c.Viewpoint, err)
		}
	}
	return nil
}

func (d *decoder) change(c storedChange) error {
	if c.Dropped {
		delete(d.held, c.Viewpoint)
		return nil
	}
	h := d.held[c.Viewpoint]
	if h == nil {
		h = &holding{resources: map[resourceKey]*xds.Resource{}}
		d.held[c.Viewpoint] = h
	}
	h.published = c.Published
	for _, n := range slices.Concat(c.Gone, c.Put) {
		if n < 0 || n >= len(d.resources) {
			return fmt.Errorf("there is no resource %d", n)
		}
	}
	for _, n := range c.Gone {
		delete(h.resources, keyOf(d.resources[n]))
	}
	for _, n := range c.Put {
		h.resources[keyOf(d.resources[n])] = d.resources[n]
	}
	return nil
}

// saved is what the lines come to, sorted by viewpoint.
func (d *decoder) saved() []Saved {
	saved := make([]Saved, 0, len(d.held))
	for _, v := range slices.Sorted(maps.Keys(d.held)) {
		h := d.held[v]
		saved = append(saved, Saved{xds.NewSnapshot(v, slices.Collect(maps.Values(h.resources))), h.published})
	}
	return saved
}
