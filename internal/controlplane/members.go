package controlplane

import (
	"github.com/meridian-mesh/meridian/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// newKube makes what reads member clusters.
func (p *Plane) newKube() (*kube.Watcher, error) {
	own, err := kube.OwnCluster(p.config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return kube.New(kube.Config{Found: p.pipeline.Find, Counted: p.pipeline.Count, Own: own, Log: p.log})
}

// seed tells the pipeline which endpoints pools had when the control plane ended, as far as they are read from clusters: until
// those are heard they are better than none. It does so once, for the first policies.
func (p *Plane) seed(set *policies.Set) {
	if len(p.restored.pools) == 0 {
		return
	}
	for i := range set.Services {
		s := &set.Services[i]
		for _, pool := range s.Spec.Pools {
			key := world.PoolKey{Service: s.Metadata.Name, Cluster: pool.Cluster}
			if endpoints, ok := p.restored.pools[key]; ok && pool.From != nil {
				p.pipeline.Find(world.PoolFound{Pool: key, Endpoints: endpoints})
			}
		}
	}
	p.restored.pools = nil
}
