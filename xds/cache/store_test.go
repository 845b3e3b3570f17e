package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// noon is when things are published here.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// open opens a store in a folder.
func open(t *testing.T, dir string, onWrite func(StoreWrite)) (*Store, Contents) {
	t.Helper()
	s, found, err := OpenStore(StoreConfig{Dir: dir, OnWrite: onWrite, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s, found
}

// run runs a store until end is called.
func run(t *testing.T, s *Store) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// keep saves snapshots in a folder, as one run of a control plane does.
func keep(t *testing.T, dir string, snapshots ...*xds.Snapshot) {
	t.Helper()
	s, _ := open(t, dir, nil)
	end := run(t, s)
	for _, snapshot := range snapshots {
		s.Save(snapshot, noon)
	}
	end()
}

// restored is what a folder holds.
func restored(t *testing.T, dir string) contents {
	t.Helper()
	s, found := open(t, dir, nil)
	if err := errors.Join(found.Damage, s.Close()); err != nil {
		t.Error(err)
	}
	return found.plain()
}

// snapshot is a viewpoint's snapshot with one cluster, of some content.
func snapshot(v world.ViewpointID, content string) *xds.Snapshot {
	return xds.NewSnapshot(v, []*xds.Resource{serialised(xds.TypeCluster, "llama", content)})
}

func want(t *testing.T, got contents, snapshots ...*xds.Snapshot) {
	t.Helper()
	var saved []Saved
	for _, s := range snapshots {
		saved = append(saved, Saved{s, noon})
	}
	if diff := cmp.Diff(contentsOf(nil, saved), got); diff != "" {
		t.Error(diff)
	}
}

func TestStoreRestoresWhatWasSavedLast(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	keep(t, dir, snapshot("a", "1"), snapshot("b", "1"), snapshot("a", "2"))
	want(t, restored(t, dir), snapshot("a", "2"), snapshot("b", "1"))
	keep(t, dir, snapshot("b", "3"))
	want(t, restored(t, dir), snapshot("a", "2"), snapshot("b", "3"))
}

func TestStoreIsForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	keep(t, dir, snapshot("a", "1"))
	for path, mode := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, filepath.Join(dir, fileName): 0o600, filepath.Join(dir, lockName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v, want %v", path, info.Mode(), err, mode)
		}
	}
}

func TestStoreDropsWhatIsNotRetained(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, snapshot("a", "1"), snapshot("b", "1"))
	s, _ := open(t, dir, nil)
	end := run(t, s)
	s.Save(snapshot("c", "1"), noon)
	s.Retain(func(v world.ViewpointID) bool { return v == "b" })
	s.Save(snapshot("d", "1"), noon)
	end()
	want(t, restored(t, dir), snapshot("b", "1"), snapshot("d", "1"))
}

// A note is in force until there is another, and is kept when everything is written anew.
func TestStoreKeepsTheNoteAttachedLast(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ attach, want string }{{"", ""}, {"1", "1"}, {"", "1"}, {"2", "2"}, {"2", "2"}} {
		s, _ := open(t, dir, nil)
		end := run(t, s)
		s.Save(snapshot("a", c.attach), noon)
		if c.attach != "" {
			s.Attach([]byte("replaced before it is written, or written before"))
			s.Attach([]byte(c.attach))
		}
		end()
		if got := restored(t, dir).Note; got != c.want {
			t.Errorf("attached %q, then %q is restored, want %q", c.attach, got, c.want)
		}
	}
}

// The first change is written at once, others wait for the interval, in which the newest wins; the last is written on
// the way out.
func TestStoreWritesOnceAnInterval(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began, writes := time.Now(), []time.Duration{}
		s, _ := open(t, dir, func(w StoreWrite) {
			if w.Err != nil {
				t.Error(w.Err)
			}
			writes = append(writes, time.Since(began))
		})
		end := run(t, s)
		for i := range 250 {
			s.Save(snapshot("a", fmt.Sprint(i)), noon)
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		s.Save(snapshot("a", "last"), noon)
		end()
		if diff := cmp.Diff([]time.Duration{0, time.Second, 2 * time.Second, 2500 * time.Millisecond}, writes); diff != "" {
			t.Error(diff)
		}
	})
	want(t, restored(t, dir), snapshot("a", "last"))
}

func TestStoreThatHasNothingNewWritesNothing(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir)
	if _, err := os.Stat(filepath.Join(dir, fileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file, or %v", err)
	}
}

// The file does not grow without end, and holds what it should before and after it is written anew.
func TestStoreIsWrittenAnewWhenMostOfItIsOutOfDate(t *testing.T) {
	dir, whole := t.TempDir(), 0
	s, _ := open(t, dir, func(w StoreWrite) {
		if w.Whole {
			whole++
		}
	})
	large := strings.Repeat("x", 100_000)
	for i := range 40 {
		s.Save(snapshot("a", fmt.Sprint(i, large)), noon)
		s.write()
		got, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		found, err := decode(got)
		if err != nil {
			t.Fatal(err)
		}
		if content := found.Snapshots[0].Snapshot.Resource(xds.TypeCluster, "llama").Bytes; string(content) != fmt.Sprint(i, large) {
			t.Errorf("write %d says %.20s", i, content)
		}
		if len(got) > 2_000_000 {
			t.Errorf("%d bytes after %d writes", len(got), i)
		}
	}
	if whole < 2 || whole > 6 {
		t.Errorf("written anew %d times in 40 writes", whole)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCorruptFileIsSetAside(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, snapshot("a", "1"), snapshot("b", "1"))
	file := filepath.Join(dir, fileName)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(header)+100] ^= 1
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, found := open(t, dir, nil)
	if err := found.Damage; !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "set aside as "+corruptName) {
		t.Errorf("damage is %v", err)
	}
	if n := len(found.Snapshots); n > 0 {
		t.Errorf("%d snapshots of a corrupt file", n)
	}
	if aside, err := os.ReadFile(filepath.Join(dir, corruptName)); err != nil || !bytes.Equal(aside, content) {
		t.Errorf("what was set aside is not what was found: %v", err)
	}
	end := run(t, s)
	s.Save(snapshot("a", "2"), noon)
	end()
	want(t, restored(t, dir), snapshot("a", "2"))
}

func TestFileOfAnUnknownFormatIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	newer := []byte("meridian-published 7\nsomething better\n")
	if err := os.WriteFile(filepath.Join(dir, fileName), newer, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and the folder is given back
		_, _, err := OpenStore(StoreConfig{Dir: dir})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "it is 7, want 1; it is left alone") {
			t.Errorf("got %v", err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, fileName)); err != nil || !bytes.Equal(got, newer) {
		t.Errorf("the file is now %q, %v", got, err)
	}
}

func TestFolderIsForOneStore(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir, nil)
	if _, _, err := OpenStore(StoreConfig{Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, restored(t, dir))
}

func TestStoreNeedsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{"": "Dir is required", file: "not a directory"} {
		if _, _, err := OpenStore(StoreConfig{Dir: dir}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", dir, err, says)
		}
	}
}

// A crash while everything is written anew leaves a part of the new file, or the new file before the old one is replaced.
func TestWholeWriteThatIsInterruptedLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, snapshot("a", "1"))
	for _, part := range []string{"", header[:5], header + "123"} {
		if err := os.WriteFile(filepath.Join(dir, newName), []byte(part), 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, restored(t, dir), snapshot("a", "1"))
	}
	keep(t, dir, snapshot("a", "2"))
	want(t, restored(t, dir), snapshot("a", "2"))
}

// limitFileSize makes writes beyond a size fail, as a full disk does.
func limitFileSize(t *testing.T, bytes uint64) (lift func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(soft uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: soft, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
	}
	limit(bytes)
	return func() { limit(before.Cur) }
}

// When the disk is full, adding to the file and writing it anew both fail, what is on disk stays what it was, and when
// there is room again the newest is written, without anybody saving again.
func TestFullDiskIsSurvived(t *testing.T) {
	dir := t.TempDir()
	var writes []StoreWrite
	s, _ := open(t, dir, func(w StoreWrite) { writes = append(writes, w) })
	s.Save(snapshot("a", "1"), noon)
	if !s.Behind() || !s.write() || s.Behind() {
		t.Fatal(writes)
	}
	lift := limitFileSize(t, 4000)
	defer lift()
	for _, content := range []string{"2", "3"} {
		s.Save(snapshot("a", content+strings.Repeat("x", 10_000)), noon)
		if s.write() || !s.Behind() {
			t.Error("nothing failed")
		}
		file, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		found, err := decode(file)
		if err != nil {
			t.Fatal(err)
		}
		want(t, found.plain(), snapshot("a", "1"))
	}
	lift()
	if !s.write() || s.Behind() {
		t.Error(writes[len(writes)-1].Err)
	}
	for i, w := range writes {
		if failed := i == 1 || i == 2; failed != errors.Is(w.Err, syscall.EFBIG) {
			t.Errorf("write %d: %v", i, w.Err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	want(t, restored(t, dir), snapshot("a", "3"+strings.Repeat("x", 10_000)))
}

// A write that keeps failing is tried again ever more rarely, and nothing else stops.
func TestFailingWriteIsTriedAgainEverMoreRarely(t *testing.T) {
	dir := t.TempDir()
	obstacle := filepath.Join(dir, newName)
	if err := os.Mkdir(obstacle, 0o700); err != nil { // even root can't write to it
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), []time.Duration{}
		s, _ := open(t, dir, func(w StoreWrite) {
			if (w.Err == nil) != (time.Since(began) > 10*time.Second) {
				t.Errorf("after %v: %v", time.Since(began), w.Err)
			}
			tries = append(tries, time.Since(began))
		})
		end := run(t, s)
		s.Save(snapshot("a", "1"), noon)
		time.Sleep(10 * time.Second)
		if err := os.Remove(obstacle); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		end()
		if diff := cmp.Diff([]time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second}, tries); diff != "" {
			t.Error(diff)
		}
	})
	want(t, restored(t, dir), snapshot("a", "1"))
}

// asNobody takes from the calling goroutine the rights of root, who may write anywhere.
func asNobody(t *testing.T) (back func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		return func() {}
	}
	runtime.LockOSThread()
	become := func(uid int) {
		if err := syscall.Setfsuid(uid); err != nil {
			t.Error(err)
		}
	}
	become(65534)
	return func() { become(0); runtime.UnlockOSThread() }
}

// Where nothing can be written, what is there can still be read.
func TestReadOnlyFolderIsRead(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, snapshot("a", "1"))
	for path, mode := range map[string]fs.FileMode{filepath.Join(dir, lockName): 0o444, filepath.Join(dir, fileName): 0o444, dir: 0o555, filepath.Dir(dir): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	defer asNobody(t)()
	var failure error
	s, found := open(t, dir, func(w StoreWrite) { failure = w.Err })
	want(t, found.plain(), snapshot("a", "1"))
	s.Save(snapshot("a", "2"), noon)
	if s.write() || !errors.Is(failure, fs.ErrPermission) {
		t.Errorf("writing to a read-only folder: %v", failure)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
