package stub

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// handler answers all requests.
func (c *Cluster) handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		asJSON(w, http.StatusOK, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"})
	})
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		asJSON(w, http.StatusOK, meta.APIVersions{TypeMeta: meta.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) { asJSON(w, http.StatusOK, c.groups()) })
	mux.HandleFunc("GET /api/{version}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		c.answer(w, r, "", r.PathValue("version"))
	})
	mux.HandleFunc("GET /apis/{group}/{version}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		c.answer(w, r, r.PathValue("group"), r.PathValue("version"))
	})
	for _, path := range []string{"GET /api/{version}", "GET /apis/{group}/{version}"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if l := c.resources(r.PathValue("group"), r.PathValue("version")); l != nil {
				asJSON(w, http.StatusOK, l)
				return
			}
			refuse(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", notServed(r), "", "", 0, true))
		})
	}
	return mux
}

// answer finds the resource that a path names, and lists it, watches it or gets one object.
func (c *Cluster) answer(w http.ResponseWriter, r *http.Request, group, version string) {
	namespace, resource, name := split(r.PathValue("rest"))
	of, ok := c.collections[group+"/"+version+"/"+resource]
	if !ok {
		refuse(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", notServed(r), "", "", 0, true))
		return
	}
	q, err := parseQuery(r, of.kind, namespace, name)
	if err == nil {
		q.served = c
		err = q.answer(w, r, of)
	}
	if err != nil {
		refuse(w, err)
	}
}

// split reads the rest of a path: namespaces/NAMESPACE/RESOURCE/NAME, without what is not there.
func split(rest string) (namespace, resource, name string) {
	parts := strings.Split(rest, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	return namespace, parts[0], name
}

// refuse answers with an error, as a Status.
func refuse(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.TypeMeta = meta.TypeMeta{APIVersion: "v1", Kind: "Status"}
	asJSON(w, int(s.Code), s)
}

func asJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // whoever asked has gone
}

// groups are all groups but the core.
func (c *Cluster) groups() meta.APIGroupList {
	l := meta.APIGroupList{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	seen := map[string]bool{"": true}
	for _, k := range c.kinds() {
		if seen[k.group] {
			continue
		}
		seen[k.group] = true
		v := meta.GroupVersionForDiscovery{GroupVersion: k.group + "/" + k.version, Version: k.version}
		l.Groups = append(l.Groups, meta.APIGroup{Name: k.group, Versions: []meta.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return l
}

// resources are those of a group's version; nil where it is not served.
func (c *Cluster) resources(group, version string) *meta.APIResourceList {
	l := &meta.APIResourceList{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: strings.TrimPrefix(group+"/"+version, "/")}
	for _, k := range c.kinds() {
		if k.group == group && k.version == version {
			l.APIResources = append(l.APIResources, meta.APIResource{Name: k.resource, Kind: k.name, Namespaced: k.namespaced, Verbs: meta.Verbs{"get", "list", "watch"}})
		}
	}
	if len(l.APIResources) == 0 {
		return nil
	}
	return l
}

// kinds are those that are served, sorted.
func (c *Cluster) kinds() []kind {
	var all []kind
	for _, of := range c.collections {
		all = append(all, of.kind)
	}
	slices.SortFunc(all, func(a, b kind) int {
		return strings.Compare(a.group+"/"+a.version+"/"+a.resource, b.group+"/"+b.version+"/"+b.resource)
	})
	return all
}
