package stub

import (
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// encoding is how answers are written.
type encoding struct{ runtime.SerializerInfo }

// negotiate finds the first media type that is accepted and offered. Custom resources have JSON only.
func negotiate(accept string, k kind) (encoding, error) {
	if accept == "" {
		accept = runtime.ContentTypeJSON
	}
	for _, wanted := range strings.Split(accept, ",") {
		media, params, err := mime.ParseMediaType(wanted)
		if err != nil || params["as"] != "" {
			continue
		}
		if media == "*/*" || media == "application/*" {
			media = runtime.ContentTypeJSON
		}
		if media == runtime.ContentTypeProtobuf && !scheme.Scheme.Recognizes(k.gvk()) {
			continue
		}
		for _, info := range scheme.Codecs.SupportedMediaTypes() {
			if info.MediaType == media && info.StreamSerializer != nil {
				return encoding{info}, nil
			}
		}
	}
	return encoding{}, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "get", schema.GroupResource{Group: k.group, Resource: k.resource}, "", "only application/json and application/vnd.kubernetes.protobuf are served", 0, true)
}

// whole answers with one object or list.
func (e encoding) whole(w http.ResponseWriter, o runtime.Object) error {
	w.Header().Set("Content-Type", e.MediaType)
	return e.Serializer.Encode(o, w)
}

// stream is a writer of events.
func (e encoding) stream(w io.Writer) *restwatch.Encoder {
	frames := e.StreamSerializer.Framer.NewFrameWriter(w)
	return restwatch.NewEncoder(streaming.NewEncoder(frames, e.StreamSerializer.Serializer), e.Serializer)
}

// newObject is an empty object of a kind, or a list where the kind is one.
func newObject(gvk schema.GroupVersionKind) object {
	if o, err := scheme.Scheme.New(gvk); err == nil {
		o.GetObjectKind().SetGroupVersionKind(gvk)
		return o.(object)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}
