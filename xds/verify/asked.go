package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds"
)

// askingPath is a path of the OpenAI API whose body names the model.
const askingPath = "/v1/chat/completions"

// asked checks that a request for a model is passed on for the service that offers it, or for one that its Traffic policy
// sends a share to. Models that end in "*" are left out: a longer name of another service may come before them.
func (k *walk) asked(listener string, routes *routing) {
	for i := range k.set.Services {
		s := &k.set.Services[i]
		if s.Spec.Protocol != policies.ProtocolOpenAI {
			continue
		}
		for _, model := range s.Spec.Models {
			if strings.HasSuffix(model, "*") {
				continue
			}
			h := headers{listed: map[string]value{":path": {exactly, askingPath}, xds.HeaderModel: {exactly, model}}}
			for _, t := range distinct(k.targets(routes, h)) {
				if !k.offers(s, t.service) {
					k.report(Violation{Code: WrongService, Resource: listener, Route: t.route, Cluster: t.cluster,
						Detail: fmt.Sprintf("a request for model %q of service %q is passed on for service %q", model, s.Metadata.Name, t.service)})
				}
			}
		}
	}
}

// offers says whether requests for a service may be passed on for another.
func (k *walk) offers(s *policies.Service, other policies.ServiceName) bool {
	return s.Metadata.Name == other || slices.ContainsFunc(k.set.TrafficFor(s.Metadata.Name).Splits, func(p policies.Split) bool { return p.Service == other })
}
