package modelserver

import (
	"fmt"
	"net/http"
	"strings"
)

// reportLoad puts the load into the header of an answer, in the form that the request asks for. vLLM does so where the
// request has endpoint-load-metrics-format: TEXT or JSON, and only for answers that are not streamed.
func (s *Server) reportLoad(w http.ResponseWriter, r *http.Request) {
	now := s.engine.stats()
	switch strings.ToUpper(r.Header.Get("endpoint-load-metrics-format")) {
	case "TEXT":
		w.Header().Set("endpoint-load-metrics", fmt.Sprintf(
			"TEXT named_metrics.kv_cache_usage_perc=%g, named_metrics.num_requests_waiting=%d", now.kvCacheUse, now.waiting))
	case "JSON":
		w.Header().Set("endpoint-load-metrics", fmt.Sprintf(
			`JSON {"named_metrics": {"kv_cache_usage_perc": %g, "num_requests_waiting": %d}}`, now.kvCacheUse, now.waiting))
	}
}
