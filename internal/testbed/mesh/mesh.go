package mesh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/meridian-mesh/meridian/geo/mmdb"
	"github.com/meridian-mesh/meridian/internal/controlplane"
	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
	"github.com/meridian-mesh/meridian/internal/testbed/kube"
	"github.com/meridian-mesh/meridian/internal/testbed/link"
	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/bootstrap"
)

// Mesh is a running mesh.
type Mesh struct {
	// Set once by Start.
	config   Config
	dir      string
	clusters []*Member
	plane    *controlplane.Plane
	run      context.Context // ends with the mesh
	end      context.CancelFunc
	endPlane context.CancelFunc
	planeRan chan struct{}
	running  *errgroup.Group
}

// Member is one cluster of a running mesh.
type Member struct {
	Cluster
	// HTTP is where the gateway serves clients, Admin is Envoy's own interface.
	HTTP, Admin netip.AddrPort

	dir string
	// eastWest is where the gateway listens for others, wide where they dial it: the same, or a link with delay.
	eastWest, wide netip.AddrPort
	servers        []*modelserver.Server
	gateway        *envoy.Process
	kube           *kube.Server
	pods           []Pod // as the API server lists the servers
	link           *link.Link
	source         netip.Addr
	mesh           *Mesh
	drain          string // further fields of its policy
	removed        bool   // from the policies
}

