package serve

import (
	"time"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// Push is one response that was sent.
type Push struct {
	Viewpoint world.ViewpointID
	Type      xds.Type
	// Resources and Removed count what it held; Bytes is the size of the resources.
	Resources, Removed, Bytes int
}

// Answer is a client's answer to a response.
type Answer struct {
	Viewpoint world.ViewpointID
	Type      xds.Type
	Refused   bool
	// Since is when the change came in that the response was about; zero where it only answered what was asked.
	Since time.Time
}

// nameSome names the first few resources, so that a log line stays a line.
func nameSome(resources []*xds.Resource) []string {
	const most = 8
	names := make([]string, 0, most)
	for _, r := range resources[:min(len(resources), most)] {
		names = append(names, r.Name)
	}
	return names
}
