package cache

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// plain is a resource in words, for diffs.
type plain struct {
	Type, Name, Version, Bytes string
	Aliases                    []string
	TTL                        time.Duration
}

// contents is what was saved, in words.
type contents struct {
	Note       string
	Viewpoints map[world.ViewpointID]plainSnapshot
}

type plainSnapshot struct {
	At        string
	Resources []plain
}

func contentsOf(note []byte, saved []Saved) contents {
	c := contents{Note: string(note), Viewpoints: map[world.ViewpointID]plainSnapshot{}}
	for _, s := range saved {
		p := plainSnapshot{At: s.At.UTC().Format(time.RFC3339Nano)}
		for r := range s.Snapshot.All() {
			p.Resources = append(p.Resources, plain{string(r.Type), r.Name, r.Version, string(r.Bytes), r.Aliases, r.TTL})
		}
		c.Viewpoints[s.Snapshot.Viewpoint] = p
	}
	return c
}

func (c Contents) plain() contents { return contentsOf(c.Note, c.Snapshots) }

// serialised makes a resource whose version follows from all that it says.
func serialised(t xds.Type, name, content string, options ...xds.Option) *xds.Resource {
	r := xds.Serialised(t, name, "", []byte(content), options...)
	return xds.Serialised(t, name, xds.VersionOf(fmt.Append(nil, content, r.Aliases, r.TTL)), []byte(content), options...)
}

// history is a file and what it said after each write, the oldest first.
type history struct {
	encoder *encoder
	file    []byte
	note    []byte
	held    map[world.ViewpointID]Saved
	said    []contents
	ends    []int // of the file after each write
}

func newHistory() *history {
	h := &history{encoder: newEncoder(), file: []byte(header), held: map[world.ViewpointID]Saved{}}
	h.remember()
	return h
}

func (h *history) remember() {
	h.said = append(h.said, contentsOf(h.note, slices.Collect(maps.Values(h.held))))
	h.ends = append(h.ends, len(h.file))
}

// write writes snapshots, and a note unless it is empty; nil drops a viewpoint.
func (h *history) write(t interface{ Fatal(...any) }, at time.Time, note string, snapshots map[world.ViewpointID]*xds.Snapshot) {
	var changes []change
	for _, v := range slices.Sorted(maps.Keys(snapshots)) {
		c := change{viewpoint: v}
		if before, ok := h.held[v]; ok {
			c.before = &before
		}
		delete(h.held, v)
		if s := snapshots[v]; s != nil {
			c.after = &Saved{s, at}
			h.held[v] = *c.after
		}
		changes = append(changes, c)
	}
	if note != "" {
		h.note = []byte(note)
	}
	line, err := h.encoder.encode(batch{[]byte(note), changes}, map[*xds.Resource]int{})
	if err != nil {
		t.Fatal(err)
	}
	h.file = append(h.file, line...)
	h.remember()
}

// example is a short history with all that there is: shared and unshared resources, replaced, gone and back again, dropped.
func example(t interface{ Fatal(...any) }) *history {
	const a, b = world.ViewpointID("gateway/frankfurt/fra-1"), world.ViewpointID("gateway/dublin/dub-1/grpc")
	at := time.Date(2026, 12, 1, 12, 0, 0, 5, time.UTC)
	cluster := serialised(xds.TypeCluster, "llama", "a cluster")
	endpoints := func(content string) *xds.Resource { return serialised(xds.TypeEndpoint, "llama", content) }
	hosts := serialised(xds.TypeVirtualHost, "route/llama", "a host", xds.WithAliases("route/llama.internal"), xds.WithTTL(time.Minute))
	of := xds.NewSnapshot
	h := newHistory()
	h.write(t, at, "a note", map[world.ViewpointID]*xds.Snapshot{a: of(a, []*xds.Resource{cluster, endpoints("1"), hosts}), b: of(b, []*xds.Resource{cluster, endpoints("1")})})
	h.write(t, at.Add(time.Second), "", map[world.ViewpointID]*xds.Snapshot{a: of(a, []*xds.Resource{cluster, endpoints("2")})})
	h.write(t, at.Add(time.Minute), "another", map[world.ViewpointID]*xds.Snapshot{a: of(a, []*xds.Resource{cluster, endpoints("1"), hosts}), b: nil})
	h.write(t, at.Add(time.Hour), "", map[world.ViewpointID]*xds.Snapshot{b: of(b, nil)})
	return h
}

