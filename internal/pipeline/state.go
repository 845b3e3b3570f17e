package pipeline

import (
	"time"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/verify"
)

// State is the picture after a cycle. It is immutable.
type State struct {
	World *world.World
	Plan  *plan.Plan
	// Published are the snapshots in force, by viewpoint: the last good ones.
	Published map[world.ViewpointID]*xds.Snapshot
	// Refused are the violations of the newest snapshots that were not published, by viewpoint.
	Refused map[world.ViewpointID][]verify.Violation
	// Withheld is what proxies have refused and the world still leads to, by viewpoint: they are given the last good structure.
	Withheld map[world.ViewpointID]Refusal
	// Retiring are clusters that the policies handed in name no more, and that are in force until their requests have ended.
	Retiring []policies.ClusterName
	// BuildError is why the newest plan could not be built; nil where it could. Nothing of it is published then.
	BuildError error
	// Cycle counts the cycles so far, so that a caller can tell whether what it handed in has been worked in.
	Cycle uint64
}

// Cycle says what one turn of the loop did and how long each part took, for metrics and logs.
type Cycle struct {
	// Since is when the oldest input of the cycle came in.
	Since time.Time
	// Delta is what changed in the world.
	Delta world.Delta
	// Planned says that plan, build and verify ran.
	Planned bool
	// Published counts the viewpoints whose snapshot was replaced, Refused those that verify held back.
	Published, Refused int
	// Plan, Build and Verify are how long each took.
	Plan, Build, Verify time.Duration
	// State is the picture after the cycle.
	State *State
}
