package flow_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/plan/flow"
)

// arc is one arc of a test problem.
type arc struct {
	from, to       int
	capacity, cost int64
}

// failer is the part that the helpers need of *testing.T, *testing.B and *rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// solve runs a whole problem from node 0 to the last.
func solve(t failer, nodes int, arcs []arc) (flow.Total, []int64) {
	t.Helper()
	var g flow.Graph
	return solveIn(t, &g, nodes, arcs)
}

func solveIn(t failer, g *flow.Graph, nodes int, arcs []arc) (flow.Total, []int64) {
	t.Helper()
	if err := g.Reset(nodes); err != nil {
		t.Fatal(err)
	}
	for _, a := range arcs {
		if _, err := g.AddArc(a.from, a.to, a.capacity, a.cost); err != nil {
			t.Fatal(err)
		}
	}
	total, err := g.Solve(0, nodes-1)
	if err != nil {
		t.Fatal(err)
	}
	flows := make([]int64, len(arcs))
	for i := range arcs {
		flows[i] = g.Flow(flow.Arc(i))
	}
	return total, flows
}

func TestSolve(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		arcs  []arc
		total flow.Total
		flows []int64
	}{
		{"one arc carries its capacity", 2, []arc{{0, 1, 7, 3}}, flow.Total{Flow: 7, Cost: 21}, []int64{7}},
		{"no arc carries nothing", 2, nil, flow.Total{}, []int64{}},
		{"the sink is out of reach", 3, []arc{{0, 1, 5, 1}}, flow.Total{}, []int64{0}},
		{"the cheaper of two ways fills first", 4,
			[]arc{{0, 1, 10, 0}, {1, 2, 4, 1}, {1, 3, 8, 9}, {2, 3, 4, 1}},
			flow.Total{Flow: 10, Cost: 4*2 + 6*9}, []int64{10, 4, 6, 4}},
		{"of two equal ways the first is taken", 4,
			[]arc{{0, 1, 5, 1}, {0, 2, 5, 1}, {1, 3, 5, 1}, {2, 3, 5, 1}, {3, 3, 1, 0}},
			flow.Total{Flow: 10, Cost: 20}, []int64{5, 5, 5, 5, 0}},
		{"an earlier choice is taken back where that is cheaper in all", 6,
			// Two sources, two sinks of room 5: source 1 could use either at 1 or 2, source 2 at 1 or 100.
			[]arc{{0, 1, 5, 0}, {0, 2, 5, 0}, {1, 3, 5, 1}, {1, 4, 5, 2}, {2, 3, 5, 1}, {2, 4, 5, 100}, {3, 5, 5, 0}, {4, 5, 5, 0}},
			flow.Total{Flow: 10, Cost: 15}, []int64{5, 5, 0, 5, 5, 0, 5, 5}},
		{"parallel arcs and a cycle without cost", 3,
			[]arc{{0, 1, 1, 0}, {0, 1, 1, 0}, {1, 0, 9, 0}, {1, 2, 1, 0}, {1, 2, 5, 2}},
			flow.Total{Flow: 2, Cost: 2}, []int64{1, 1, 0, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			total, flows := solve(t, c.nodes, c.arcs)
			if diff := cmp.Diff(c.total, total); diff != "" {
				t.Errorf("total (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.flows, flows); diff != "" {
				t.Errorf("flows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(g *flow.Graph) error
		want error
	}{
		{"a negative number of nodes", func(g *flow.Graph) error { return g.Reset(-1) }, flow.ErrRange},
		{"too many nodes", func(g *flow.Graph) error { return g.Reset(flow.MaxNodes + 1) }, flow.ErrRange},
		{"an arc from nowhere", func(g *flow.Graph) error { return add(g, arc{-1, 1, 1, 1}) }, flow.ErrRange},
		{"an arc to nowhere", func(g *flow.Graph) error { return add(g, arc{0, 2, 1, 1}) }, flow.ErrRange},
		{"a negative capacity", func(g *flow.Graph) error { return add(g, arc{0, 1, -1, 1}) }, flow.ErrRange},
		{"a huge capacity", func(g *flow.Graph) error { return add(g, arc{0, 1, flow.MaxCapacity + 1, 1}) }, flow.ErrRange},
		{"a negative cost", func(g *flow.Graph) error { return add(g, arc{0, 1, 1, -1}) }, flow.ErrRange},
		{"a huge cost", func(g *flow.Graph) error { return add(g, arc{0, 1, 1, flow.MaxCost + 1}) }, flow.ErrRange},
		{"the source is the sink", func(g *flow.Graph) error { _, err := g.Solve(1, 1); return err }, flow.ErrRange},
		{"the sink is no node", func(g *flow.Graph) error { _, err := g.Solve(0, 2); return err }, flow.ErrRange},
		{"a total that does not fit", func(g *flow.Graph) error {
			if err := add(g, arc{0, 1, flow.MaxCapacity, flow.MaxCost}); err != nil {
				return err
			}
			_, err := g.Solve(0, 1)
			return err
		}, flow.ErrOverflow},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g flow.Graph
			if err := g.Reset(2); err != nil {
				t.Fatal(err)
			}
			if err := c.do(&g); !errors.Is(err, c.want) {
				t.Errorf("error %v, want one that is %v", err, c.want)
			}
		})
	}
}

func add(g *flow.Graph, a arc) error {
	_, err := g.AddArc(a.from, a.to, a.capacity, a.cost)
	return err
}

// TestNoCheaperFlow compares with trying every flow there is, on graphs small enough for that.
func TestNoCheaperFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(2, 5).Draw(t, "nodes")
		arcs := drawArcs(t, nodes, 6, 2, 5)
		got, flows := solve(t, nodes, arcs)
		want := flow.Total{Flow: -1}
		everyFlow(nodes, arcs, make([]int64, 0, len(arcs)), func(total flow.Total) {
			if total.Flow > want.Flow || total.Flow == want.Flow && total.Cost < want.Cost {
				want = total
			}
		})
		if got != want {
			t.Fatalf("got %+v by %v, the best is %+v", got, flows, want)
		}
	})
}

