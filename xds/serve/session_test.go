package serve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/meridian-mesh/meridian/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// snapshot makes a snapshot of words such as "C:llama=1": type, name, content.
func snapshot(words ...string) *xds.Snapshot {
	types := map[string]xds.Type{"C": xds.TypeCluster, "E": xds.TypeEndpoint, "L": xds.TypeListener, "R": xds.TypeRoute, "V": xds.TypeVirtualHost, "S": xds.TypeSecret}
	var resources []*xds.Resource
	for _, w := range words {
		letter, rest, _ := strings.Cut(w, ":")
		name, content, _ := strings.Cut(rest, "=")
		resources = append(resources, xds.Serialised(types[letter], name, content, []byte(content)))
	}
	return xds.NewSnapshot("gateway/r/c", resources)
}

// table is where the tests' sessions share names.
var table = newNameTable()

// holds is what a client says that it holds from before, in words such as "a=1".
func holds(words ...string) held {
	var h held
	for _, w := range words {
		name, version, _ := strings.Cut(w, "=")
		h = protowire.AppendBytes(h, appendText(appendText(nil, 1, name), 2, version))
	}
	return h
}

// told writes responses as the test's words: "C#1 a=1 b=2 -c".
func told(out []response) []string {
	var all []string
	for _, r := range out {
		words := []string{r.typ.Short()[:1] + "#" + r.nonce}
		if r.typ == xds.TypeEndpoint {
			words[0] = "E#" + r.nonce
		}
		for _, res := range r.resources {
			words = append(words, res.Name+"="+res.Version)
		}
		for _, gone := range r.removed {
			words = append(words, "-"+gone)
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// step is what a session is told, and what it must answer.
type step struct {
	update  *xds.Snapshot
	request request
	want    []string
}

func (s step) String() string {
	if s.update != nil {
		return "a new snapshot"
	}
	return fmt.Sprintf("request %+v", s.request)
}

func ask(t xds.Type, names ...string) step {
	return step{request: request{typ: t, subscribe: table.of(names...)}}
}
func ack(t xds.Type, nonce string) step    { return step{request: request{typ: t, nonce: nonce}} }
func (s step) answers(want ...string) step { s.want = want; return s }
func update(words ...string) step          { return step{update: snapshot(words...)} }
func nack(t xds.Type, nonce string) step {
	return step{request: request{typ: t, nonce: nonce, refusal: "no"}}
}
func drop(t xds.Type, names ...string) step {
	return step{request: request{typ: t, unsubscribe: table.of(names...)}}
}

func play(t *testing.T, s *session, steps []step) {
	t.Helper()
	for i, step := range steps {
		var out []response
		if step.update != nil {
			s.target = step.update
			out = s.advance()
		} else {
			out = s.handle(step.request)
		}
		if diff := cmp.Diff(step.want, told(out)); diff != "" {
			t.Fatalf("step %d, %s (-want +got):\n%s", i, step, diff)
		}
	}
}

const (
	cds  = xds.TypeCluster
	eds  = xds.TypeEndpoint
	lds  = xds.TypeListener
	rds  = xds.TypeRoute
	vhds = xds.TypeVirtualHost
)

func TestDeltaSession(t *testing.T) {
	for name, steps := range map[string][]step{
		"a wildcard gets everything, then only what changes": {
			update("C:a=1", "C:b=1"),
			ask(cds).answers("C#1 a=1 b=1"), ack(cds, "1"),
			update("C:a=1", "C:b=2").answers("C#2 b=2"),
		},
		"who asks before anything is published is answered when it is": {
			ask(cds),
			update("C:a=1").answers("C#1 a=1"),
		},
		"named resources, and those that do not exist": {
			update("E:a=1", "E:b=1"),
			ask(eds, "a", "z").answers("E#1 a=1 -z"), ack(eds, "1"),
			update("E:a=1", "E:b=2"),
			update("E:a=1", "E:b=2", "E:z=1").answers("E#2 z=1"),
		},
		"naming something adds to a wildcard, until that is let go of": {
			update("C:a=1", "C:b=1"),
			ask(cds).answers("C#1 a=1 b=1"), ack(cds, "1"),
			ask(cds, "a").answers("C#2 a=1"), ack(cds, "2"),
			update("C:a=1", "C:b=2").answers("C#3 b=2"), ack(cds, "3"),
			drop(cds, "*"),
			update("C:a=2", "C:b=3").answers("C#4 a=2"),
		},
		"a name that is let go of under a wildcard is answered": {
			update("C:a=1"),
			ask(cds, "*", "a", "z").answers("C#1 a=1 -z"), ack(cds, "1"),
			drop(cds, "a", "z").answers("C#2 a=1 -z"),
		},
		"a name that is asked for twice at once is answered once": {
			update("E:a=1", "E:b=1"),
			ask(eds, "a").answers("E#1 a=1"), ack(eds, "1"),
			ask(eds, "b", "b", "z", "z").answers("E#2 b=1 -z"),
		},
		"virtual hosts are sent to who names them, and one that was there is removed by its name": {
			update("R:shop=1", "V:shop/a=1", "V:shop/b=1"),
			ask(rds, "shop").answers("R#1 shop=1"), ack(rds, "1"),
			ask(vhds).answers("V#2 -shop/"), ack(vhds, "2"),
			ask(vhds, "shop/a", "shop/z").answers("V#3 shop/a=1"), ack(vhds, "3"),
			update("R:shop=1", "V:shop/b=2").answers("V#4 -shop/a"),
		},
		"nothing at all is an answer too: a client waits for its first": {
			update(),
			ask(cds).answers("C#1"),
		},
		"a type that nothing was published of waits for it": {
			ask(eds, "a"), ask(eds, "b"), drop(eds, "a"),
			update("E:a=1", "E:b=1").answers("E#1 b=1"),
		},
		"names that are asked for are answered while a response is under way, and both count": {
			update("E:a=1", "E:b=1"),
			ask(eds, "a").answers("E#1 a=1"),
			ask(eds, "b").answers("E#2 b=1"),
			update("E:a=2", "E:b=1"),
			ack(eds, "1"),
			ack(eds, "2").answers("E#3 a=2"),
		},
		"a resource that is subscribed to again is answered again": {
			update("E:a=1"),
			ask(eds, "a").answers("E#1 a=1"), ack(eds, "1"),
			ask(eds, "a").answers("E#2 a=1"),
		},
		"what is no longer subscribed to is not sent": {
			update("E:a=1", "E:b=1"),
			ask(eds, "a", "b").answers("E#1 a=1 b=1"), ack(eds, "1"),
			drop(eds, "b"),
			update("E:a=2", "E:b=2").answers("E#2 a=2"),
		},
		"at most one response of a type is under way, and the newest wins": {
			update("E:a=1"),
			ask(eds, "a").answers("E#1 a=1"),
			update("E:a=2"), update("E:a=3"),
			ack(eds, "1").answers("E#2 a=3"),
		},
		"a refusal is not answered by sending the same again": {
			update("C:a=1"),
			ask(cds).answers("C#1 a=1"), nack(cds, "1"),
			update("C:a=1"),
			update("C:a=2").answers("C#2 a=2"),
		},
		"an answer to an old response counts for nothing": {
			update("C:a=1"),
			ask(cds).answers("C#1 a=1"), ack(cds, "7"),
			update("C:a=2"),
			ack(cds, "1").answers("C#2 a=2"),
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, newSession(false, table), steps) })
	}
}

// A client that reconnects says what it holds, and is sent only what differs.
func TestReconnectSendsOnlyWhatDiffers(t *testing.T) {
	s := newSession(false, table)
	play(t, s, []step{
		update("C:a=1", "C:b=2", "C:d=1"),
		step{request: request{typ: cds, held: holds("a=1", "b=1", "c=1")}}.answers("C#1 b=2 d=1"),
		ack(cds, "1").answers("C#2 -c"),
	})
	same := newSession(false, table)
	play(t, same, []step{
		update("C:a=1"),
		{request: request{typ: cds, held: holds("a=1")}},
		update("C:a=2").answers("C#1 a=2"),
	})
	// A cluster that is gone stays until the routes, which the client asks for next, lead elsewhere.
	play(t, newSession(false, table), []step{
		update("C:b=1", "R:r=2"),
		step{request: request{typ: cds, held: holds("a=1", "b=1")}}.answers("C#1"),
		step{request: request{typ: rds, subscribe: table.of("r", "z"), held: holds("r=1", "z=1")}}.answers("R#2 r=2"),
		ack(cds, "1"),
		ack(rds, "2").answers("R#3 -z"),
		ack(rds, "3").answers("C#4 -a"),
	})
}

// While a client refuses something it works with what it had: nothing of that is removed, until the refusal is mended
// or what was refused is no more.
func TestNothingIsRemovedWhileSomethingStandsRefused(t *testing.T) {
	subscribed := []step{
		update("C:a=1", "R:r=1"),
		ask(cds).answers("C#1 a=1"), ack(cds, "1"), ask(rds, "r", "s").answers("R#2 r=1 -s"), ack(rds, "2"),
		update("C:b=1", "R:r=2", "R:s=1").answers("C#3 b=1"),
		ack(cds, "3").answers("R#4 r=2 s=1"),
		nack(rds, "4"),
	}
	for name, rest := range map[string][]step{
		"mended": {
			update("C:b=1", "R:r=3", "R:s=1").answers("R#5 r=3"),
			ack(rds, "5").answers("C#6 -a"),
		},
		"refused again": {
			update("C:b=1", "R:r=3", "R:s=1").answers("R#5 r=3"),
			nack(rds, "5"),
		},
		"another type's change mends nothing": {
			update("C:b=2", "R:r=2", "R:s=1").answers("C#5 b=2"),
			ack(cds, "5"),
		},
		"taken back": {
			update("C:a=1", "R:r=1").answers("C#5 a=1"),
			ack(cds, "5").answers("R#6 r=1"),
			ack(rds, "6").answers("R#7 -s"),
			ack(rds, "7").answers("C#8 -b"),
		},
		"gone": {
			update("C:b=1").answers("R#5 -r -s"),
			ack(rds, "5").answers("C#6 -a"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, newSession(false, table), append(subscribed[:len(subscribed):len(subscribed)], rest...))
		})
	}
}

