package health_test

import (
	"math"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/world"
)

func inFlight(s *site) float64 {
	total := 0.0
	for _, d := range s.writer.Current().DemandFor("chat") {
		total += d.Demand.InFlight
	}
	return total
}

func near(got, want float64) bool { return math.Abs(got-want) <= 0.01*want }

// Each step: after this long, these reports; then this much is in flight in all.
func TestDemandHistory(t *testing.T) {
	left := math.Exp(-1.0 / 3) // of a step, after a second
	s := newSite(t)
	for i, step := range []struct {
		name    string
		after   time.Duration
		reports []health.Signal
		want    float64
	}{
		{"nobody has reported", second, nil, 0},
		{"the first report is taken as it is", 0, []health.Signal{report("fra", 5, 100)}, 100},
		{"a steady demand is steady", second, []health.Signal{report("fra", 5, 100)}, 100},
		{"a step shows by the time constant", second, []health.Signal{report("fra", 5, 200)}, 200 - 100*left},
		{"for some seconds silence says nothing", 3 * second, nil, 200 - 100*left},
		{"then demand fades", 1, nil, (200 - 100*left) * math.Exp(-1)},
		{"not at every look", second, nil, (200 - 100*left) * math.Exp(-1)},
		{"but on and on", 2*second + 1, nil, (200 - 100*left) * math.Exp(-2)},
	} {
		s.judge(step.after, step.reports...)
		if got := inFlight(s); !near(got, step.want) {
			t.Errorf("step %d, %s: %v in flight, want %v", i+1, step.name, got, step.want)
		}
	}
	for range 20 {
		s.judge(4 * second)
	}
	if got := s.writer.Current().DemandParts("chat"); len(got) != 0 {
		t.Errorf("demand that nobody reports is never forgotten: %v", got)
	}
}

func TestDemandThatMovesKeepsItsSum(t *testing.T) {
	s := newSite(t)
	s.judge(second, report("fra", 5, 100))
	for range 10 {
		s.judge(second, report("fra", 0, 0), report("iad", 5, 100))
		if got := inFlight(s); !near(got, 100) {
			t.Fatalf("while 100 requests move to another cluster, %v seem to be in flight", got)
		}
	}
	parts := s.writer.Current().DemandParts("chat")
	if len(parts) != 2 || parts[0].Demand.InFlight > 5 || parts[1].Demand.InFlight < 95 {
		t.Errorf("after ten seconds the parts are %v", parts)
	}
}

func TestDemandIsASumOverViewpointsNeverMixed(t *testing.T) {
	s := newSite(t)
	other := report("fra", 5, 7).(health.Reported)
	other.Viewpoint = "gateway/iad/iad"
	s.judge(second, report("fra", 5, 100), other, report("iad", 10, 20))
	demand := s.writer.Current().DemandFor("chat")
	if len(demand) != 2 || demand[0].Demand.InFlight != 120 || demand[0].Demand.RequestsPerSecond != 15 || demand[1].Demand.InFlight != 7 {
		t.Errorf("demand is %v", demand)
	}
}

func TestReportsThatCannotBe(t *testing.T) {
	s := newSite(t)
	broken := report("fra", math.MaxUint64, math.MaxUint64).(health.Reported)
	s.judge(second, broken)
	if got := inFlight(s); !(got <= 1e9) {
		t.Errorf("a broken counter claims %v requests in flight", got)
	}
	s = newSite(t)
	broken.Interval = 0
	if s.judge(second, broken); inFlight(s) != 0 {
		t.Error("a report of no time has given demand")
	}
}

func TestServedPoolsAreNoted(t *testing.T) {
	s := newSite(t)
	s.judge(second, report("fra", 1, 0))
	if got := s.writer.Current().Pool(fra).ServedAt; !got.Equal(start.Add(second)) {
		t.Errorf("fra served last at %v", got)
	}
	if got := s.writer.Current().Pool(iad).ServedAt; !got.IsZero() {
		t.Errorf("iad, of which no one reported, served last at %v", got)
	}
	for _, f := range s.judge(100*time.Millisecond, report("fra", 1, 0)) {
		if _, ok := f.(world.PoolServed); ok {
			t.Error("a pool that served a moment ago is noted again")
		}
	}
}