// everyFlow calls yield with the total of every assignment of arcs that keeps what enters a node equal to what leaves.
func everyFlow(nodes int, arcs []arc, flows []int64, yield func(flow.Total)) {
	if len(flows) < len(arcs) {
		for f := int64(0); f <= arcs[len(flows)].capacity; f++ {
			everyFlow(nodes, arcs, append(flows, f), yield)
		}
		return
	}
	balance, cost := balanceOf(nodes, arcs, flows)
	for _, b := range balance[1 : nodes-1] {
		if b != 0 {
			return
		}
	}
	yield(flow.Total{Flow: balance[nodes-1], Cost: cost})
}

// balanceOf is what enters each node less what leaves it, and what it all costs.
func balanceOf(nodes int, arcs []arc, flows []int64) (balance []int64, cost int64) {
	balance = make([]int64, nodes)
	for i, a := range arcs {
		balance[a.from] -= flows[i]
		balance[a.to] += flows[i]
		cost += flows[i] * a.cost
	}
	return balance, cost
}

// TestOptimal checks larger graphs by the theorem: a flow within capacities is a maximum if the sink can't be reached
// in the residual graph, and costs least if the residual graph has no cycle of negative cost.
func TestOptimal(t *testing.T) {
	var g flow.Graph
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(2, 30).Draw(t, "nodes")
		arcs := drawArcs(t, nodes, 150, 50, 1000)
		total, flows := solveIn(t, &g, nodes, arcs)
		balance, cost := balanceOf(nodes, arcs, flows)
		if total.Cost != cost || total.Flow != balance[nodes-1] || total.Flow != -balance[0] {
			t.Fatalf("total %+v, but the arcs say flow %d, cost %d", total, balance[nodes-1], cost)
		}
		for v := 1; v < nodes-1; v++ {
			if balance[v] != 0 {
				t.Fatalf("node %d gains %d", v, balance[v])
			}
		}
		checkResidual(t, nodes, arcs, flows)
	})
}

