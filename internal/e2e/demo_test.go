package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/internal/demo"
)

// What `make demo` shows must hold wherever the tests run: nearest wins, a full cluster spills, a killed and a silent one
// are not noticed, recovery does not swing, and pinned data is refused rather than sent abroad.
func TestEveryActOfTheDemoHolds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r, err := demo.Run(ctx, demo.Config{Live: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if !c.Passed {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	if r.Passed+r.Failed != 7 {
		t.Errorf("%d checks", r.Passed+r.Failed)
	}
}
