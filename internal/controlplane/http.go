package controlplane

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
)

// handler is the operators' surface: metrics, health, readiness, status, and the client status discovery service over gRPC.
func (p *Plane) handler() http.Handler {
	mux := http.NewServeMux()
	statuses := grpc.NewServer()
	p.serve.RegisterStatus(statuses)
	mux.Handle("POST /envoy.service.status.v3.ClientStatusDiscoveryService/", statuses)
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", p.ready)
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, p.Status()) })
	return mux
}

// bothProtocols lets a listener speak HTTP/1.1, and HTTP/2 without TLS for gRPC.
func bothProtocols() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return &p
}

// ready says whether the plane can serve: it has policies, or what was published before, and is not shutting down.
func (p *Plane) ready(w http.ResponseWriter, _ *http.Request) {
	switch {
	case p.draining.Load():
		answer(w, http.StatusServiceUnavailable, "shutting down")
	case p.State().World.Policies() == nil && len(p.stale()) > 0:
		answer(w, http.StatusOK, "ok: no policies are in force yet, proxies get what was published before")
	case p.State().World.Policies() == nil:
		answer(w, http.StatusServiceUnavailable, "no policies are in force yet: see status")
	default:
		answer(w, http.StatusOK, "ok")
	}
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // the client may be gone
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client may be gone
}