func TestStatusTellsWhatStandsRefused(t *testing.T) {
	s := newSession(false, table)
	stands := func(when string, want ...TypeStatus) {
		t.Helper()
		var got []TypeStatus
		for _, k := range s.kinds {
			got = append(got, k.status(s.target))
		}
		for i := range want {
			want[i].Type = "Cluster"
		}
		ignoreVersions := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Accepted" || p.Last().String() == ".Offered" }, cmp.Ignore())
		if diff := cmp.Diff(want, got, ignoreVersions); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	play(t, s, []step{update("C:good=1", "C:bad=1", "C:old=1"), ask(cds).answers("C#1 bad=1 good=1 old=1")})
	stands("before the answer", TypeStatus{State: Pending})
	play(t, s, []step{ack(cds, "1"), update("C:good=1", "C:bad=2", "C:old=1").answers("C#2 bad=2")})
	play(t, s, []step{update("C:good=2", "C:bad=2", "C:old=1"), nack(cds, "2").answers("C#3 good=2")})
	refused := TypeStatus{State: Nacked, Refusal: "no", Resources: []string{"bad"}}
	stands("another response is on its way already", refused)
	play(t, s, []step{ack(cds, "3")})
	stands("what was accepted since is something else", refused)
	play(t, s, []step{update("C:good=2", "C:bad=3", "C:old=1").answers("C#4 bad=3"), ack(cds, "4")})
	stands("mended", TypeStatus{State: Synced})
	play(t, s, []step{update("C:good=2", "C:bad=3").answers("C#5 -old")})
	stands("a removal is unanswered", TypeStatus{State: Pending})
}

// A response that was refused is known by its nonce, though another was sent after it.
func TestRefusalOfAnOlderResponseIsNotLost(t *testing.T) {
	s := newSession(false, table)
	play(t, s, []step{
		update("E:a=1", "E:b=1"),
		ask(eds, "a").answers("E#1 a=1"), ask(eds, "b").answers("E#2 b=1"),
		nack(eds, "1"), ack(eds, "2"),
	})
	if k := s.kind(eds); k.refusal != "no" || len(k.refused) != 1 || k.refused[0].Name != "a" {
		t.Errorf("stands refused: %q %v", k.refusal, k.refused)
	}
}

// Make before break: what others refer to comes first and is acknowledged before they do; what is gone goes last, in
// the opposite order. Endpoints wait for nothing.
func TestOrderIsMakeBeforeBreak(t *testing.T) {
	subscribed := []step{
		update("C:a=1", "E:a=1", "L:l=1", "R:r=1"),
		ask(cds).answers("C#1 a=1"), ask(eds, "a").answers("E#2 a=1"), ack(cds, "1"), ack(eds, "2"),
		ask(lds).answers("L#3 l=1"), ack(lds, "3"), ask(rds, "r").answers("R#4 r=1"), ack(rds, "4"),
	}
	play(t, newSession(false, table), append(subscribed, []step{
		// Cluster a is replaced by b, and the route leads there.
		update("C:b=1", "E:b=1", "L:l=2", "R:r=2").answers("C#5 b=1"),
		ask(eds, "b").answers("E#6 b=1"), // answered though the cluster is not acknowledged: Envoy waits for it
		ack(eds, "6"),
		ack(cds, "5").answers("L#7 l=2"),
		ack(lds, "7").answers("R#8 r=2"),
		ack(rds, "8").answers("E#9 -a"),
		drop(eds, "a"), ack(eds, "9").answers("C#10 -a"),
		ack(cds, "10"),
	}...))
	play(t, newSession(false, table), append(subscribed, []step{
		update("C:a=2", "E:a=2", "L:l=1", "R:r=2").answers("C#5 a=2", "E#6 a=2"),
		update("C:a=2", "E:a=3", "L:l=1", "R:r=2"),
		ack(eds, "6").answers("E#7 a=3"), // while the cluster is still not acknowledged
	}...))
}

func TestHurrySendsWhatWaitsForAnswersThatDoNotCome(t *testing.T) {
	start := time.Unix(1000, 0)
	s := newSession(false, table)
	s.now = start
	play(t, s, []step{
		update("C:a=1", "R:r=1"),
		ask(cds).answers("C#1 a=1"), ack(cds, "1"), ask(rds, "r").answers("R#2 r=1"), ack(rds, "2"),
		update("C:a=2", "R:r=2").answers("C#3 a=2"),
	})
	for _, c := range []struct {
		at   time.Duration
		want []string
	}{{0, nil}, {patience - 1, nil}, {patience, []string{"R#4 r=2"}}} {
		s.now = start.Add(c.at)
		if diff := cmp.Diff(c.want, told(s.hurry(patience))); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", c.at, diff)
		}
	}
	play(t, s, []step{
		ack(rds, "4"), // of another type: the clusters are still overdue
		update("C:a=2", "R:r=3").answers("R#5 r=3"),
		ack(cds, "3"), ack(rds, "5"),
		update("C:a=3", "R:r=4").answers("C#6 a=3"), // and now they are waited for again
	})
}

