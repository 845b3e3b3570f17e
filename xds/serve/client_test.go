package serve

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/meridian-mesh/meridian/xds"
)

// client is a delta client that answers by itself.
type client struct {
	t      *testing.T
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	cancel context.CancelFunc
	// came tells each response, in words such as "C a=1 -b".
	came chan string
	// err is how the stream ended.
	err chan error
}

// join connects a client that asks for everything of some types and accepts all but what refuse names, in words such as "a=1".
func join(t *testing.T, ads discovery.AggregatedDiscoveryServiceClient, id string, refuse string, types ...xds.Type) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	stream, err := ads.DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, stream: stream, cancel: cancel, came: make(chan string, 1000), err: make(chan error, 1)}
	for _, typ := range types {
		c.say(&discovery.DeltaDiscoveryRequest{Node: &core.Node{Id: id, Cluster: "c"}, TypeUrl: string(typ)})
	}
	go c.follow(refuse)
	return c
}

func (c *client) say(r *discovery.DeltaDiscoveryRequest) {
	if err := c.stream.Send(r); err != nil {
		c.t.Errorf("send: %v", err)
	}
}

func (c *client) follow(refuse string) {
	for {
		r, err := c.stream.Recv()
		if err != nil {
			c.err <- err
			return
		}
		words := []string{xds.Type(r.GetTypeUrl()).Short()[:1]}
		answer := &discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
		for _, res := range r.GetResources() {
			word := res.GetName() + "=" + res.GetVersion()
			words = append(words, word)
			if refuse != "" && word == refuse {
				answer.ErrorDetail = &rpc.Status{Message: fmt.Sprintf("cluster %s: no such field", res.GetName())}
			}
		}
		for _, gone := range r.GetRemovedResources() {
			words = append(words, "-"+gone)
		}
		_ = c.stream.Send(answer) // an error is Recv's too
		c.came <- strings.Join(words, " ")
	}
}

// gets waits for the next response, which must be this one.
func (c *client) gets(want string) {
	c.t.Helper()
	select {
	case got := <-c.came:
		if got != want {
			c.t.Fatalf("got %q, want %q", got, want)
		}
	case err := <-c.err:
		c.t.Fatalf("the stream ended, want %q: %v", want, err)
	case <-time.After(20 * time.Second):
		c.t.Fatalf("nothing came, want %q", want)
	}
}

// getsNothing says that nothing has come so far.
func (c *client) getsNothing() {
	c.t.Helper()
	select {
	case got := <-c.came:
		c.t.Fatalf("got %q", got)
	default:
	}
}

// nodeOf is a node of the tests' cluster.
func nodeOf(id string) *core.Node { return &core.Node{Id: id, Cluster: "c"} }
