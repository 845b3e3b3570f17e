package cache

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// fleet are the snapshots of many viewpoints. What they share is up to resource.
func fleet(viewpoints, resources int, resource func(viewpoint, i int) *xds.Resource) []*xds.Snapshot {
	snapshots := []*xds.Snapshot{}
	for v := range viewpoints {
		of := []*xds.Resource{}
		for i := range resources {
			of = append(of, resource(v, i))
		}
		snapshots = append(snapshots, xds.NewSnapshot(world.ViewpointID(fmt.Sprintf("gateway/region/cluster-%d", v)), of))
	}
	return snapshots
}

// assignment is a resource of 400 bytes.
func assignment(name string, turn int) *xds.Resource {
	return serialised(xds.TypeEndpoint, name, fmt.Sprintf("%-400s", fmt.Sprint(name, turn)))
}

// One resource changes in each of 100 viewpoints that have 2,000. The viewpoints share all resources, or none.
func BenchmarkStoreSave(b *testing.B) {
	shared := map[string]*xds.Resource{}
	for name, resource := range map[string]func(v, i int) *xds.Resource{
		"shared": func(_, i int) *xds.Resource {
			name := fmt.Sprintf("service-%d", i)
			if shared[name] == nil {
				shared[name] = assignment(name, 0)
			}
			return shared[name]
		},
		"unshared": func(v, i int) *xds.Resource { return assignment(fmt.Sprintf("service-%d@%d", i, v), 0) },
	} {
		b.Run(name, func(b *testing.B) {
			snapshots := fleet(100, 2000, resource)
			written := 0
			s, _, err := OpenStore(StoreConfig{Dir: b.TempDir(), OnWrite: func(w StoreWrite) { written += w.Bytes }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			if err != nil {
				b.Fatal(err)
			}
			save := func(turn int) {
				changed := map[string]*xds.Resource{}
				for v, snapshot := range snapshots {
					r := resource(v, 77)
					if changed[r.Name] == nil {
						changed[r.Name] = assignment(r.Name, turn)
					}
					snapshots[v] = snapshot.With([]*xds.Resource{changed[r.Name]}, nil)
					s.Save(snapshots[v], noon)
				}
			}
			save(0)
			s.write()
			first, turn := written, 0
			written = 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				turn++
				save(turn)
				b.StartTimer()
				if !s.write() {
					b.Fatal("not written")
				}
			}
			b.ReportMetric(float64(written)/float64(b.N), "written-B/op")
			b.ReportMetric(float64(first), "whole-B")
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// Everything is written anew: 100 viewpoints with 2,000 resources that they share, or share none of.
func BenchmarkStoreRewrite(b *testing.B) {
	for name, resource := range map[string]func(v, i int) *xds.Resource{
		"shared":   func(_, i int) *xds.Resource { return assignment(fmt.Sprintf("service-%d", i), 0) },
		"unshared": func(v, i int) *xds.Resource { return assignment(fmt.Sprintf("service-%d@%d", i, v), 0) },
	} {
		b.Run(name, func(b *testing.B) {
			file, _, err := openStoreFile(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			held := map[world.ViewpointID]Saved{}
			for _, s := range fleet(100, 2000, resource) {
				held[s.Viewpoint] = Saved{s, noon}
			}
			b.ReportAllocs()
			for b.Loop() {
				n, err := file.rewrite(nil, held)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(n))
			}
			if err := file.close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// A control plane starts with what 100 viewpoints with 2,000 resources were last given.
func BenchmarkStoreOpen(b *testing.B) {
	h := newHistory()
	snapshots := map[world.ViewpointID]*xds.Snapshot{}
	for _, s := range fleet(100, 2000, func(_, i int) *xds.Resource { return assignment(fmt.Sprintf("service-%d", i), 0) }) {
		snapshots[s.Viewpoint] = s
	}
	h.write(b, noon, "", snapshots)
	b.SetBytes(int64(len(h.file)))
	b.ReportAllocs()
	for b.Loop() {
		if found, err := decode(h.file); err != nil || len(found.Snapshots) != len(snapshots) {
			b.Fatal(err)
		}
	}
}
