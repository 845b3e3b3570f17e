package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// words writes resources as "name=version".
func words(resources []*Resource) []string {
	var all []string
	for _, r := range resources {
		all = append(all, r.Name+"="+r.Version)
	}
	return all
}

// set makes a set of words.
func set(all ...string) *Set {
	var resources []*Resource
	for _, w := range all {
		name, version, _ := strings.Cut(w, "=")
		resources = append(resources, plain(TypeCluster, name, version))
	}
	return NewSet(resources)
}

func TestSetWith(t *testing.T) {
	base := set("a=1", "b=1", "d=1")
	for name, c := range map[string]struct {
		put    []string
		remove []string
		want   []string
	}{
		"nothing":                 {nil, nil, []string{"a=1", "b=1", "d=1"}},
		"a new version":           {[]string{"b=2"}, nil, []string{"a=1", "b=2", "d=1"}},
		"one more":                {[]string{"c=1"}, nil, []string{"a=1", "b=1", "c=1", "d=1"}},
		"one before all":          {[]string{"A=1"}, nil, []string{"A=1", "a=1", "b=1", "d=1"}},
		"one less":                {nil, []string{"b"}, []string{"a=1", "d=1"}},
		"one that was not there":  {nil, []string{"x"}, []string{"a=1", "b=1", "d=1"}},
		"put wins over removed":   {[]string{"a=2"}, []string{"a"}, []string{"a=2", "b=1", "d=1"}},
		"all are taken, one put":  {[]string{"z=1"}, []string{"a", "b", "d"}, []string{"z=1"}},
		"everything is taken out": {nil, []string{"a", "b", "d"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := base.With(slices.Collect(set(c.put...).All()), c.remove)
			if diff := cmp.Diff(c.want, words(slices.Collect(got.All()))); diff != "" {
				t.Error(diff)
			}
			if want := set(c.want...); got.Version() != want.Version() || got.Len() != want.Len() {
				t.Errorf("version %s and %d resources, made at once %s and %d", got.Version(), got.Len(), want.Version(), want.Len())
			}
		})
	}
	if diff := cmp.Diff([]string{"a=1", "b=1", "d=1"}, words(slices.Collect(base.All()))); diff != "" {
		t.Errorf("the set itself changed:\n%s", diff)
	}
}

func TestNoSetIsAnEmptySet(t *testing.T) {
	var none *Set
	if none.Len() != 0 || none.Find("a") != nil || none.Mortal() || none.Version() != set().Version() {
		t.Error("nil is not like an empty set")
	}
	if got := none.With([]*Resource{plain(TypeCluster, "a", "1")}, nil); got.Find("a") == nil {
		t.Error("nothing can be put into nil")
	}
	changed, gone := Diff(none, set("a=1"))
	if len(changed) != 1 || len(gone) != 0 {
		t.Errorf("%v changed, %v gone", changed, gone)
	}
}

func TestResourcesAreFoundByAlias(t *testing.T) {
	host := Serialised(TypeVirtualHost, "routes/shop", "1", nil, WithAliases("routes/shop.example", "routes/*.shop.example"))
	s := NewSet([]*Resource{host, plain(TypeVirtualHost, "routes/other", "1")})
	if got := s.Find("routes/shop.example"); got != host {
		t.Errorf("got %v", got)
	}
	moved := Serialised(TypeVirtualHost, "routes/shop", "2", nil, WithAliases("routes/shop.test"))
	s = s.With([]*Resource{moved}, nil)
	if s.Find("routes/shop.example") != nil || s.Find("routes/shop.test") != moved {
		t.Error("an alias outlives its resource's version")
	}
}

// What a large set is made into in small steps is what would be made at once, whatever the steps, and a comparison tells
// exactly the steps.
func TestSetsAreWhatTheirStepsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := map[string]string{}
		var all []*Resource
		for i := range rapid.IntRange(0, 500).Draw(t, "size") {
			name := fmt.Sprintf("n%04d", i*2)
			model[name] = "0"
			all = append(all, plain(TypeCluster, name, "0"))
		}
		s := NewSet(all)
		for step := range rapid.IntRange(1, 20).Draw(t, "steps") {
			before, old := s, snapshotOf(model)
			var put []*Resource
			var remove []string
			for range rapid.IntRange(0, 40).Draw(t, "edits") {
				name := fmt.Sprintf("n%04d", rapid.IntRange(0, 1000).Draw(t, "name"))
				if rapid.Bool().Draw(t, "put") {
					version := fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "version"))
					put = append(put, plain(TypeCluster, name, version))
					model[name] = version
				} else if _, again := find(put, name); !again {
					remove = append(remove, name)
					delete(model, name)
				}
			}
			s = s.With(put, remove)
			want := snapshotOf(model)
			if diff := cmp.Diff(want, words(slices.Collect(s.All()))); diff != "" {
				t.Fatalf("step %d (-want +got):\n%s", step, diff)
			}
			if s.Len() != len(model) || s.Version() != set(want...).Version() {
				t.Fatalf("step %d: %d resources, want %d; version %s, want %s", step, s.Len(), len(model), s.Version(), set(want...).Version())
			}
			changed, gone := Diff(before, s)
			for _, r := range changed {
				if slices.Contains(old, r.Name+"="+r.Version) || model[r.Name] != r.Version {
					t.Fatalf("step %d: %s=%s is said to have changed", step, r.Name, r.Version)
				}
			}
			for _, r := range gone {
				if _, there := model[r.Name]; there {
					t.Fatalf("step %d: %s is said to be gone", step, r.Name)
				}
			}
			if got := before.With(changed, namesOf(gone)); got.Version() != s.Version() {
				t.Fatalf("step %d: what is said to differ does not make the one into the other", step)
			}
		}
	})
}

func snapshotOf(model map[string]string) []string {
	var all []string
	for name, version := range model {
		all = append(all, name+"="+version)
	}
	slices.Sort(all)
	return all
}

func find(resources []*Resource, name string) (*Resource, bool) {
	i := slices.IndexFunc(resources, func(r *Resource) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return resources[i], true
}

func namesOf(resources []*Resource) []string {
	names := make([]string, len(resources))
	for i, r := range resources {
		names[i] = r.Name
	}
	return names
}

// A change costs its chunk, not the set.
func BenchmarkSetWith(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		var all []*Resource
		for i := range size {
			all = append(all, plain(TypeCluster, fmt.Sprintf("n%06d", i), "0"))
		}
		s := NewSet(all)
		other := []*Resource{plain(TypeCluster, fmt.Sprintf("n%06d", size/2), "1")}
		b.Run(fmt.Sprintf("resources=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if changed, _ := Diff(s, s.With(other, nil)); len(changed) != 1 {
					b.Fatal(changed)
				}
			}
		})
	}
}
