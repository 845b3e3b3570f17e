package health

import (
	"cmp"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Signal is one observation: a Probed, a Scraped or a Reported. A signal without a time is never newer than what is
// known; one from the future counts as of now.
type Signal interface{ signal() }

// Probed is the outcome of one active probe of an endpoint.
type Probed struct {
	Endpoint world.EndpointKey
	OK       bool
	// Cause says why the probe failed, for people; empty where it did not.
	Cause string
	// At is when the outcome was known.
	At time.Time
}

// Scraped is what an endpoint's metrics said, or why they could not be read.
type Scraped struct {
	Endpoint world.EndpointKey
	// Running and Waiting are counts of requests; KVCacheUse is the used part of the KV cache, 0 to 1.
	Running, Waiting int
	KVCacheUse       float64
	// Err says why the metrics could not be read, for people; the numbers mean nothing then.
	Err string
	// At is when the metrics were read.
	At time.Time
}

// Reported is what the proxies of one viewpoint saw, together, of the requests of one class for one service that they
// sent to one cluster. Who makes it sums over the viewpoint's proxies, each by its newest report, so that a later
// Reported replaces an earlier one; it comes at least every DemandSilence while there is traffic, and with zeros once
// a cluster gets no more requests.
type Reported struct {
	Viewpoint world.ViewpointID
	Service   policies.ServiceName
	Class     world.ClassID
	Cluster   policies.ClusterName
	// Succeeded, Failed and Issued count attempts within Interval; InProgress is how many are in flight at its end.
	Succeeded, Failed, Issued, InProgress uint64
	// Load is what servers said of themselves in the responses within Interval.
	Load world.ServerLoad
	// Interval is the time that the counts are of. Where it is not positive the report is ignored.
	Interval time.Duration
	// At is the end of Interval.
	At time.Time
}

func (Probed) signal()   {}
func (Scraped) signal()  {}
func (Reported) signal() {}

// part names the part of the demand that a report is about.
func (r Reported) part() world.DemandPart {
	key := world.DemandKey{Viewpoint: r.Viewpoint, Service: r.Service, Class: r.Class}
	return world.DemandPart{Key: key, Cluster: r.Cluster}
}

// The orders below are by subject, then time; the rest only keeps the order of equal times from mattering. Of two
// outcomes of one time the failure counts.

func compareProbed(a, b Probed) int {
	return cmp.Or(a.Endpoint.Compare(b.Endpoint), a.At.Compare(b.At), compareBool(a.OK, b.OK), strings.Compare(a.Cause, b.Cause))
}

func compareScraped(a, b Scraped) int {
	return cmp.Or(a.Endpoint.Compare(b.Endpoint), a.At.Compare(b.At), strings.Compare(a.Err, b.Err),
		cmp.Compare(a.Running, b.Running), cmp.Compare(a.Waiting, b.Waiting), cmp.Compare(a.KVCacheUse, b.KVCacheUse))
}

func compareReported(a, b Reported) int {
	return cmp.Or(a.part().Compare(b.part()), a.At.Compare(b.At), cmp.Compare(a.Interval, b.Interval),
		cmp.Compare(a.Succeeded, b.Succeeded), cmp.Compare(a.Failed, b.Failed),
		cmp.Compare(a.Issued, b.Issued), cmp.Compare(a.InProgress, b.InProgress))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
