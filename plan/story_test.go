package plan_test

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

// TestStories runs the stories of testdata. Each is an archive of a policy file, the story, a line a command, and what
// comes of it. The commands:
//
//	see CLUSTER                            a gateway of the cluster connects
//	healthy SERVICE CLUSTER N [unknown]    N endpoints of a pool are healthy, the rest is not, or unknown
//	healthy all                            every endpoint is healthy
//	load SERVICE CLUSTER RUNNING           a pool's first endpoint says how many requests it runs, the others none
//	find SERVICE CLUSTER ADDRESS...        the endpoints of a pool that is read from its cluster
//	fits SERVICE CLUSTER N                 accelerators for N more replicas are free in a cluster
//	demand CLUSTER SERVICE CLASS N         N requests are in flight from a cluster's gateway
//	rtt REGION REGION DURATION             a round trip is measured
//	policies FILE                          another policy file of the archive is in force
//	pass DURATION                          time passes
//	plan                                   plans, publishes, and prints all decisions
//	shares                                 plans, publishes, and prints the shares only
//	run DURATION NAME=VALUE...             see closedloop_test.go
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runStory(t, file) })
	}
}

func runStory(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := story{files: map[string]string{}}
	for _, f := range archive.Files {
		s.files[f.Name] = string(f.Data)
	}
	s.simulation = simulate(t, s.files["policies.yaml"])
	for _, line := range strings.Split(strings.TrimSpace(s.files["story"]), "\n") {
		s.command(line)
	}
	if !*update {
		if diff := cmp.Diff(s.files["result"], s.out.String()); diff != "" {
			t.Errorf("result (-want +got); -update accepts it:\n%s", diff)
		}
		return
	}
	archive.Files = append(archive.Files[:len(archive.Files)-1], txtar.File{Name: "result", Data: []byte(s.out.String())})
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// story is a simulation driven by text.
type story struct {
	*simulation
	files map[string]string
	out   strings.Builder
	last  *loop
}

func (s *story) command(line string) {
	word := strings.Fields(line)
	if len(word) == 0 || strings.HasPrefix(line, "#") {
		return
	}
	fmt.Fprintf(&s.out, "> %s\n", line)
	switch word[0] {
	case "see":
		s.see(policies.ClusterName(word[1]))
	case "healthy":
		s.healthy(word[1:])
	case "load":
		s.load(policies.ServiceName(word[1]), policies.ClusterName(word[2]), int(s.number(word[3])), 0)
	case "find":
		s.find(poolOf(word), word[3:])
	case "fits":
		s.commit(world.AcceleratorsCounted{Cluster: policies.ClusterName(word[2]), Accelerators: &world.Accelerators{},
			Pools: []world.PoolReplicas{{Service: policies.ServiceName(word[1]), Fit: int64(s.number(word[3]))}}})
	case "demand":
		s.want(s.viewpointOf(word[1]), policies.ServiceName(word[2]), world.ClassID(word[3]), s.number(word[4]))
	case "rtt":
		s.commit(world.RoundTripMeasured{From: policies.RegionName(word[1]), To: policies.RegionName(word[2]), RTT: s.duration(word[3]), At: s.world.Now()})
	case "policies":
		s.commit(world.PoliciesLoaded{Set: parse(s.t, s.files[word[1]])})
	case "pass":
		s.advance(s.duration(word[1]))
	case "plan":
		s.compute()
		s.publish()
		describe(&s.out, s.plan)
	case "shares":
		s.compute()
		s.publish()
		s.printShares()
	case "run":
		s.run(s.duration(word[1]), word[2:])
	default:
		s.t.Fatalf("no such command: %s", line)
	}
}

// poolOf is the pool that the second and third word of a command name.
func poolOf(word []string) world.PoolKey {
	return world.PoolKey{Service: policies.ServiceName(word[1]), Cluster: policies.ClusterName(word[2])}
}

func (s *story) find(pool world.PoolKey, addresses []string) {
	f := world.PoolFound{Pool: pool}
	for _, a := range addresses {
		f.Endpoints = append(f.Endpoints, world.FoundEndpoint{Address: netip.MustParseAddrPort(a), Condition: world.Ready})
	}
	s.commit(f)
}

func (s *story) number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// viewpointOf is that of a cluster's gateway.
func (s *story) viewpointOf(cluster string) world.ViewpointID {
	region, _ := s.world.RegionOf(policies.ClusterName(cluster))
	return world.Viewpoint{Role: policies.RoleGateway, Region: region, Cluster: policies.ClusterName(cluster)}.ID()
}

func (s *story) healthy(word []string) {
	if word[0] == "all" {
		s.judgeAll()
		return
	}
	rest := world.Unhealthy
	if len(word) > 3 && word[3] == "unknown" {
		rest = world.Unknown
	}
	s.judge(policies.ServiceName(word[0]), policies.ClusterName(word[1]), int(s.number(word[2])), rest)
}

// load has the first endpoint of a pool say what the pool runs and what waits, and the others nothing.
func (s *simulation) load(service policies.ServiceName, cluster policies.ClusterName, running, waiting int) {
	key := world.PoolKey{Service: service, Cluster: cluster}
	for i, e := range s.world.Pool(key).Endpoints {
		load := world.Load{At: s.world.Now()}
		if i == 0 {
			load.Running, load.Waiting = running, waiting
		}
		s.commit(world.EndpointMeasured{Endpoint: world.EndpointKey{Pool: key, Address: e.Address}, Load: load})
	}
}

// describe prints decisions for people.
func describe(out *strings.Builder, p *plan.Plan) {
	for _, d := range p.Decisions {
		fmt.Fprintf(out, "%s %s %s\n", d.Viewpoint, d.Service, d.Class)
		for _, c := range d.Choices {
			position := c.Role.String()
			switch c.Role {
			case plan.Serving:
				position += fmt.Sprintf(" %g%%", float64(c.Share)/100)
			case plan.Standby:
				position += fmt.Sprintf(" %d", c.Priority)
			}
			if !c.Healthy {
				position += " (not healthy)"
			}
			for i, r := range c.Reasons {
				if i == 0 {
					fmt.Fprintf(out, "  %-6s %-24s %s: %s\n", c.Cluster, position, r.Code, r)
				} else {
					fmt.Fprintf(out, "  %-6s %-24s %s: %s\n", "", "", r.Code, r)
				}
			}
		}
	}
	describeNext(out, p)
}

func describeNext(out *strings.Builder, p *plan.Plan) {
	if !p.NextAt.IsZero() {
		fmt.Fprintf(out, "plan again at %s\n", p.NextAt.Sub(start))
	}
}

func (s *story) printShares() {
	for _, d := range s.plan.Decisions {
		fmt.Fprintf(&s.out, "%s %s %s:", d.Viewpoint, d.Service, d.Class)
		for _, share := range d.Shares() {
			fmt.Fprintf(&s.out, " %s=%g%%", share.Cluster, float64(share.Parts)/100)
		}
		s.out.WriteByte('\n')
	}
	describeNext(&s.out, s.plan)
}
