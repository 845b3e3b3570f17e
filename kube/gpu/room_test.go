package gpu

import (
	"testing"

	core "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

func named(s string) types.NamespacedName { return types.NamespacedName{Namespace: "models", Name: s} }

// Room is for replicas like most of the pods, with what their own claims ask for and within the quota of their queue.
func TestRoomForReplicas(t *testing.T) {
	queued := func(p *core.Pod) { p.Labels = map[string]string{labelQueue: "team"} }
	byClaim := func(name string) func(*core.Pod) {
		return func(p *core.Pod) {
			p.Spec.Containers = nil
			p.Status.ResourceClaimStatuses = []core.PodResourceClaimStatus{{Name: "gpus", ResourceClaimName: &name}}
		}
	}
	i := objects{
		nodes: []*core.Node{node("n1"), node("n2"), node("n3", bare)},
		pods: []*core.Pod{
			pod("two-0", "n1", "2"), pod("two-1", "n1", "2"), pod("one", "n1", "1"), pod("queued", "n2", "1", queued),
			pod("dra", "n3", "0", byClaim("c")), pod("shares", "n3", "0", func(p *core.Pod) { byClaim("lent")(p) }),
		},
		slices: []*dra.ResourceSlice{slice("s", "n3", 1, device0("gpu-0"), device0("gpu-1"), device0("gpu-2"), device0("gpu-3"))},
		claims: []*dra.ResourceClaim{allocate(claim("c", nvidia, 1), "n3", "gpu-0")},
	}.inventory()
	lent := allocate(claim("lent", nvidia, 1), "n3", "gpu-1")
	lent.OwnerReferences = nil
	kept, _ := ClaimOf(lent, Settings{})
	i.PutClaim(named("lent"), kept)
	i.PutQueue(queueOf(t, inference))
	for name, c := range map[string]struct {
		pods []string
		want int64
	}{
		"of two GPUs":               {[]string{"one", "two-0", "two-1"}, 1 + 3},
		"of one":                    {[]string{"one"}, 3 + 7},
		"queued, with no queue":     {[]string{"queued"}, 3 + 7},
		"of a device by a claim":    {[]string{"dra"}, 2},
		"all by a claim they share": {[]string{"shares"}, 0},
		"none that is known":        {[]string{"gone"}, 0},
		"none":                      {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			room := i.Room()
			var pods []types.NamespacedName
			for _, p := range c.pods {
				pods = append(pods, named(p))
			}
			equal(t, c.want, room.More(pods...))
			equal(t, c.want, room.More(pods...)) // asking takes nothing
		})
	}
	i.PutLocalQueue(named("team"), "inference")
	equal(t, int64(3), i.Room().More(named("queued")))
	i.RemoveLocalQueue(named("team"))
	equal(t, int64(10), i.Room().More(named("queued")))
}