const patience = 5 * time.Second

// What is due is the oldest response, whatever else goes on.
func TestPatienceRunsFromTheOldestUnansweredResponse(t *testing.T) {
	start := time.Unix(1000, 0)
	s := newSession(false, table)
	at := func(seconds int, steps ...step) {
		t.Helper()
		s.now = start.Add(time.Duration(seconds) * time.Second)
		play(t, s, steps)
	}
	due := func(seconds int) {
		t.Helper()
		if got, want := s.due(patience), start.Add(time.Duration(seconds)*time.Second); !got.Equal(want) {
			t.Fatalf("due %v after the start, want %v", got.Sub(start), want.Sub(start))
		}
	}
	at(0, update("C:a=1", "E:a=1"), ask(cds).answers("C#1 a=1"))
	due(5)
	at(1, ask(eds, "a").answers("E#2 a=1"))
	at(2, update("C:a=2", "E:a=2"))
	at(3, ack(eds, "2").answers("E#3 a=2"))
	due(5) // neither updates nor answers of another type put it off
	at(4, ack(cds, "1").answers("C#4 a=2"))
	due(8)
	at(8)
	s.hurry(patience)
	due(9)
	at(9)
	s.hurry(patience)
	if got := s.due(patience); !got.IsZero() {
		t.Errorf("all are overdue, and the next is due at %v", got)
	}
}

