package mmdb

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Run follows the file until the context ends, and then returns nil. It is to be called once. Without a Path there is
// nothing to follow.
func (d *Database) Run(ctx context.Context) error {
	if d.config.Path == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(d.config.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			d.poll()
		}
	}
}

// poll swaps the database if the file is another one than was last read. A file that could not be read is tried again
// each time; one that was refused, when it changes.
func (d *Database) poll() {
	found, err := os.Stat(d.config.Path)
	switch {
	case err != nil:
		d.seen, err = nil, fmt.Errorf("geo database: %w", err)
	case same(d.seen, found):
		return
	default:
		err = d.load(found)
	}
	d.tell(err)
}

// same says whether nobody has replaced or written the file in between. Stat follows links, so a swapped link is another
// file.
func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// maxFileSize is several times the largest database on offer.
const maxFileSize = 2 << 30

// load reads the file that was found, and swaps it in if it is good. If the file changes while it is read, the next
// poll finds it changed and reads it again.
func (d *Database) load(found os.FileInfo) error {
	path := d.config.Path
	if !found.Mode().IsRegular() || found.Size() > maxFileSize {
		return fmt.Errorf("geo database %s: it is not a regular file of at most %d bytes", path, maxFileSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("geo database: %w", err)
	}
	d.seen = found
	next, err := newEdition(data, d.config)
	if err != nil {
		return fmt.Errorf("geo database %s: %w", path, err)
	}
	d.current.Store(next)
	return nil
}

// tell counts and reports an outcome; the same error again is no news.
func (d *Database) tell(err error) {
	switch {
	case err == nil:
		d.told = ""
		d.reloads.Add(1)
	case err.Error() == d.told:
		return
	default:
		d.told = err.Error()
		d.reloadErrors.Add(1)
	}
	if d.config.OnReload != nil {
		d.config.OnReload(d.Info(), err)
	}
}
