package build

import (
	"math"
	"time"
)

const (
	// retryBase and retryMost bound the pause before a retry: another place is tried, so there is nothing to wait for.
	retryBase = time.Millisecond
	retryMost = 10 * time.Millisecond
	// keepaliveInterval and keepaliveTimeout find a peer that has gone silent within a second.
	keepaliveInterval = 500 * time.Millisecond
	keepaliveTimeout  = 500 * time.Millisecond
	// ejection is how long a host that failed is left alone at first.
	ejection = 2 * time.Second
	// outlierInterval is how often ejections are looked over.
	outlierInterval = 500 * time.Millisecond
	// geoServiceTimeout bounds what asking the geo service may add to a request.
	geoServiceTimeout = 200 * time.Millisecond
	// connectionBuffer is how much is buffered for one connection before it is told to wait.
	connectionBuffer = 1 << 20
	// unlimited switches a circuit breaker off where another one holds.
	unlimited = math.MaxUint32
)
