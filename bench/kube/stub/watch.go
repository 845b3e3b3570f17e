package stub

import (
	"bufio"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"
)

// bookmarkEvery is how often a watch is told how far it is.
const bookmarkEvery = time.Minute

// longest is how long a watch lasts that does not say.
const longest = 30 * time.Minute

// stream is a watch that is being served.
type stream struct {
	*query
	of      *collection
	buffer  *bufio.Writer
	encoder *restwatch.Encoder
	out     *http.ResponseController
}

// watch tells changes until the client goes, or its time is over.
func (q *query) watch(w http.ResponseWriter, r *http.Request, of *collection, e encoding) error {
	if q.version != 0 && q.version < firstVersion && !q.initial() {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", q.version, firstVersion))
	}
	w.Header().Set("Content-Type", e.MediaType+";stream=watch")
	s := &stream{query: q, of: of, buffer: bufio.NewWriterSize(w, 64<<10), out: http.NewResponseController(w)}
	s.encoder = e.stream(s.buffer)
	if s.out.Flush() == nil { // else the client has gone
		s.serve(r)
	}
	return nil
}

func (s *stream) serve(r *http.Request) {
	version := s.version
	if s.initial() || version == 0 {
		var err error
		if version, err = s.sendAll(); err != nil {
			return
		}
	}
	lasts := longest
	if t := s.options.TimeoutSeconds; t != nil && *t > 0 {
		lasts = time.Duration(*t) * time.Second
	}
	over := time.NewTimer(lasts)
	defer over.Stop()
	bookmarks := time.NewTicker(bookmarkEvery)
	defer bookmarks.Stop()
	for {
		later, more := s.of.since(version)
		for _, e := range later {
			version = e.version
			if s.send(watch.Modified, e.object) != nil {
				return
			}
		}
		if s.flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-over.C:
			return
		case <-bookmarks.C:
			if s.bookmark(version, false) != nil {
				return
			}
		case <-more:
		}
	}
}

// sendAll sends what there is, and then that this was all.
func (s *stream) sendAll() (version int64, err error) {
	version, changed := s.of.snapshot(0)
	for i := range s.of.count {
		if err := s.send(watch.Added, s.of.get(i, changed)); err != nil {
			return 0, err
		}
	}
	if !s.initial() {
		return version, s.flush()
	}
	return version, s.bookmark(version, true)
}

func (s *stream) send(t watch.EventType, o object) error {
	if !s.matches(s.of.kind, o) {
		return nil
	}
	s.served.note()
	return s.encoder.Encode(&watch.Event{Type: t, Object: o})
}

func (s *stream) bookmark(version int64, ended bool) error {
	if !s.options.AllowWatchBookmarks {
		return nil
	}
	e := s.of.bookmark(version, ended)
	if err := s.encoder.Encode(&e); err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) flush() error {
	if err := s.buffer.Flush(); err != nil {
		return err
	}
	return s.out.Flush()
}
