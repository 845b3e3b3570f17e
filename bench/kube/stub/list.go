package stub

import (
	"encoding/json"
	"net/http"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// list answers with the objects asked for, or with a page of them: all pages are of one version.
func (q *query) list(w http.ResponseWriter, of *collection, e encoding) error {
	at := q.from.Version
	if q.options.ResourceVersionMatch == meta.ResourceVersionMatchExact {
		at = q.version
	}
	version, changed := of.snapshot(at)
	var items []runtime.Object
	next := q.from.Index
	for ; next < of.count && (q.options.Limit == 0 || int64(len(items)) < q.options.Limit); next++ {
		if o := of.get(next, changed); q.matches(of.kind, o) {
			items = append(items, o)
			q.served.note()
		}
	}
	l := newList(of.kind)
	if err := apimeta.SetList(l, items); err != nil {
		return err
	}
	about, err := apimeta.ListAccessor(l)
	if err != nil {
		return err
	}
	about.SetResourceVersion(versionText(version))
	if next < of.count {
		token, err := json.Marshal(place{version, next})
		if err != nil {
			return err
		}
		about.SetContinue(string(token))
	}
	return e.whole(w, l)
}

// newList is an empty list of a kind.
func newList(k kind) runtime.Object {
	gvk := k.gvk()
	gvk.Kind += "List"
	l, err := scheme.Scheme.New(gvk)
	if err != nil {
		l = &unstructured.UnstructuredList{}
	}
	l.GetObjectKind().SetGroupVersionKind(gvk)
	return l
}