// checkResidual runs Bellman-Ford on the residual graph, from all nodes at once for cycles, and from the source for reach.
func checkResidual(t *rapid.T, nodes int, arcs []arc, flows []int64) {
	var residual []arc
	for i, a := range arcs {
		if flows[i] < 0 || flows[i] > a.capacity {
			t.Fatalf("arc %d carries %d of %d", i, flows[i], a.capacity)
		}
		if flows[i] < a.capacity {
			residual = append(residual, arc{a.from, a.to, 1, a.cost})
		}
		if flows[i] > 0 {
			residual = append(residual, arc{a.to, a.from, 1, -a.cost})
		}
	}
	distance, reach := make([]int64, nodes), make([]bool, nodes)
	reach[0] = true
	for range nodes {
		for _, a := range residual {
			reach[a.to] = reach[a.to] || reach[a.from]
			distance[a.to] = min(distance[a.to], distance[a.from]+a.cost)
		}
	}
	for _, a := range residual {
		if distance[a.from]+a.cost < distance[a.to] {
			t.Fatalf("there is a cheaper flow: a cycle of negative cost through arc %d->%d", a.from, a.to)
		}
	}
	if reach[nodes-1] {
		t.Fatal("there is a larger flow: the sink can still be reached")
	}
}

func drawArcs(t *rapid.T, nodes, most int, capacity, cost int64) []arc {
	node := rapid.IntRange(0, nodes-1)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) arc {
		return arc{node.Draw(t, "from"), node.Draw(t, "to"), rapid.Int64Range(0, capacity).Draw(t, "capacity"), rapid.Int64Range(0, cost).Draw(t, "cost")}
	}), 0, most).Draw(t, "arcs")
}

// TestReuse says that a graph's buffers carry nothing over from one problem to the next.
func TestReuse(t *testing.T) {
	var g flow.Graph
	arcs := [][]arc{transport(4, 6), transport(2, 2), transport(7, 3)}
	for range 2 {
		for i, a := range arcs {
			nodes := []int{12, 6, 12}[i]
			want, wantFlows := solve(t, nodes, a)
			got, gotFlows := solveIn(t, &g, nodes, a)
			if diff := cmp.Diff(want, got) + cmp.Diff(wantFlows, gotFlows); diff != "" {
				t.Errorf("problem %d (-fresh +reused):\n%s", i, diff)
			}
		}
	}
}

// FuzzSolve gives Solve whatever the bytes say: it must refuse or solve, and never carry more than a capacity.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{3, 0, 1, 5, 1, 1, 2, 5, 1})
	f.Add([]byte{2, 0, 1, 255, 255, 1, 0, 255, 128})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		var g flow.Graph
		nodes := int(data[0] % 16)
		if err := g.Reset(nodes); err != nil {
			t.Fatal(err)
		}
		var capacities []int64
		for data = data[1:]; len(data) >= 4 && len(capacities) < 64; data = data[4:] {
			capacity := int64(int8(data[2])) << (data[2] % 48)
			if err := add(&g, arc{int(int8(data[0])), int(int8(data[1])), capacity, int64(int8(data[3])) << (data[3] % 48)}); err == nil {
				capacities = append(capacities, capacity)
			}
		}
		total, err := g.Solve(0, nodes-1)
		if err != nil && !errors.Is(err, flow.ErrRange) && !errors.Is(err, flow.ErrOverflow) {
			t.Fatal(err)
		}
		if total.Flow < 0 || total.Cost < 0 {
			t.Fatalf("total %+v", total)
		}
		for i, c := range capacities {
			if got := g.Flow(flow.Arc(i)); got < 0 || got > c {
				t.Fatalf("arc %d carries %d of %d", i, got, c)
			}
		}
	})
}

// transport is a problem as plan makes it: sources with demand, sinks with room, every pair joined at some distance.
func transport(sources, sinks int) []arc {
	var arcs []arc
	last := sources + sinks + 1
	for i := range sources {
		arcs = append(arcs, arc{0, 1 + i, int64(1000 + 37*i%500), 0})
	}
	for j := range sinks {
		arcs = append(arcs, arc{1 + sources + j, last, int64(1200 + 91*j%700), 0})
	}
	for i := range sources {
		for j := range sinks {
			distance := math.Abs(math.Sin(float64(i*7+1))-math.Sin(float64(j*13+2))) * 100_000
			arcs = append(arcs, arc{1 + i, 1 + sources + j, 1 << 30, int64(distance)})
		}
	}
	return arcs
}

func BenchmarkTransport(b *testing.B) {
	for _, n := range []int{10, 30, 100} {
		b.Run(fmt.Sprintf("%dx%d", n, n), func(b *testing.B) {
			arcs := transport(n, n)
			var g flow.Graph
			b.ReportAllocs()
			for b.Loop() {
				solveIn(b, &g, 2*n+2, arcs)
			}
		})
	}
}
