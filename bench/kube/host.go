package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
	"github.com/meridian-mesh/meridian/bench/kube/stub"
)

// host plays the API servers.
type host struct {
	clusters []*stub.Cluster
}

func (h *host) do(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "serve":
		return answer{}, h.serve(o)
	case "sent":
		return h.sent(), nil
	case "events":
		return h.events(ctx, o.Size)
	}
	return unknown(o)
}

// clusterName is a cluster's, and of the file with its kubeconfig.
func clusterName(i int) string { return fmt.Sprintf("c-%03d", i) }

func (h *host) serve(o order) error {
	for i := range o.Size.Clusters {
		c, err := stub.Start(clusterName(i), o.Size.shape(i))
		if err != nil {
			return err
		}
		h.clusters = append(h.clusters, c)
		kubeconfig, err := c.Kubeconfig()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.Folder, clusterName(i)), kubeconfig, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) sent() (a answer) {
	for _, c := range h.clusters {
		n, at := c.Sent()
		a.Sent += n
		a.SentAt = max(a.SentAt, at.UnixNano())
	}
	return a
}

// events replaces pods at random times, as many a second as the size says on average: all clusters take turns, then all services, then
// the pods of each, so that no pod is replaced again soon.
func (h *host) events(ctx context.Context, s size) (a answer, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	next := time.Now()
	for e := range s.events() {
		next = next.Add(time.Duration(random.ExpFloat64() / s.Rate * float64(time.Second)))
		trial.Pause(ctx, time.Until(next))
		service := e / s.Clusters
		at, err := h.clusters[e%s.Clusters].Replace(service%s.Services, service/s.Services%(s.Pods/s.Services), e)
		if err != nil {
			return a, err
		}
		a.Events = append(a.Events, at.UnixNano())
	}
	return a, nil
}

func (h *host) end() (err error) {
	for _, c := range h.clusters {
		err = errors.Join(err, c.Stop())
	}
	return err
}
