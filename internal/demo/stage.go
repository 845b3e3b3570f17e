package demo

import (
	"fmt"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

// The clients of the demo's geo database.
const (
	german   = "192.0.2.7"
	american = "198.51.100.7"
)

// clusters are four, in four regions on two continents.
func clusters() []mesh.Cluster {
	return []mesh.Cluster{
		{Name: "fra-1", Region: "frankfurt", Cloud: "aws/eu-central-1", Network: 10, Servers: servers},
		{Name: "dub-1", Region: "dublin", Cloud: "aws/eu-west-1", Network: 20, Servers: servers},
		{Name: "iad-1", Region: "virginia", Cloud: "aws/us-east-1", Network: 30, Servers: servers},
		{Name: "pdx-1", Region: "oregon", Cloud: "aws/us-west-2", Network: 40, Servers: servers},
	}
}

// oneWay are delays between the regions, about half of the round trips that clouds publish.
var oneWay = map[[2]string]time.Duration{
	{"frankfurt", "dublin"}:   12 * time.Millisecond,
	{"frankfurt", "virginia"}: 45 * time.Millisecond,
	{"frankfurt", "oregon"}:   72 * time.Millisecond,
	{"dublin", "virginia"}:    35 * time.Millisecond,
	{"dublin", "oregon"}:      60 * time.Millisecond,
	{"virginia", "oregon"}:    30 * time.Millisecond,
}

func delay(from, to string) time.Duration {
	if d, ok := oneWay[[2]string{from, to}]; ok {
		return d
	}
	return oneWay[[2]string{to, from}]
}

const (
	// servers is how many model servers a cluster has, and slots how many requests each serves at a time: few, so that
	// the demo can fill a cluster, and enough for what is retried there when another falls silent.
	servers = 2
	slots   = 32
)

// pinned keeps people in the EU inside it.
const pinned = `---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: eu-people}
spec: {match: {countries: [EU]}, within: [EU]}
`

func stage() mesh.Config {
	return mesh.Config{
		Clusters: clusters(), Delay: delay, Policies: pinned,
		Service: fmt.Sprintf("{models: [llama], capacity: {slotsPerEndpoint: %d, interval: 500ms}}", slots),
		Server:  modelserver.Config{Slots: slots, OutputTokens: 16, TimePerOutputToken: 5 * time.Millisecond},
	}
}