func TestFileSaysWhatWasWritten(t *testing.T) {
	h := example(t)
	found, err := decode(h.file)
	if err != nil || found.Torn > 0 {
		t.Fatalf("%v, %d bytes torn", err, found.Torn)
	}
	if diff := cmp.Diff(h.said[len(h.said)-1], found.plain()); diff != "" {
		t.Error(diff)
	}
	if n := bytes.Count(h.file, []byte(`"name":"llama"`)); n != 3 {
		t.Errorf("a cluster and two sets of endpoints are in the file %d times", n)
	}
	if found := found.Snapshots[1].Snapshot.Of(xds.TypeVirtualHost).Find("route/llama.internal"); found == nil {
		t.Error("an alias is lost")
	}
}

// A write that is cut off anywhere leaves what was there before it.
func TestTornWriteLeavesWhatWasThere(t *testing.T) {
	h := example(t)
	for cut := h.ends[0]; cut <= len(h.file); cut++ {
		whole, _ := slices.BinarySearch(h.ends, cut+1)
		found, err := decode(h.file[:cut])
		if err != nil || found.Torn != cut-h.ends[whole-1] {
			t.Fatalf("cut at %d: %d bytes torn, %v", cut, found.Torn, err)
		}
		if diff := cmp.Diff(h.said[whole-1], found.plain()); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
	}
}

// The file system may have made room for a write and lost what was to go there.
func TestLastWriteOfZerosLeavesWhatWasThere(t *testing.T) {
	h := example(t)
	last := len(h.ends) - 1
	for at := h.ends[last-1]; at < len(h.file); at++ {
		file := bytes.Clone(h.file)
		if at%2 == 0 {
			clear(file[at:])
		} else {
			clear(file[h.ends[last-1] : at+1])
		}
		found, err := decode(file)
		if err != nil || found.Torn == 0 {
			t.Fatalf("zeros from %d: %d bytes torn, %v", at, found.Torn, err)
		}
		if diff := cmp.Diff(h.said[last-1], found.plain()); diff != "" {
			t.Fatalf("zeros from %d: %s", at, diff)
		}
	}
}

// Whatever bit is flipped: an error. Only what ends the last write, or makes a zero in it, may pass for a torn write.
func TestFlippedBitsAreFound(t *testing.T) {
	h := example(t)
	for at := range h.file {
		for bit := range 8 {
			file := bytes.Clone(h.file)
			file[at] ^= 1 << bit
			wantFaithful(t, h, file, at == len(file)-1 || at >= h.ends[len(h.ends)-2] && file[at] == 0)
		}
	}
}

// wantFaithful wants an error of a damaged file, or, where it may be a torn write, something that was once said.
func wantFaithful(t *testing.T, h *history, file []byte, mayBeTorn bool) {
	t.Helper()
	found, err := decode(file)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
			t.Errorf("an error of no kind: %v", err)
		}
		return
	}
	got := found.plain()
	if i := slices.IndexFunc(h.said, func(c contents) bool { return cmp.Equal(c, got) }); i < 0 || !mayBeTorn {
		t.Errorf("%d bytes torn, and this was never saved: %v", found.Torn, got)
	}
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	h := example(t)
	line := func(payload string) []byte {
		e := newEncoder()
		return fmt.Appendf(nil, "%s%x %s\n%x {}\n", header, e.last.of([]byte(payload)), payload, e.last.of([]byte(payload)).of([]byte("{}")))
	}
	swapped := slices.Concat(h.file[:h.ends[0]], h.file[h.ends[1]:h.ends[2]], h.file[h.ends[0]:h.ends[1]], h.file[h.ends[2]:])
	for name, c := range map[string]struct {
		file []byte
		kind error
		says string
	}{
		"nothing":           {nil, ErrCorrupt, "does not begin with"},
		"part of a header":  {h.file[:len(header)-1], ErrCorrupt, "does not begin with"},
		"something else":    {[]byte("apiVersion: v1\n"), ErrCorrupt, "does not begin with"},
		"a newer format":    {[]byte("meridian-published 2\nwhatever"), ErrFormat, "it is 2, want 1"},
		"an odd format":     {[]byte("meridian-published 01\n"), ErrFormat, "it is 01, want 1"},
		"a missing line":    {slices.Concat(h.file[:h.ends[0]], h.file[h.ends[1]:]), ErrCorrupt, "the line at byte 21 does not have its checksum"},
		"lines in disorder": {swapped, ErrCorrupt, "the line at byte 21 does not have its checksum"},
		"a line twice":      {slices.Concat(h.file[:h.ends[1]], h.file[h.ends[0]:]), ErrCorrupt, "does not have its checksum"},
		"no JSON":           {line("{"), ErrCorrupt, "unexpected end of JSON"},
		"no such resource":  {line(`{"snapshots":[{"viewpoint":"v","put":[0]}]}`), ErrCorrupt, `viewpoint "v": there is no resource 0`},
		"a negative number": {line(`{"snapshots":[{"viewpoint":"v","gone":[-1]}]}`), ErrCorrupt, `viewpoint "v": there is no resource -1`},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := decode(c.file)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || found.Snapshots != nil {
				t.Errorf("got %v and %d snapshots, want an error that says %q", err, len(found.Snapshots), c.says)
			}
		})
	}
}

