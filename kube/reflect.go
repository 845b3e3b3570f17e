package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// reflection keeps something up to date with the objects of one kind.
type reflection[T meta.Object] struct {
	name string
	from cache.ListerWatcher
	kind runtime.Object // an empty one
	// slim takes from an object what is not used, while many wait to be taken in. Nil: nothing.
	slim func(T)
	// replace takes in all that there are, put one that is new or changed, and remove says which is gone. They don't block.
	replace func([]T)
	put     func(T)
	remove  func(T)
	// failed is told why objects can't be read; they are asked for again, later and later.
	failed func(error)
}

// backoff is how long a cluster that refuses is left alone: at first briefly, then up to about ten seconds.
var backoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 10 * time.Second}

// run reads until ctx ends.
func (r *reflection[T]) run(ctx context.Context, log *slog.Logger) {
	quiet := logr.FromSlogHandler(log.Handler()).V(4) // what matters of it goes to failed
	ctx = logr.NewContext(ctx, quiet)
	reflector := cache.NewReflectorWithOptions(r.from, r.kind, reflectionStore[T]{r}, cache.ReflectorOptions{Name: r.name, Logger: &quiet})
	for steps := backoff; ctx.Err() == nil; {
		err := reflector.ListAndWatchWithContext(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil: // a watch that ended as they do
			steps = backoff
		default:
			r.failed(err)
		}
		pause(ctx, steps.Step())
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// reflectionStore is the reflection as client-go's reflector writes to it.
type reflectionStore[T meta.Object] struct{ r *reflection[T] }

// Add takes in a new object.
func (s reflectionStore[T]) Add(o any) error { return s.each(o, s.r.put) }

// Update takes in a changed object.
func (s reflectionStore[T]) Update(o any) error { return s.each(o, s.r.put) }

// Delete says that an object is gone.
func (s reflectionStore[T]) Delete(o any) error { return s.each(o, s.r.remove) }

func (s reflectionStore[T]) each(o any, do func(T)) error {
	t, ok := o.(T)
	if !ok {
		return fmt.Errorf("%s: the API server sent a %T", s.r.name, o)
	}
	do(t)
	return nil
}

// Replace takes in all that there are.
func (s reflectionStore[T]) Replace(all []any, _ string) error {
	objects := make([]T, len(all))
	for i, o := range all {
		t, ok := o.(T)
		if !ok {
			return fmt.Errorf("%s: the API server sent a %T", s.r.name, o)
		}
		objects[i] = t
	}
	s.r.replace(objects)
	return nil
}

// Resync has nothing to do: nothing is derived from time.
func (s reflectionStore[T]) Resync() error { return nil }

// Transformer slims objects that wait until all are there.
func (s reflectionStore[T]) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if t, ok := o.(T); ok && s.r.slim != nil {
			s.r.slim(t)
		}
		return o, nil
	}
}