// Start starts a mesh and waits until every gateway is ready. Where it fails, all that was started is ended.
func Start(ctx context.Context, config Config) (*Mesh, error) {
	if config.Service == "" {
		config.Service = "{models: [" + Model + "]}"
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := os.MkdirTemp("", "meridian-mesh-")
	if err != nil {
		return nil, fmt.Errorf("start mesh: %w", err)
	}
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	group, run := errgroup.WithContext(run)
	m := &Mesh{config: config, dir: dir, run: run, end: end, running: group}
	if err := m.start(ctx, run); err != nil {
		return nil, errors.Join(fmt.Errorf("start mesh: %w", err), m.Stop())
	}
	return m, nil
}

func (m *Mesh) start(ctx, run context.Context) error {
	for _, dir := range []string{"policies", "bundles"} {
		if err := os.Mkdir(filepath.Join(m.dir, dir), 0o700); err != nil {
			return err
		}
	}
	if err := mmdb.WriteDemo(filepath.Join(m.dir, "country.mmdb")); err != nil {
		return err
	}
	for _, c := range m.config.Clusters {
		if err := m.addMember(run, c); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	if err := m.connect(run); err != nil {
		return err
	}
	if err := m.startKubernetes(ctx); err != nil {
		return err
	}
	var err error
	m.plane, err = controlplane.New(controlplane.Config{Policies: filepath.Join(m.dir, "policies"), XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true, Log: m.config.Log})
	if err != nil {
		return err
	}
	if err := m.writePolicies(); err != nil {
		return err
	}
	planeRun, endPlane := context.WithCancel(run)
	m.endPlane, m.planeRan = endPlane, make(chan struct{})
	m.running.Go(func() error {
		defer close(m.planeRan)
		return m.plane.Run(planeRun)
	})
	return m.startGateways(ctx)
}

// addMember makes a cluster's files, addresses and servers.
func (m *Mesh) addMember(run context.Context, c Cluster) error {
	member := &Member{Cluster: c, mesh: m, dir: filepath.Join(m.dir, c.Name), source: netip.AddrFrom4([4]byte{127, c.Network, 0, 1})}
	if err := os.Mkdir(member.dir, 0o700); err != nil {
		return err
	}
	if err := writeIdentity(c.Name, member.dir, filepath.Join(m.dir, "bundles")); err != nil {
		return err
	}
	for _, a := range []*netip.AddrPort{&member.HTTP, &member.Admin, &member.eastWest} {
		free, err := loopback.Free(member.source)
		if err != nil {
			return err
		}
		*a = free
	}
	member.wide = member.eastWest
	m.clusters = append(m.clusters, member)
	for range c.Servers {
		if err := member.addServer(run); err != nil {
			return err
		}
	}
	return nil
}

// addServer starts one more model server.
func (c *Member) addServer(run context.Context) error {
	i, config := len(c.servers), c.mesh.config.Server
	config.Name = fmt.Sprintf("%s-server-%d", c.Name, i)
	config.Models = []string{Model}
	address, port := [4]byte{127, c.Network, 1, byte(i + 1)}, uint16(0)
	if c.mesh.config.Kubernetes {
		address[0], port = 10, podPort
	}
	config.Address = netip.AddrPortFrom(netip.AddrFrom4(address), port)
	s, err := modelserver.New(config)
	if err != nil {
		return err
	}
	c.servers, c.pods = append(c.servers, s), append(c.pods, PodReady)
	c.mesh.running.Go(func() error { return s.Run(run) })
	return nil
}

// startGateways starts all Envoys at once and waits until the control plane has judged every server and all that follows from it has
// arrived: servers are judged one after the other, and what the first ones drew to them moves on by and by.
func (m *Mesh) startGateways(ctx context.Context) error {
	var starting errgroup.Group
	for _, c := range m.clusters {
		starting.Go(func() error { return c.startGateway(ctx) })
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	if err := m.Until(ctx, "every server is judged healthy", m.allHealthy); err != nil {
		return err
	}
	return m.Until(ctx, "all gateways have what is planned", m.settled)
}

func (m *Mesh) settled() bool {
	for _, p := range m.plane.Proxies() {
		if p.State != "synced" {
			return false
		}
	}
	return m.plane.State().Plan.NextAt.IsZero()
}

func (m *Mesh) allHealthy() bool {
	for _, p := range m.plane.State().World.Pools() {
		for _, e := range p.Endpoints {
			if p.VerdictOf(&e) != world.Healthy {
				return false
			}
		}
	}
	return true
}

// startGateway starts a cluster's Envoy.
func (c *Member) startGateway(ctx context.Context) error {
	config, err := bootstrap.New(bootstrap.Config{
		ID: c.Name + "-gateway", Servers: []netip.AddrPort{c.mesh.plane.XDS()}, Admin: c.Admin, Source: c.source, StateOfTheWorld: c.mesh.config.StateOfTheWorld,
		Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: policies.RegionName(c.Region), Cluster: policies.ClusterName(c.Name), Tenants: c.Tenants},
	})
	if err != nil {
		return err
	}
	c.gateway, err = envoy.Start(ctx, envoy.Config{Bootstrap: config, Admin: c.Admin, Version: c.Envoy})
	return err
}

// Stop ends everything that was started.
func (m *Mesh) Stop() error {
	var errs []error
	for _, c := range m.clusters {
		if c.gateway != nil {
			errs = append(errs, c.gateway.Stop())
		}
	}
	m.end()
	for _, c := range m.clusters {
		if c.kube != nil {
			errs = append(errs, c.kube.Stop())
		}
	}
	return errors.Join(append(errs, m.running.Wait(), os.RemoveAll(m.dir))...)
}

// StopPlane ends the control plane and leaves everything else running.
func (m *Mesh) StopPlane() {
	m.endPlane()
	<-m.planeRan
}

// Plane is the mesh's control plane.
func (m *Mesh) Plane() *controlplane.Plane { return m.plane }

// PolicyDir is the folder with the mesh's policy files.
func (m *Mesh) PolicyDir() string { return filepath.Join(m.dir, "policies") }

// Member finds a cluster by name; nil where there is none.
func (m *Mesh) Member(name string) *Member {
	for _, c := range m.clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Members are all clusters, in the order of the configuration.
func (m *Mesh) Members() []*Member { return m.clusters }

// untilAtMost is how long something is waited for: longer than anything takes on a busy machine.
const untilAtMost = 90 * time.Second

// Until waits for a condition, and says what was waited for when ctx ends first, or after a minute and a half.
func (m *Mesh) Until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, untilAtMost)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}
