package stub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// query is what a request asks of a collection.
type query struct {
	served          *Cluster
	namespace, name string
	options         meta.ListOptions
	labels          labels.Selector
	fields          fields.Selector
	version         int64 // 0: none given
	from            place // where a list goes on
}

// place is where a list goes on: what a continue token holds.
type place struct {
	Version int64 `json:"rv"`
	Index   int   `json:"start"`
}

func parseQuery(r *http.Request, k kind, namespace, name string) (q *query, err error) {
	q = &query{namespace: namespace, name: name}
	values := r.URL.Query()
	if err := meta.Convert_url_Values_To_v1_ListOptions(&values, &q.options, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if q.labels, err = labels.Parse(q.options.LabelSelector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if q.fields, err = fields.ParseSelector(q.options.FieldSelector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	known := fieldsOf(k, newObject(k.gvk()))
	for _, wanted := range q.fields.Requirements() {
		if _, ok := known[wanted.Field]; !ok {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", wanted.Field))
		}
	}
	if v := q.options.ResourceVersion; v != "" {
		if q.version, err = strconv.ParseInt(v, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
	}
	if q.options.Continue != "" {
		if err := json.Unmarshal([]byte(q.options.Continue), &q.from); err != nil {
			return nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
	}
	if q.initial() && q.options.ResourceVersionMatch != meta.ResourceVersionMatchNotOlderThan {
		return nil, apierrors.NewBadRequest("sendInitialEvents needs resourceVersionMatch NotOlderThan")
	}
	return q, nil
}

// initial says that a watch asks for what there is first, as a list would have it.
func (q *query) initial() bool {
	return q.options.SendInitialEvents != nil && *q.options.SendInitialEvents
}

// matches says whether an object is asked for.
func (q *query) matches(k kind, o object) bool {
	return (q.namespace == "" || o.GetNamespace() == q.namespace) && q.labels.Matches(labels.Set(o.GetLabels())) &&
		(q.fields.Empty() || q.fields.Matches(fieldsOf(k, o)))
}

// fieldsOf are the fields by which objects of a kind can be selected.
func fieldsOf(k kind, o object) fields.Set {
	set := fields.Set{"metadata.name": o.GetName()}
	if k.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	if p, ok := o.(*core.Pod); ok {
		set["spec.nodeName"], set["status.phase"], set["status.podIP"] = p.Spec.NodeName, string(p.Status.Phase), p.Status.PodIP
		set["spec.schedulerName"], set["spec.serviceAccountName"] = p.Spec.SchedulerName, p.Spec.ServiceAccountName
	}
	return set
}

// answer answers the request.
func (q *query) answer(w http.ResponseWriter, r *http.Request, of *collection) error {
	e, err := negotiate(r.Header.Get("Accept"), of.kind)
	switch {
	case err != nil:
		return err
	case q.options.Watch:
		return q.watch(w, r, of, e)
	case q.name != "":
		return q.get(w, of, e)
	}
	return q.list(w, of, e)
}

// get answers with one object.
func (q *query) get(w http.ResponseWriter, of *collection, e encoding) error {
	for i := range of.count {
		if o := of.now(i); o.GetName() == q.name && o.GetNamespace() == q.namespace {
			return e.whole(w, o)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: of.group, Resource: of.resource}, q.name)
}

// notServed is a resource that there is not, for errors.
func notServed(r *http.Request) schema.GroupResource {
	_, resource, _ := split(r.PathValue("rest"))
	return schema.GroupResource{Group: r.PathValue("group"), Resource: resource}
}
