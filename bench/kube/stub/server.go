package stub

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
)

// Cluster is one cluster's API server, on a loopback port of its own. Its methods may be called from any goroutine.
type Cluster struct {
	// Set once.
	shape       Shape
	name        string
	server      *http.Server
	address     string
	bundle      []byte
	collections map[string]*collection // by group, version and resource
	pods        *collection
	slices      *collection
	ended       chan error

	// replacing orders what Replace does.
	replacing sync.Mutex
	version   int64 // under replacing: of the newest change

	// Atomic.
	sent   atomic.Int64 // objects
	sentAt atomic.Int64 // when the last of them was, in Unix nanoseconds
}

// Start serves a cluster until Stop.
func Start(name string, shape Shape) (*Cluster, error) {
	if err := shape.Check(); err != nil {
		return nil, err
	}
	certificate, bundle, err := identity(name)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	c := &Cluster{shape: shape, name: name, address: l.Addr().String(), bundle: bundle, ended: make(chan error, 1), version: firstVersion}
	c.fill()
	c.server = &http.Server{
		Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
	go func() { c.ended <- c.server.ServeTLS(l, "", "") }()
	return c, nil
}

// identity is a certificate for loopback, and what trusts it.
func identity(name string) (certificate tls.Certificate, bundle []byte, err error) {
	a, err := authority.New(name)
	if err != nil {
		return certificate, nil, err
	}
	chain, key, err := a.Issue(authority.Leaf{Addresses: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}})
	if err != nil {
		return certificate, nil, err
	}
	certificate, err = tls.X509KeyPair(chain, key)
	return certificate, a.Bundle(), err
}

// Stop ends it and all its watches.
func (c *Cluster) Stop() error {
	err := c.server.Close()
	if served := <-c.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Kubeconfig reaches the API server.
func (c *Cluster) Kubeconfig() ([]byte, error) {
	return clientcmd.Write(api.Config{
		CurrentContext: c.name,
		Clusters:       map[string]*api.Cluster{c.name: {Server: "https://" + c.address, CertificateAuthorityData: c.bundle}},
		AuthInfos:      map[string]*api.AuthInfo{c.name: {Token: "bench"}},
		Contexts:       map[string]*api.Context{c.name: {Cluster: c.name, AuthInfo: c.name}},
	})
}

// Sent is how many objects have been sent to all clients so far, and when the last was.
func (c *Cluster) Sent() (objects int64, last time.Time) {
	return c.sent.Load(), time.Unix(0, c.sentAt.Load())
}

// note counts an object that was sent.
func (c *Cluster) note() {
	c.sent.Add(1)
	c.sentAt.Store(time.Now().UnixNano())
}

// Replace has a pod of a service replaced by one with another address, by which EventOf finds the event: its pod changes, and then its
// EndpointSlice. It returns when the slice's change was about to be told.
func (c *Cluster) Replace(service, number, event int) (time.Time, error) {
	each := c.shape.PodsPerService()
	if service < 0 || service >= c.shape.Services || number < 0 || number >= each || event < 0 || event >= mostEvents {
		return time.Time{}, fmt.Errorf("replace pod %d of service %d by event %d: there are %d services with %d pods each", number, service, event, c.shape.Services, each)
	}
	c.replacing.Lock()
	defer c.replacing.Unlock()
	i := service*each + number
	c.version++
	c.pods.put(i, movedPod(c.pods.now(i), eventAddress(event), c.version), c.version)
	c.version++
	changed := movedEndpoint(c.slices.now(service), number, eventAddress(event), c.version)
	at := time.Now()
	c.slices.put(service, changed, c.version)
	return at, nil
}

func versionText(v int64) string { return strconv.FormatInt(v, 10) }