func TestStateOfTheWorldSession(t *testing.T) {
	all := func(t xds.Type, nonce string, names ...string) step {
		return step{request: request{typ: t, nonce: nonce, names: table.of(names...)}}
	}
	for name, steps := range map[string][]step{
		"clusters come as a whole, and leave by absence once nothing is under way": {
			update("C:a=1", "C:b=1"),
			all(cds, "").answers("C#1 a=1 b=1"), all(cds, "1"),
			update("C:a=1", "C:c=1").answers("C#2 a=1 c=1 b=1"),
			all(cds, "2").answers("C#3 a=1 c=1"),
			all(cds, "3"),
		},
		"a cluster leaves with its endpoints": {
			update("C:a=1", "C:b=1", "E:a=1", "E:b=1"),
			all(cds, "").answers("C#1 a=1 b=1"), all(cds, "1"),
			all(eds, "", "a", "b").answers("E#2 a=1 b=1"), all(eds, "2", "a", "b"),
			update("C:b=1", "E:b=1").answers("C#3 b=1"),
		},
		"naming something ends a wildcard that was never asked for": {
			update("C:a=1", "C:b=1"),
			all(cds, "").answers("C#1 a=1 b=1"), all(cds, "1"),
			all(cds, "1", "a").answers("C#2 a=1"), all(cds, "2", "a"),
			update("C:a=1", "C:b=2"),
			all(cds, "2"), // and is no wildcard again
			update("C:a=2", "C:b=2"),
		},
		"a wildcard that is asked for later is answered with everything": {
			update("C:a=1", "C:b=1"),
			all(cds, "", "a").answers("C#1 a=1"), all(cds, "1", "a"),
			all(cds, "1", "*").answers("C#2 a=1 b=1"),
		},
		"a refusal is not answered by sending the same again": {
			update("C:a=1"),
			all(cds, "").answers("C#1 a=1"),
			{request: request{typ: cds, nonce: "1", refusal: "no"}},
			update("C:a=1"),
			update("C:a=2").answers("C#2 a=2"),
		},
		"endpoints come alone": {
			update("E:a=1", "E:b=1"),
			all(eds, "", "a", "b").answers("E#1 a=1 b=1"), all(eds, "1", "a", "b"),
			update("E:a=1", "E:b=2").answers("E#2 b=2"),
		},
		"names that are new to a subscription are answered at once": {
			update("E:a=1", "E:b=1"),
			all(eds, "", "a").answers("E#1 a=1"), all(eds, "1", "a"),
			all(eds, "1", "a", "b").answers("E#2 b=1"),
		},
		"the empty name asks for nothing": {
			update("E:a=1"),
			all(eds, "", "a").answers("E#1 a=1"), all(eds, "1", ""),
			update("E:a=2"),
		},
		"an answer to an older response is passed over": {
			update("C:a=1"),
			all(cds, "").answers("C#1 a=1"), all(cds, "0"),
			update("C:a=2"),
			all(cds, "1").answers("C#2 a=2"),
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, newSession(true, table), steps) })
	}
}

func TestEndpointsThatAreAskedForAreAnsweredEvenWhenEmpty(t *testing.T) {
	s := newSession(true, table)
	s.target = snapshot()
	out := s.handle(request{typ: eds, names: table.of("a")})
	if len(out) != 1 || len(out[0].resources) != 1 || out[0].resources[0].Name != "a" {
		t.Errorf("%v: a client would wait for ever", told(out))
	}
}
