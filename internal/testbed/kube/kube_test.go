package kube

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, c Config) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Two clusters on one machine hold their own objects, and leave nothing behind.
func TestClustersAreApart(t *testing.T) {
	a, b := start(t, Config{Name: "a"}), start(t, Config{Name: "b", Address: netip.MustParseAddr("127.0.7.1")})
	inA, err := kubernetes.NewForConfig(a.REST())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inA.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: "only-in-a"}}, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	inB, err := kubernetes.NewForConfig(b.REST())
	if err != nil {
		t.Fatal(err)
	}
	found, err := inB.CoreV1().Namespaces().List(t.Context(), meta.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range found.Items {
		if n.Name == "only-in-a" {
			t.Error("b has the namespace of a")
		}
	}
	for _, s := range []*Server{a, b} {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		for _, pid := range []int{s.api.Pid(), s.etcd.Pid()} {
			if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
				t.Errorf("process %d is still there: %v", pid, err)
			}
		}
		if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
			t.Errorf("its folder is still there: %v", err)
		}
	}
}

// A kubeconfig leads to its server, as whoever it is for.
func TestKubeconfigsAreOfSomebody(t *testing.T) {
	s := start(t, Config{})
	token, err := s.Token(t.Context(), Account{Namespace: "mesh", Name: "gateway", Pod: "gateway-0"})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := s.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	account, err := s.KubeconfigOf(token)
	if err != nil {
		t.Fatal(err)
	}
	for who, c := range map[string]struct {
		kubeconfig []byte
		want       string
	}{"an administrator": {admin, ""}, "a service account": {account, "system:serviceaccount:mesh:gateway"}} {
		config, err := clientcmd.RESTConfigFromKubeConfig(c.kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		config.WrapTransport = s.REST().WrapTransport
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CoreV1().Secrets("mesh").List(t.Context(), meta.ListOptions{})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %q", who, err, c.want)
		}
	}
}

func TestBinariesMissingSaysWhatToDo(t *testing.T) {
	t.Setenv(EnvBinaries, "")
	t.Chdir(t.TempDir())
	if _, err := Start(t.Context(), Config{}); err == nil || !strings.Contains(err.Error(), "make kubernetes") {
		t.Errorf("error %v does not say what to do", err)
	}
	t.Setenv(EnvBinaries, t.TempDir())
	if _, err := Start(t.Context(), Config{}); err == nil || !strings.Contains(err.Error(), EnvBinaries) {
		t.Errorf("error %v does not name %s", err, EnvBinaries)
	}
}
