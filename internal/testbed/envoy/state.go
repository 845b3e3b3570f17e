package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// Stats are the counters and gauges whose names match a regular expression, those that were ever touched.
func (p *Process) Stats(ctx context.Context, filter string) (map[string]int64, error) {
	body, err := p.Get(ctx, "/stats?format=json&usedonly&filter="+url.QueryEscape(filter))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Stats []struct {
			Name  string
			Value json.Number
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("read Envoy's stats: %w", err)
	}
	stats := map[string]int64{}
	for _, s := range answer.Stats {
		if value, err := s.Value.Int64(); err == nil { // histograms have no value
			stats[s.Name] = value
		}
	}
	return stats, nil
}

// Clusters are the upstream clusters with the state of each of their hosts.
func (p *Process) Clusters(ctx context.Context) (*admin.Clusters, error) {
	body, err := p.Get(ctx, "/clusters?format=json")
	if err != nil {
		return nil, err
	}
	clusters := &admin.Clusters{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, clusters); err != nil {
		return nil, fmt.Errorf("read Envoy's clusters: %w", err)
	}
	return clusters, nil
}

// ConfigDump is all the configuration that the Envoy holds, endpoints included, as JSON.
func (p *Process) ConfigDump(ctx context.Context) ([]byte, error) {
	return p.Get(ctx, "/config_dump?include_eds")
}

// Rejected says which updates of its configuration the Envoy has refused since it started: counters above zero, and the
// reasons that it still knows. Nothing refused is empty.
func (p *Process) Rejected(ctx context.Context) ([]string, error) {
	stats, err := p.Stats(ctx, `\.update_rejected$`)
	if err != nil {
		return nil, err
	}
	dump, err := p.ConfigDump(ctx)
	if err != nil {
		return nil, err
	}
	var config any
	if err := json.Unmarshal(dump, &config); err != nil {
		return nil, fmt.Errorf("read Envoy's configuration: %w", err)
	}
	reasons := map[string]bool{}
	errorStates(config, reasons)
	for name, count := range stats {
		if count > 0 {
			reasons[fmt.Sprintf("%s: %d", name, count)] = true
		}
	}
	return slices.Sorted(maps.Keys(reasons)), nil
}

// errorStates gathers the details of every error_state in a config dump; each kind of resource has it elsewhere.
func errorStates(node any, into map[string]bool) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			errorStates(child, into)
		}
	case map[string]any:
		if state, ok := node["error_state"].(map[string]any); ok {
			if details, ok := state["details"].(string); ok {
				into[details] = true
			}
		}
		for _, child := range node {
			errorStates(child, into)
		}
	}
}
