package mmdb

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// outcome is what OnReload was told.
type outcome struct {
	info Info
	err  error
}

// follow serves a file and runs until the test ends; what OnReload is told comes on the channel.
func follow(t *testing.T, path string) (*Database, <-chan outcome) {
	t.Helper()
	told := make(chan outcome)
	ctx, cancel := context.WithCancel(t.Context())
	db, err := New(Config{Path: path, PollInterval: time.Millisecond, OnReload: func(info Info, err error) {
		select {
		case told <- outcome{info, err}:
		case <-ctx.Done():
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- db.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return db, told
}

func filed(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "country.mmdb")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The file is replaced by another, by garbage, by nothing, and by a good one again. What serves is always good.
func TestDatabaseFollowsItsFileAndKeepsTheLastGoodOne(t *testing.T) {
	path := filed(t, germany(t))
	db, told := follow(t, path)
	if got := open81(t, db); got != "DE" {
		t.Fatalf("at first: %q", got)
	}

	replace(t, path, france(t))
	if got := <-told; got.err != nil || got.info.Type != "country ipvAll" || open81(t, db) != "FR" {
		t.Fatalf("after a good file: %+v, %q", got, open81(t, db))
	}

	replace(t, path, []byte("garbage"))
	if got := <-told; got.err == nil || !strings.Contains(got.err.Error(), "it is no whole MaxMind DB file") || got.info.Type != "country ipvAll" || open81(t, db) != "FR" {
		t.Fatalf("after garbage: %+v, %q", got, open81(t, db))
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := <-told; !errors.Is(got.err, os.ErrNotExist) || open81(t, db) != "FR" {
		t.Fatalf("after no file: %+v, %q", got, open81(t, db))
	}

	replace(t, path, germany(t))
	if got := <-told; got.err != nil || open81(t, db) != "DE" {
		t.Fatalf("after a good file again: %+v, %q", got, open81(t, db))
	}
	if got := db.Stats(); got.Reloads != 2 || got.ReloadErrors != 2 {
		t.Errorf("counted %+v", got)
	}
}

// Kubernetes mounts a folder behind a link and swaps the link.
func TestDatabaseFollowsASwappedLink(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "..data")
	for name, data := range map[string][]byte{"one": germany(t), "two": france(t)} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "country.mmdb"), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	db, told := follow(t, filepath.Join(link, "country.mmdb"))
	if err := os.Symlink("two", link+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got.err != nil || open81(t, db) != "FR" {
		t.Errorf("after the swap: %+v, %q", got, open81(t, db))
	}
}

// A publisher that writes in place is seen half way; the half is refused, and the whole is taken.
func TestHalfWrittenFileIsRefusedUntilItIsWhole(t *testing.T) {
	path := filed(t, germany(t))
	db, told := follow(t, path)
	whole := france(t)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(whole[:len(whole)/2]); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got.err == nil || open81(t, db) != "DE" {
		t.Fatalf("half way: %+v, %q", got, open81(t, db))
	}
	if _, err := file.Write(whole[len(whole)/2:]); err != nil {
		t.Fatal(err)
	}
	for got := range told {
		if got.err == nil {
			break
		}
	}
	if got := open81(t, db); got != "FR" {
		t.Errorf("at last: %q", got)
	}
}

func TestTheSameErrorIsToldOnce(t *testing.T) {
	path := filed(t, germany(t))
	var told []error
	db, err := New(Config{Path: path, OnReload: func(_ Info, err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	db.poll()
	if len(told) != 0 {
		t.Errorf("a file that did not change was told of: %v", told)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		db.poll()
	}
	if len(told) != 1 || !errors.Is(told[0], os.ErrNotExist) {
		t.Errorf("a file that is away was told of as %v", told)
	}
	replace(t, path, germany(t))
	for range 3 {
		db.poll()
	}
	if len(told) != 2 || told[1] != nil {
		t.Errorf("the file that came back was told of as %v", told[1:])
	}
}

// Lookups go on while the database is swapped under them. Each has an answer, and it is that of one database.
func TestNoLookupIsLostDuringSwaps(t *testing.T) {
	path := filed(t, germany(t))
	db, told := follow(t, path)
	ctx, stop := context.WithCancel(t.Context())
	var lookers sync.WaitGroup
	for range 4 {
		lookers.Go(func() {
			for ctx.Err() == nil {
				place, network, err := db.Lookup(netip.MustParseAddr("81.2.69.142"))
				if err != nil || place.Country != "DE" && place.Country != "FR" || network != netip.MustParsePrefix("81.0.0.0/8") {
					t.Errorf("got %v, %v, %v", place, network, err)
					return
				}
			}
		})
	}
	for i := range 100 {
		replace(t, path, [][]byte{france(t), germany(t), []byte("garbage")}[i%3])
		if got := <-told; (got.err != nil) != (i%3 == 2) {
			t.Errorf("swap %d: %v", i, got.err)
		}
	}
	stop()
	lookers.Wait()
}

func TestRunWithoutAFileWaitsForTheEnd(t *testing.T) {
	db, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Run(ctx); err != nil {
		t.Error(err)
	}
}
