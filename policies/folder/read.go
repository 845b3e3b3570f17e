package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
)

const (
	// maxBytes bounds what is read of all files together.
	maxBytes = 64 << 20
	// maxTries is how often a folder is read that changes meanwhile.
	maxTries = 5
)

var errChanging = errors.New("it kept changing while it was read: write files elsewhere and rename them into place")

// Load reads a folder, or a single file, once. Where something is wrong with the policies, errors.As finds
// policies.Diagnostics with all of it.
func Load(path string) (*policies.Set, error) {
	content, err := read(path)
	if err != nil {
		return nil, err
	}
	return content.parse()
}

// content is what a folder held at one moment.
type content struct {
	dir   string
	list  listing
	files []policies.File
}

// parse turns content into a set. The error is never a nil Diagnostics.
func (c content) parse() (*policies.Set, error) {
	if len(c.files) == 0 {
		return nil, policies.Diagnostics{{File: c.dir, Message: "no *.yaml or *.yml file: write at least a Region, a Cluster, a Service and a Gateway"}}
	}
	set, diagnostics := policies.Parse(c.files)
	if len(diagnostics) > 0 {
		return nil, diagnostics
	}
	return set, nil
}

// sameFiles says whether two contents have the same files with the same bytes.
func (c content) sameFiles(o content) bool {
	return slices.EqualFunc(c.files, o.files, func(a, b policies.File) bool {
		return a.Name == b.Name && string(a.Bytes) == string(b.Bytes)
	})
}

// read reads all files of a folder as they were at one moment: it lists before and after, until the two agree.
func read(dir string) (content, error) {
	var err error
	for range maxTries {
		var c content
		if c, err = readOnce(dir); err == nil {
			return c, nil
		}
	}
	return content{}, fmt.Errorf("read policies in %s: %w", dir, err)
}

func readOnce(dir string) (content, error) {
	before, err := list(dir)
	if err != nil {
		return content{}, err
	}
	files, err := before.read(dir)
	if err != nil {
		return content{}, err
	}
	after, err := list(dir)
	if err != nil {
		return content{}, err
	}
	if !before.same(after) {
		return content{}, errChanging
	}
	return content{dir, after, files}, nil
}

// listing is which policy files there are, without their bytes, and which folders they were found in.
type listing struct {
	files   []entry
	folders []string
}

// entry is a file by its slash-separated path in the folder; "." where the folder is itself a file.
type entry struct {
	path string
	info fs.FileInfo
}

// same says whether nothing was written, replaced, added or removed between two listings.
func (l listing) same(o listing) bool {
	return slices.EqualFunc(l.files, o.files, func(a, b entry) bool {
		return a.path == b.path && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime()) && os.SameFile(a.info, b.info)
	})
}

// list walks the folder. Symbolic links to files are followed; the walk's order is by path.
func list(dir string) (listing, error) {
	var l listing
	root := os.DirFS(dir)
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return listing{files: []entry{{".", info}}, folders: []string{filepath.Dir(dir)}}, nil
	}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && isHidden(path.Base(name)):
			return skip(d)
		case d.IsDir():
			l.folders = append(l.folders, filepath.Join(dir, name))
			return nil
		}
		return l.add(root, name, d)
	})
	return l, err
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// add lists a file if it is a policy file, and refuses what would be overlooked.
func (l *listing) add(root fs.FS, name string, d fs.DirEntry) error {
	isLink := d.Type()&fs.ModeSymlink != 0
	if !isPolicyFile(name) && !isLink {
		return nil
	}
	info, err := fs.Stat(root, name)
	switch {
	case err != nil && !isPolicyFile(name):
		return nil // a link to nowhere that is no policy file
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a symbolic link to a folder, which is not followed: use a folder", name)
	case !isPolicyFile(name):
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	}
	l.files = append(l.files, entry{name, info})
	return nil
}

func isHidden(base string) bool { return strings.ContainsAny(base[:1], ".#~") }

func isPolicyFile(name string) bool {
	extension := path.Ext(name)
	return extension == ".yaml" || extension == ".yml"
}

// read reads the listed files, each up to one byte more than Parse accepts.
func (l listing) read(dir string) ([]policies.File, error) {
	var sum int64
	for _, e := range l.files {
		sum += e.info.Size()
	}
	if sum > maxBytes {
		return nil, fmt.Errorf("the files have %d bytes together, at most %d are read", sum, maxBytes)
	}
	files := make([]policies.File, len(l.files))
	for i, e := range l.files {
		name := filepath.Join(dir, filepath.FromSlash(e.path))
		bytes, err := readFile(name)
		if err != nil {
			return nil, err
		}
		files[i] = policies.File{Name: name, Bytes: bytes}
	}
	return files, nil
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, policies.MaxFileBytes+1))
}