func TestTextThatXDSCannotCarryIsNotWritten(t *testing.T) {
	s := xds.NewSnapshot("v", []*xds.Resource{serialised(xds.TypeCluster, "\xff", "")})
	_, err := newEncoder().encode(batch{changes: []change{{viewpoint: "v", after: &Saved{Snapshot: s}}}}, map[*xds.Resource]int{})
	if err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
		t.Errorf("got %v", err)
	}
}

// Whatever is written, in whatever order: the file says the newest, and cut anywhere something that was once true.
func TestAnyHistoryIsReadAsItWas(t *testing.T) {
	viewpoints := []world.ViewpointID{"gateway/a/1", "gateway/a/2", "sidecar/b/1/grpc"}
	types := append(xds.Types(), "type.example/Other")
	resource := rapid.Custom(func(t *rapid.T) *xds.Resource {
		r := []xds.Option{}
		if rapid.Bool().Draw(t, "more") {
			r = append(r, xds.WithAliases(rapid.String().Draw(t, "alias")), xds.WithTTL(time.Duration(rapid.Int64Min(1).Draw(t, "ttl"))))
		}
		bytes := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		return serialised(rapid.SampledFrom(types).Draw(t, "type"), rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\"é\u2028")), 0, 2, -1).Draw(t, "name"), string(bytes), r...)
	})
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory()
		at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
		for i := range rapid.IntRange(1, 8).Draw(t, "writes") {
			snapshots := map[world.ViewpointID]*xds.Snapshot{}
			for _, v := range rapid.SliceOfDistinct(rapid.SampledFrom(viewpoints), rapid.ID).Draw(t, "viewpoints") {
				snapshots[v] = nil
				if _, held := h.held[v]; !held || rapid.IntRange(0, 4).Draw(t, "drop") > 0 {
					resources := rapid.SliceOfNDistinct(resource, 0, 6, keyOf).Draw(t, "resources")
					snapshots[v] = xds.NewSnapshot(v, slices.Concat(resources, some(t, h.held[v], resources)))
				}
			}
			h.write(t, at.Add(time.Duration(i)*time.Second), rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "note"), snapshots)
		}
		cut := rapid.IntRange(h.ends[0], len(h.file)).Draw(t, "cut")
		for _, end := range []int{len(h.file), cut} {
			whole, _ := slices.BinarySearch(h.ends, end+1)
			found, err := decode(h.file[:end])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(h.said[whole-1], found.plain()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// some are resources that a snapshot had before and that others do not replace, so that histories share.
func some(t *rapid.T, before Saved, others []*xds.Resource) (kept []*xds.Resource) {
	if before.Snapshot == nil {
		return nil
	}
	for r := range before.Snapshot.All() {
		replaced := slices.ContainsFunc(others, func(o *xds.Resource) bool { return keyOf(o) == keyOf(r) })
		if !replaced && rapid.Bool().Draw(t, "kept") {
			kept = append(kept, r)
		}
	}
	return kept
}

// Damage of any kind, in several places at once: never content that was not saved, never a panic.
func FuzzDamagedFile(f *testing.F) {
	h := example(f)
	f.Add(0, 0, []byte{})
	f.Add(30, 1, []byte("x"))
	f.Add(len(header), len(h.file), []byte{})
	f.Add(h.ends[2], h.ends[3]-h.ends[2], h.file[h.ends[1]:h.ends[2]])
	f.Add(0, len(h.file), []byte(header+"00 {}\n"))
	f.Fuzz(func(t *testing.T, at, remove int, insert []byte) {
		at = max(0, min(at, len(h.file)))
		end := min(at+max(0, remove), len(h.file))
		if end < at {
			end = len(h.file)
		}
		wantFaithful(t, h, slices.Concat(h.file[:at], insert, h.file[end:]), true)
	})
}
