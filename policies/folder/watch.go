package folder

import (
	"fmt"

	"github.com/fsnotify/fsnotify"
)

// watcher gives the events of folders; without the means to watch its channels are nil, and give none.
type watcher struct {
	inner  *fsnotify.Watcher
	events <-chan fsnotify.Event
	errors <-chan error
	fail   func(error)
}

// watch begins to watch, as far as that goes.
func (f *Folder) watch() *watcher {
	w := &watcher{fail: f.noEvents}
	inner, err := f.newWatcher()
	if err != nil {
		f.noEvents(err)
		return w
	}
	w.inner, w.events, w.errors = inner, inner.Events, inner.Errors
	return w
}

// follow watches these folders. To watch one again is cheap, and finds one that was replaced by another of its name.
func (w *watcher) follow(folders []string) {
	if w.inner == nil {
		return
	}
	var failed error
	for _, folder := range folders {
		if err := w.inner.Add(folder); err != nil {
			failed = err
		}
	}
	w.fail(failed)
}

func (w *watcher) close() {
	if w.inner != nil {
		w.inner.Close() // only says whether it was closed before
	}
}

// noEvents notes why there are no events, and tells when that is new.
func (f *Folder) noEvents(err error) {
	s := f.Status()
	if (err == nil) == (s.NoEvents == nil) {
		return
	}
	s.NoEvents = nil
	if err != nil {
		s.NoEvents = fmt.Errorf("policy folder %s is polled every %s instead of watched (raise fs.inotify.max_user_watches and max_user_instances): %w", f.config.Dir, f.config.Poll, err)
		f.config.OnError(s.NoEvents)
	}
	f.status.Store(&s)
}
