package stub

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var small = Shape{Index: 7, Nodes: 4, Pods: 21, Services: 4}

func start(t *testing.T, shape Shape) (*Cluster, *rest.Config) {
	t.Helper()
	c, err := Start("fra-1", shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := c.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return c, config
}

func client(t *testing.T, config *rest.Config, media string) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.AcceptContentTypes, config.ContentType = media, media
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var medias = map[string]string{"protobuf": runtime.ContentTypeProtobuf, "JSON": runtime.ContentTypeJSON}

// Objects are as large as real ones: that is what the benchmark is about.
func TestObjectsHaveRealSizes(t *testing.T) {
	size := func(o any) int {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	large := Shape{Nodes: 10, Pods: 100, Services: 4}
	for what, c := range map[string]struct{ got, least, most int }{
		"pod":           {size(large.podMaker()(0)), 9_000, 15_000},
		"node":          {size(large.nodeMaker()(0)), 9_000, 20_000},
		"EndpointSlice": {size(large.sliceMaker()(0)), 5_000, 12_000},
		"Service":       {size(large.serviceMaker()(0)), 800, 3_000},
	} {
		t.Logf("%s: %d bytes", what, c.got)
		if c.got < c.least || c.got > c.most {
			t.Errorf("a %s has %d bytes of JSON, want %d to %d", what, c.got, c.least, c.most)
		}
	}
}

func TestPagesAreOfOneVersion(t *testing.T) {
	for name, media := range medias {
		t.Run(name, func(t *testing.T) {
			c, config := start(t, small)
			pods := client(t, config, media).CoreV1().Pods("")
			var names []string
			options := meta.ListOptions{Limit: 8}
			for {
				page, err := pods.List(t.Context(), options)
				if err != nil {
					t.Fatal(err)
				}
				if page.ResourceVersion != versionText(firstVersion) {
					t.Errorf("version %s", page.ResourceVersion)
				}
				for _, p := range page.Items {
					names = append(names, p.Name)
					if _, replaced := EventOf(netip.MustParseAddr(p.Status.PodIP)); replaced {
						t.Errorf("%s changed between the pages", p.Name)
					}
				}
				if options.Continue = page.Continue; page.Continue == "" {
					break
				}
				if _, err := c.Replace(3, 4, 1); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(names)
			if len(slices.Compact(names)) != small.Pods {
				t.Errorf("%d pods: %v", len(names), names)
			}
		})
	}
}

func TestSelectors(t *testing.T) {
	_, config := start(t, small)
	pods := client(t, config, runtime.ContentTypeProtobuf).CoreV1().Pods
	for _, c := range []struct {
		namespace, fields, labels string
		want                      int
	}{
		{"", "status.phase!=Succeeded,status.phase!=Failed", "", 21},
		{"", "status.phase=Failed", "", 0},
		{"", "spec.nodeName=" + small.nodeName(0), "", 6},
		{"", "spec.nodeName!=", "", 21},
		{Namespace(1), "", "", 5},
		{"", "", "app.kubernetes.io/instance=" + ServiceName(2), 5},
		{Namespace(1), "", "app.kubernetes.io/instance=" + ServiceName(2), 0},
	} {
		got, err := pods(c.namespace).List(t.Context(), meta.ListOptions{FieldSelector: c.fields, LabelSelector: c.labels})
		if err != nil || len(got.Items) != c.want {
			t.Errorf("%+v: %d pods, %v", c, len(got.Items), err)
		}
	}
	if _, err := pods("").List(t.Context(), meta.ListOptions{FieldSelector: "spec.colour=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field: %v", err)
	}
}

// next is the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		return e
	case <-t.Context().Done():
		t.Fatal("no event")
	}
	return watch.Event{}
}

// A watch sends what there is, says that this was all, and goes on with changes.
func TestAWatchSendsWhatThereIsFirst(t *testing.T) {
	for name, media := range medias {
		t.Run(name, func(t *testing.T) {
			c, config := start(t, small)
			w, err := client(t, config, media).DiscoveryV1().EndpointSlices("").Watch(t.Context(), meta.ListOptions{
				SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: meta.ResourceVersionMatchNotOlderThan})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			for range small.Services {
				if e := next(t, w); e.Type != watch.Added {
					t.Fatalf("%v", e)
				}
			}
			e := next(t, w)
			if o := e.Object.(*discovery.EndpointSlice); e.Type != watch.Bookmark || o.Annotations[meta.InitialEventsAnnotationKey] != "true" || o.ResourceVersion != versionText(firstVersion) {
				t.Fatalf("%v", e)
			}
			if _, err := c.Replace(2, 3, 70_000); err != nil {
				t.Fatal(err)
			}
			e = next(t, w)
			changed := e.Object.(*discovery.EndpointSlice)
			if event, ok := EventOf(netip.MustParseAddr(changed.Endpoints[3].Addresses[0])); e.Type != watch.Modified || !ok || event != 70_000 {
				t.Errorf("%v", e)
			}
			if _, ok := EventOf(netip.MustParseAddr(changed.Endpoints[2].Addresses[0])); ok {
				t.Error("another endpoint has changed too")
			}
		})
	}
}

func TestAWatchGoesOnWhereItWas(t *testing.T) {
	c, config := start(t, small)
	pods := client(t, config, runtime.ContentTypeProtobuf).CoreV1().Pods("")
	for event := range 3 {
		if _, err := c.Replace(0, event, event); err != nil {
			t.Fatal(err)
		}
	}
	w, err := pods.Watch(t.Context(), meta.ListOptions{ResourceVersion: versionText(firstVersion + 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := 1; event < 3; event++ {
		p := next(t, w).Object.(*core.Pod)
		if got, ok := EventOf(netip.MustParseAddr(p.Status.PodIP)); !ok || got != event {
			t.Errorf("event %d, want %d", got, event)
		}
	}
	if _, err := pods.Watch(t.Context(), meta.ListOptions{ResourceVersion: "5"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a version that is too old: %v", err)
	}
}

func TestCustomResourcesAreJSON(t *testing.T) {
	_, config := start(t, small)
	loose, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := loose.Resource(schema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"}).List(t.Context(), meta.ListOptions{})
	if err != nil || len(got.Items) != small.Services {
		t.Errorf("%v, %v", got, err)
	}
	_, err = loose.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "nothings"}).List(t.Context(), meta.ListOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a kind that there is not: %v", err)
	}
}

// What is served is what client-go's own informers and discovery understand.
func TestInformersSync(t *testing.T) {
	_, config := start(t, small)
	c := client(t, config, runtime.ContentTypeProtobuf)
	all := informers.NewSharedInformerFactory(c, 0)
	pods, nodes, claims := all.Core().V1().Pods().Lister(), all.Core().V1().Nodes().Lister(), all.Resource().V1().ResourceClaims().Lister()
	all.Start(t.Context().Done())
	all.WaitForCacheSync(t.Context().Done())
	for what, f := range map[string]func() (int, error){
		"pods":   func() (int, error) { l, err := pods.List(labels.Everything()); return len(l), err },
		"nodes":  func() (int, error) { l, err := nodes.List(labels.Everything()); return len(l), err },
		"claims": func() (int, error) { l, err := claims.List(labels.Everything()); return len(l), err },
	} {
		if got, err := f(); err != nil || got != map[string]int{"pods": small.Pods, "nodes": small.Nodes}[what] {
			t.Errorf("%s: %d, %v", what, got, err)
		}
	}
	l, err := c.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1")
	if err != nil || len(l.APIResources) != 2 {
		t.Errorf("%v, %v", l, err)
	}
}

func TestWrongShapesAreRefused(t *testing.T) {
	for _, s := range []Shape{{Index: 256}, {Nodes: -1}, {Pods: 5}, {Nodes: 1, Pods: 1 << 17, Services: 5000}, {Nodes: 1, Pods: 101, Services: 1}} {
		if _, err := Start("x", s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

func TestEventsAreInAddresses(t *testing.T) {
	for _, event := range []int{0, 1, 255, 256, 70_000, mostEvents - 1} {
		if got, ok := EventOf(eventAddress(event)); !ok || got != event {
			t.Errorf("%d: %d, %v", event, got, ok)
		}
	}
	if _, ok := EventOf(small.address(20)); ok {
		t.Error("an address from the start is of no event")
	}
}
