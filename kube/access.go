package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/meridian-mesh/meridian/policies"
)

// access is how an API server is reached: a kubeconfig as it was read, so that a change of it can be told, or the service account
// of the pod in which the control plane runs, whose files client-go follows by itself.
type access struct {
	kubeconfig string
	inCluster  bool
}

// readAccess finds how a cluster's API server is reached. own is the control plane's own cluster, in which Secrets are; nil where
// it runs in none.
func readAccess(ctx context.Context, k *policies.Kubernetes, own kubernetes.Interface) (access, error) {
	switch {
	case k.InCluster:
		return access{inCluster: true}, nil
	case k.Secret != nil:
		return readSecret(ctx, k.Secret, own)
	}
	content, err := os.ReadFile(k.Kubeconfig)
	if err != nil {
		return access{}, fmt.Errorf("read kubeconfig: %w", err)
	}
	return access{kubeconfig: string(content)}, nil
}

func readSecret(ctx context.Context, s *policies.SecretKey, own kubernetes.Interface) (access, error) {
	if own == nil {
		return access{}, fmt.Errorf("read Secret %s/%s: the control plane runs in no cluster: give serve --kubeconfig, or name a kubeconfig file", s.Namespace, s.Name)
	}
	secret, err := own.CoreV1().Secrets(s.Namespace).Get(ctx, s.Name, meta.GetOptions{})
	if err != nil {
		return access{}, fmt.Errorf("read Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	content, ok := secret.Data[s.Key]
	if !ok {
		return access{}, fmt.Errorf("read Secret %s/%s: it has no entry %q", s.Namespace, s.Name, s.Key)
	}
	parsed, err := clientcmd.Load(content)
	if err != nil {
		return access{}, fmt.Errorf("read Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	if err := selfContained(parsed); err != nil {
		return access{}, fmt.Errorf("read Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return access{kubeconfig: string(content)}, nil
}

// selfContained refuses a kubeconfig that has the control plane read files or run programs.
func selfContained(c *api.Config) error {
	for name, u := range c.AuthInfos {
		if u.Exec != nil || u.AuthProvider != nil || cmp.Or(u.TokenFile, u.ClientCertificate, u.ClientKey) != "" {
			return fmt.Errorf("user %q of the kubeconfig names a file or a program: put a token or certificate data in their place", name)
		}
	}
	for name, cl := range c.Clusters {
		if cl.CertificateAuthority != "" {
			return fmt.Errorf("cluster %q of the kubeconfig names a file: put certificate-authority-data in its place", name)
		}
	}
	return nil
}

// rest is the access as client-go takes it. Errors hold no secrets.
func (a access) rest(k *policies.Kubernetes) (*rest.Config, error) {
	var c *rest.Config
	var err error
	if a.inCluster {
		c, err = rest.InClusterConfig()
	} else {
		var parsed *api.Config
		if parsed, err = clientcmd.Load([]byte(a.kubeconfig)); err == nil {
			relativeTo(parsed, k.Kubeconfig)
			c, err = clientcmd.NewNonInteractiveClientConfig(*parsed, k.Context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c.QPS = -1 // a few long requests: nothing to hold back
	c.UserAgent = "meridian"
	c.ContentConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	c.ContentConfig.ContentType = "application/vnd.kubernetes.protobuf"
	return c, nil
}

// relativeTo resolves the files that a kubeconfig names as kubectl does: beside it.
func relativeTo(c *api.Config, file string) {
	for _, u := range c.AuthInfos {
		u.LocationOfOrigin = file
	}
	for _, cl := range c.Clusters {
		cl.LocationOfOrigin = file
	}
	_ = clientcmd.ResolveLocalPaths(c) // it fails only where the kubeconfig has no folder
}

// errSilent is why a cluster counts as not heard where it does not answer at all.
var errSilent = errors.New("no answer")

// OwnCluster reaches the cluster in which the control plane runs: by a kubeconfig, or else by the service account of its pod. It is nil
// where there is neither.
func OwnCluster(kubeconfig string) (kubernetes.Interface, error) {
	k := policies.Kubernetes{Kubeconfig: kubeconfig}
	if kubeconfig == "" {
		if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
			return nil, nil
		}
		k.InCluster = true
	}
	a, err := readAccess(context.Background(), &k, nil)
	if err != nil {
		return nil, fmt.Errorf("the control plane's own cluster: %w", err)
	}
	c, err := a.rest(&k)
	if err != nil {
		return nil, fmt.Errorf("the control plane's own cluster: %w", err)
	}
	c.Timeout = 10 * time.Second
	own, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("the control plane's own cluster: %w", err)
	}
	return own, nil
}

// clients talk to one API server.
type clients struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

func connect(c *rest.Config) (clients, error) {
	typed, err := kubernetes.NewForConfig(c)
	if err != nil {
		return clients{}, fmt.Errorf("kubeconfig: %w", err)
	}
	asJSON := rest.CopyConfig(c)
	asJSON.ContentConfig = rest.ContentConfig{} // custom resources have no other form
	loose, err := dynamic.NewForConfig(asJSON)
	if err != nil {
		return clients{}, fmt.Errorf("kubeconfig: %w", err)
	}
	return clients{typed, loose}, nil
}
