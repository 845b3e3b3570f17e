package folder

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/meridian-mesh/meridian/policies"
)

func TestLoadReadsPolicyFilesOnly(t *testing.T) {
	dir := policyFolder(t)
	for _, name := range []string{"README.md", ".hidden.yaml", "#rest.yaml#", "~rest.yaml", "rest.yaml~", ".git/config.yaml", ".#rest.yaml"} {
		write(t, dir, name, "not: policy")
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	set, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := set.Regions[0].Origin.File, filepath.Join(dir, "rest.yaml"); got != want {
		t.Errorf("origin %q, want %q", got, want)
	}
}

func TestLoadReadsASingleFile(t *testing.T) {
	examples, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples (%v)", err)
	}
	for _, path := range examples {
		if _, err := Load(path); err != nil {
			t.Error(err)
		}
	}
}

func TestLoadFollowsALinkToTheFolder(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(policyFolder(t), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(link); err != nil {
		t.Fatal(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"an empty folder": {func(t *testing.T, dir string) { remove(t, dir, "rest.yaml", "gateway.yml") }, "no *.yaml or *.yml file"},
		"no folder":       {func(t *testing.T, dir string) { remove(t, dir, "rest.yaml", "gateway.yml", ".") }, "no such file or directory"},
		"a file over the limit": {func(t *testing.T, dir string) {
			write(t, dir, "large.yaml", strings.Repeat("# filler\n", policies.MaxFileBytes/9+1))
		}, "large.yaml: the file is larger than 4194304 bytes"},
		"files over the limit together": {func(t *testing.T, dir string) {
			write(t, dir, "sparse.yaml", "")
			if err := os.Truncate(filepath.Join(dir, "sparse.yaml"), maxBytes); err != nil {
				t.Fatal(err)
			}
		}, "at most 67108864 are read"},
		"a link to a folder": {func(t *testing.T, dir string) { symlink(t, t.TempDir(), filepath.Join(dir, "sub")) }, "sub is a symbolic link to a folder"},
		"a link to nowhere":  {func(t *testing.T, dir string) { symlink(t, "nowhere", filepath.Join(dir, "x.yaml")) }, "x.yaml: no such file"},
		"a pipe": {func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "pipe.yaml is not a regular file"},
		"two broken files at once": {func(t *testing.T, dir string) {
			write(t, dir, "a.yaml", "[")
			write(t, dir, "b.yaml", "kind: Regio\napiVersion: meridian.dev/v1alpha1\n")
		}, "did you mean \"Region\""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := policyFolder(t)
			c.spoil(t, dir)
			set, err := Load(dir)
			if err == nil || set != nil {
				t.Fatal("loaded")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want it to contain %q", err, c.want)
			}
		})
	}
}

func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func symlink(t *testing.T, old, new string) {
	t.Helper()
	if err := os.Symlink(old, new); err != nil {
		t.Fatal(err)
	}
}

func TestDiagnosticsOfAllFilesComeTogether(t *testing.T) {
	dir := policyFolder(t)
	write(t, dir, "a.yaml", "[")
	write(t, dir, "b/c.yaml", "kind: [x]")
	_, err := Load(dir)
	var diagnostics policies.Diagnostics
	if !errors.As(err, &diagnostics) {
		t.Fatalf("error %v, want diagnostics", err)
	}
	for _, name := range []string{"a.yaml", "b/c.yaml"} {
		if !slices.ContainsFunc(diagnostics, func(d policies.Diagnostic) bool { return d.File == filepath.Join(dir, name) }) {
			t.Errorf("nothing about %s in:\n%v", name, err)
		}
	}
}

// What was listed before and after must be the same files, or what was read does not belong together.
func TestAListingNoticesEveryChange(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"written":  func(t *testing.T, dir string) { write(t, dir, "rest.yaml", rest+"# more\n") },
		"replaced": func(t *testing.T, dir string) { replace(t, dir, "rest.yaml", rest) },
		"removed":  func(t *testing.T, dir string) { remove(t, dir, "rest.yaml") },
		"added":    func(t *testing.T, dir string) { write(t, dir, "sub/new.yaml", rest) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := policyFolder(t)
			before, err := list(dir)
			if err != nil {
				t.Fatal(err)
			}
			if again, _ := list(dir); !before.same(again) {
				t.Error("differs without a change")
			}
			change(t, dir)
			if after, _ := list(dir); before.same(after) {
				t.Error("the change was not noticed")
			}
		})
	}
}

// Two files change together by Kubernetes' one rename, while they are read: never is one old and the other new.
func TestWhatIsReadBelongsTogether(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		symlink(t, filepath.Join("..data", name), filepath.Join(dir, name))
	}
	for _, version := range []string{"..1", "..2"} {
		write(t, dir, version+"/a.yaml", version)
		write(t, dir, version+"/b.yaml", version)
	}
	swap := func(version string) error {
		temporary := filepath.Join(dir, "..data_tmp")
		return errors.Join(os.Symlink(version, temporary), os.Rename(temporary, filepath.Join(dir, "..data")))
	}
	if err := swap("..1"); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		swapped := make(chan error, 1)
		go func() { swapped <- swap([]string{"..2", "..1"}[i%2]) }()
		c, err := read(dir)
		if err := errors.Join(err, <-swapped); err != nil {
			t.Fatal(err)
		}
		if a, b := string(c.files[0].Bytes), string(c.files[1].Bytes); a != b {
			t.Fatalf("a.yaml is of version %s and b.yaml of %s", a, b)
		}
	}
}

func TestAFileThatVanishesIsNotLeftOut(t *testing.T) {
	dir := policyFolder(t)
	before, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, dir, "rest.yaml")
	if _, err := before.read(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that a listed file is gone", err)
	}
}
