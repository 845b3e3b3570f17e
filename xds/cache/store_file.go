package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// The files in a store's folder.
const (
	fileName    = "published.log"
	newName     = "published.new"     // a whole file that is being written
	corruptName = "published.corrupt" // the last one that was set aside
	lockName    = "lock"
)

// ErrInUse says that another process has the store open.
var ErrInUse = errors.New("in use by another process: each replica needs a folder of its own")

// slack is how much a file may grow beyond twice its size when it was last written whole.
const slack = 1 << 20

// storeFile is a store's file. It grows by a line a write, and is written anew when most of it may be out of date. One
// goroutine owns it.
type storeFile struct {
	dir  string
	lock *os.File // nil where the folder can't be written to

	open    *os.File // nil: the next write is a whole one
	encoder *encoder // of open
	size    int      // of open
	whole   int      // size when it was written whole
	failed  bool     // what was to be written last is not in it
}

// openStoreFile opens a folder and reads the file in it.
func openStoreFile(dir string) (*storeFile, Contents, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, Contents{}, fmt.Errorf("store: %w", err)
	}
	f := &storeFile{dir: dir}
	if err := f.hold(); err != nil {
		return nil, Contents{}, fmt.Errorf("store %s: %w", dir, err)
	}
	found, err := f.read()
	if err != nil {
		return nil, Contents{}, errors.Join(err, f.close())
	}
	return f, found, nil
}

// hold keeps other processes out. Who can't write the lock can't write the rest: then there is only reading.
func (f *storeFile) hold() error {
	lock, err := os.OpenFile(f.path(lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return errors.Join(err, lock.Close())
	}
	f.lock = lock
	return nil
}

func (f *storeFile) path(name string) string { return filepath.Join(f.dir, name) }

// read reads what is there, and sets it aside where it is corrupt.
func (f *storeFile) read() (Contents, error) {
	content, err := os.ReadFile(f.path(fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return Contents{}, nil
	}
	if err != nil {
		return Contents{}, fmt.Errorf("store: %w", err)
	}
	found, err := decode(content)
	switch {
	case errors.Is(err, ErrFormat):
		return Contents{}, fmt.Errorf("store %s: %w; it is left alone: run the version that wrote it, or move it away", f.path(fileName), err)
	case err != nil:
		err = fmt.Errorf("store %s: %w; it is set aside as %s", f.path(fileName), err, corruptName)
		return Contents{Damage: errors.Join(err, f.setAside())}, nil
	}
	return found, nil
}

func (f *storeFile) setAside() error {
	if err := os.Rename(f.path(fileName), f.path(corruptName)); err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	return f.syncDir()
}

// current says whether all that was to be written is in the file.
func (f *storeFile) current() bool { return !f.failed }

// overgrown says whether the next write should be a whole one.
func (f *storeFile) overgrown() bool { return f.open == nil || f.size > 2*f.whole+slack }

// append adds a line. It returns how many bytes it wrote. After an error the next write must be a whole one.
func (f *storeFile) append(b batch) (int, error) {
	line, err := f.encoder.encode(b, map[*xds.Resource]int{})
	if err == nil {
		_, err = f.open.Write(line)
	}
	if err == nil {
		err = f.open.Sync()
	}
	f.failed = err != nil
	if err != nil {
		return 0, fmt.Errorf("store: add to %s: %w", fileName, errors.Join(err, f.leave()))
	}
	f.size += len(line)
	return len(line), nil
}

// rewrite replaces the file by one that holds just a note and what is held. A crash leaves the old one or the new one.
func (f *storeFile) rewrite(note []byte, held map[world.ViewpointID]Saved) (int, error) {
	f.failed = true
	if err := f.leave(); err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	file, err := os.OpenFile(f.path(newName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	encoder := newEncoder()
	size, err := writeWhole(file, encoder, batches(note, held))
	if err == nil {
		err = os.Rename(f.path(newName), f.path(fileName))
	}
	if err == nil {
		err = f.syncDir()
	}
	if err != nil {
		return 0, fmt.Errorf("store: write %s: %w", fileName, errors.Join(err, file.Close()))
	}
	f.open, f.encoder, f.size, f.whole, f.failed = file, encoder, size, size, false
	return size, nil
}

// batches are the lines of a whole file: the note, and then a line for each viewpoint, which bounds what is in memory.
func batches(note []byte, held map[world.ViewpointID]Saved) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		if len(note) > 0 && !yield(batch{note: note}) {
			return
		}
		for _, v := range slices.Sorted(maps.Keys(held)) {
			after := held[v]
			if !yield(batch{changes: []change{{viewpoint: v, after: &after}}}) {
				return
			}
		}
	}
}

// writeWhole writes a header and lines, and waits until they are on disk.
func writeWhole(file *os.File, encoder *encoder, lines iter.Seq[batch]) (int, error) {
	size, err := file.WriteString(header)
	if err != nil {
		return 0, err
	}
	known := map[*xds.Resource]int{}
	for b := range lines {
		line, err := encoder.encode(b, known)
		if err != nil {
			return 0, err
		}
		if _, err := file.Write(line); err != nil {
			return 0, err
		}
		size += len(line)
	}
	return size, file.Sync()
}

// syncDir makes a rename last.
func (f *storeFile) syncDir() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// leave closes the open file.
func (f *storeFile) leave() error {
	if f.open == nil {
		return nil
	}
	err := f.open.Close()
	f.open, f.encoder = nil, nil
	return err
}

// close gives the folder back.
func (f *storeFile) close() error {
	err := f.leave()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
		f.lock = nil
	}
	return err
}
