package trial

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test's own binary play the child: it doubles what it is told, up to a point.
func TestMain(m *testing.M) {
	if Role() == "" {
		os.Exit(m.Run())
	}
	if Obey(context.Background(), func(_ context.Context, n int) (int, error) {
		if n > 9 {
			return 0, errors.New("too much")
		}
		return 2 * n, nil
	}) != nil {
		os.Exit(1)
	}
}

func TestAChildObeys(t *testing.T) {
	p, err := Start(t.Context(), "doubler")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Tell[int, int](p, "double", 4); err != nil || got != 8 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := Tell[int, int](p, "double", 10); err == nil || !strings.Contains(err.Error(), "double: too much") {
		t.Errorf("%v", err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := Tell[int, int](p, "double", 4); err == nil {
		t.Error("one that has ended answers")
	}
}

func TestUsageGrows(t *testing.T) {
	before, err := Used(true)
	if err != nil {
		t.Fatal(err)
	}
	held := make([]byte, 32<<20)
	for i := range held {
		held[i] = 1
	}
	after, err := Used(true)
	if err != nil {
		t.Fatal(err)
	}
	if after.Heap-before.Heap < 30<<20 || after.Peak < after.RSS || after.CPU < before.CPU || held[0] != 1 {
		t.Errorf("%+v, then %+v", before, after)
	}
}
