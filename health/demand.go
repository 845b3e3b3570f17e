package health

import (
	"math"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

const (
	// DemandTimeConstant is that of the exponential smoothing of demand: after a step, 63 % of it shows after this
	// time and 95 % after three times as long. It is about as slow as the gauges of model servers, so that plans
	// don't chase what capacity has not yet followed.
	DemandTimeConstant = 3 * time.Second
	// DemandSilence is how long demand holds without a report. After it, silence is a report of nothing: what was
	// seen fades with the time constant.
	DemandSilence = 3 * time.Second
	// leastDemand, in requests in flight and in requests a second, is where what fades is gone.
	leastDemand = 0.01
	// mostDemand bounds what a broken counter can claim.
	mostDemand = 1e9
)

// demand smooths a service's demand, each cluster's part by itself. Smoothing is linear: while requests move from one
// cluster to another, one part falls as the other rises, and their sum stays.
func (j *judging) demand(w *world.World, service policies.ServiceName, reports []Reported) {
	for _, part := range partsOf(w.DemandParts(service), reports) {
		mine := take(&reports, func(r Reported) int { return r.part().Compare(part) })
		after := part.Demand
		for _, r := range mine {
			after = work(after, r, known(w, part.Key))
		}
		if !after.At.IsZero() && j.now.Sub(after.At) > DemandSilence {
			after = smooth(after, world.Demand{At: j.now})
		}
		if after != part.Demand && (!none(after) || !none(part.Demand)) {
			j.facts = append(j.facts, world.DemandSeen{Key: part.Key, Cluster: part.Cluster, Demand: after})
		}
	}
}

// partsOf are the parts that the world has and those that reports add, sorted.
func partsOf(parts []world.DemandPart, reports []Reported) []world.DemandPart {
	if len(reports) == 0 {
		return parts
	}
	all := slices.Clone(parts)
	for _, r := range reports {
		all = append(all, r.part())
	}
	slices.SortStableFunc(all, world.DemandPart.Compare)
	return slices.CompactFunc(all, func(a, b world.DemandPart) bool { return a.Compare(b) == 0 }) // the world's come first
}

// known says whether the world has demand of the key, in whatever cluster.
func known(w *world.World, key world.DemandKey) bool {
	_, ok := slices.BinarySearchFunc(w.DemandFor(key.Service), key, func(d world.DemandOf, k world.DemandKey) int { return d.Key.Compare(k) })
	return ok
}

// work works one report into a part. The first report of a key is taken as it is; a part that is new to a known key
// rises from nothing, as other parts fall.
func work(d world.Demand, r Reported, known bool) world.Demand {
	if r.Interval <= 0 || !r.At.After(d.At) {
		return d
	}
	sample := world.Demand{
		InFlight:          min(float64(r.InProgress), mostDemand),
		RequestsPerSecond: min(float64(r.Issued)/r.Interval.Seconds(), mostDemand),
		At:                r.At,
	}
	switch {
	case !d.At.IsZero():
		return smooth(d, sample)
	case known:
		return smooth(world.Demand{At: r.At.Add(-r.Interval)}, sample)
	}
	return sample
}

// smooth is the exponentially weighted moving average for samples at uneven times: the weight of a sample is
// 1-exp(-t/T), t being the time since the one before and T the time constant.
func smooth(d, sample world.Demand) world.Demand {
	weight := -math.Expm1(-sample.At.Sub(d.At).Seconds() / DemandTimeConstant.Seconds())
	d.InFlight += (sample.InFlight - d.InFlight) * weight
	d.RequestsPerSecond += (sample.RequestsPerSecond - d.RequestsPerSecond) * weight
	d.At = sample.At
	if none(sample) && d.InFlight < leastDemand && d.RequestsPerSecond < leastDemand {
		d.InFlight, d.RequestsPerSecond = 0, 0
	}
	return d
}

// none says that there is no demand; the world forgets it.
func none(d world.Demand) bool { return d.InFlight == 0 && d.RequestsPerSecond == 0 }
