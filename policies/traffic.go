package policies

// Traffic says how requests spread over the permitted clusters: spill, failover, retries, splits.
type Traffic struct {
	Metadata Metadata[TrafficName] `json:"metadata"`
	Spec     TrafficSpec           `json:"spec"`
	Origin   Origin                `json:"-"`
}

// TrafficSpec is one policy for one or more services. A service is named by at most one; the one without services
// holds for the rest.
type TrafficSpec struct {
	// Services are those that the policy holds for; none: every service that no other policy names.
	Services []ServiceName `json:"services,omitempty" jsonschema:"uniqueItems=true"`
	// Spill says when demand moves on to the next cluster.
	Spill Spill `json:"spill,omitempty"`
	// Failover says where to when clusters fail.
	Failover Failover `json:"failover,omitempty"`
	// Retries says what happens within one request.
	Retries Retries `json:"retries,omitempty"`
	// Splits send part of the requests for the services to other services, such as a canary of a new model.
	Splits []Split `json:"splits,omitempty"`
	// IdleTimeout ends a request on which no byte has moved for this long. Default 5m. Nothing bounds the whole.
	IdleTimeout Duration `json:"idleTimeout,omitempty"`
}

// Spill says when demand moves on.
type Spill struct {
	// TargetUtilization is the percentage of a pool's slots that may be planned for, 1 to 100. Default 80.
	TargetUtilization int `json:"targetUtilization,omitempty" jsonschema:"minimum=1,maximum=100"`
	// MaxShiftPerSecond is the percentage of a service's demand that may move between healthy clusters in a
	// second, 1 to 100, so that shares don't oscillate. Default 20. Leaving a failed cluster is not bounded.
	MaxShiftPerSecond int `json:"maxShiftPerSecond,omitempty" jsonschema:"minimum=1,maximum=100"`
}

// Failover says where to when clusters fail.
type Failover struct {
	// Regions are tried first, in this order, after the nearest; then the rest by distance.
	Regions []RegionName `json:"regions,omitempty" jsonschema:"uniqueItems=true"`
	// Only limits failover and spill to Regions.
	Only bool `json:"only,omitempty"`
}

// Retries says what happens within one request before its first response byte.
type Retries struct {
	// Attempts is how many further clusters are tried, 0 to 10. Default 3.
	Attempts *int `json:"attempts,omitempty" jsonschema:"minimum=0,maximum=10"`
	// ConnectTimeout is how long a connection may take to open. Default 1s.
	ConnectTimeout Duration `json:"connectTimeout,omitempty"`
}

// Split sends a percentage of requests to another service.
type Split struct {
	// Service gets the share. It must speak the same protocol and is not split further.
	Service ServiceName `json:"service"`
	// Percent is 1 to 100; the splits of a policy sum to at most 100.
	Percent int `json:"percent" jsonschema:"minimum=1,maximum=100"`
}
