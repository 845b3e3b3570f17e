package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
	"github.com/meridian-mesh/meridian/internal/testbed/process"
)

// Config configures a Server.
type Config struct {
	// Name is the cluster's, for its kubeconfigs and for errors. Default "test".
	Name string
	// Address is the loopback address of its ports. Default 127.0.0.1.
	Address netip.Addr
}

// Server is one running API server with its etcd.
type Server struct {
	// Set once, before Start returns.
	name        string
	address     netip.AddrPort
	etcdAddress netip.AddrPort
	dir         string
	ca          []byte
	admin       string // its token
	etcd        *process.Process
	api         *process.Process
}

// Start runs an API server and waits until it is ready. The caller must end it with Stop. Where it does not become ready
// before ctx ends, it is ended, and the error has its log.
func Start(ctx context.Context, config Config) (*Server, error) {
	config.Name = cmp.Or(config.Name, "test")
	if !config.Address.IsValid() {
		config.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	s := &Server{name: config.Name, admin: rand.Text()}
	if err := s.start(ctx, config.Address); err != nil {
		return nil, errors.Join(fmt.Errorf("start Kubernetes %s: %w", config.Name, err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, at netip.Addr) error {
	binaries, err := Binaries()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "meridian-kube-"); err != nil {
		return err
	}
	if err := s.writeFiles(at); err != nil {
		return err
	}
	var ports [3]netip.AddrPort
	for i := range ports {
		if ports[i], err = loopback.Free(at); err != nil {
			return err
		}
	}
	s.address, s.etcdAddress = ports[0], ports[1]
	if s.etcd, err = process.Start("etcd", exec.Command(filepath.Join(binaries, "etcd"), s.etcdArgs(ports[1], ports[2])...)); err != nil {
		return err
	}
	if s.api, err = process.Start("kube-apiserver", exec.Command(filepath.Join(binaries, "kube-apiserver"), s.apiArgs(ports[1])...)); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

// writeFiles makes the server's certificate, the key that signs tokens, and the administrator's token.
func (s *Server) writeFiles(at netip.Addr) error {
	ca, err := authority.New(s.name)
	if err != nil {
		return err
	}
	s.ca = ca.Bundle()
	certificate, key, err := ca.Issue(authority.Leaf{Addresses: []netip.Addr{at}})
	if err != nil {
		return err
	}
	signed, signer, err := ca.Issue(authority.Leaf{})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "accounts.crt": signed, "accounts.key": signer, "tokens.csv": []byte(s.admin + ",admin,admin,system:masters\n")} {
		if err := os.WriteFile(s.file(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// etcdArgs keep it on loopback, and trade what survives a power cut for speed.
func (s *Server) etcdArgs(clients, peers netip.AddrPort) []string {
	return []string{"--name=" + s.name, "--data-dir=" + s.file("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://" + clients.String(), "--advertise-client-urls=http://" + clients.String(),
		"--listen-peer-urls=http://" + peers.String(), "--initial-advertise-peer-urls=http://" + peers.String(), "--initial-cluster=" + s.name + "=http://" + peers.String()}
}

// apiArgs leave out what needs controllers: nobody would give namespaces their default service account.
func (s *Server) apiArgs(etcd netip.AddrPort) []string {
	return []string{"--etcd-servers=http://" + etcd.String(), "--bind-address=" + s.address.Addr().String(), "--advertise-address=" + s.address.Addr().String(), "--secure-port=" + fmt.Sprint(s.address.Port()),
		"--cert-dir=" + s.dir, "--tls-cert-file=" + s.file("tls.crt"), "--tls-private-key-file=" + s.file("tls.key"),
		"--service-account-issuer=https://" + s.name + ".kubernetes.test", "--service-account-key-file=" + s.file("accounts.crt"), "--service-account-signing-key-file=" + s.file("accounts.key"),
		"--token-auth-file=" + s.file("tokens.csv"), "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/16",
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"}
}

// waitReady asks until the server says that it is.
func (s *Server) waitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.REST())
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, last := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready at %s: %w; its log:\n%s", s.address, errors.Join(ctx.Err(), last), s.api.Log())
		case <-s.api.Exited():
			return fmt.Errorf("ended before it was ready: %w; its log:\n%s", s.api.Err(), s.api.Log())
		case <-s.etcd.Exited():
			return fmt.Errorf("etcd ended: %w; its log:\n%s", s.etcd.Err(), s.etcd.Log())
		case <-tick.C:
		}
	}
}

// Stop ends the server and its etcd, and removes what they kept.
func (s *Server) Stop() error {
	var errs []error
	for _, p := range []*process.Process{s.api, s.etcd} { // the one that depends on the other first
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// Kill ends the API server at once, as a crash would; its etcd goes on.
func (s *Server) Kill() error { return s.api.Kill() }

// Restart runs an API server anew after Kill, at the same address and with the same objects, and waits until it is ready.
func (s *Server) Restart(ctx context.Context) error {
	binaries, err := Binaries()
	if err != nil {
		return err
	}
	if s.api, err = process.Start("kube-apiserver", exec.Command(filepath.Join(binaries, "kube-apiserver"), s.apiArgs(s.etcdAddress)...)); err != nil {
		return fmt.Errorf("restart Kubernetes %s: %w", s.name, err)
	}
	return s.waitReady(ctx)
}

// Pause freezes the API server: its connections stay open, the kernel accepts new ones, and nothing answers.
func (s *Server) Pause() error { return s.api.Pause() }

// Resume lets a paused API server go on.
func (s *Server) Resume() error { return s.api.Resume() }

// Log is the last part of what the API server has logged.
func (s *Server) Log() string { return s.api.Log() }

// Address is where the API server listens.
func (s *Server) Address() netip.AddrPort { return s.address }

// REST reaches the API server as an administrator who may do everything. Each client opens connections of its own, so that
// none outlives it.
func (s *Server) REST() *rest.Config {
	return &rest.Config{Host: "https://" + s.address.String(), BearerToken: s.admin, TLSClientConfig: rest.TLSClientConfig{CAData: s.ca},
		QPS: -1, WrapTransport: func(inner http.RoundTripper) http.RoundTripper { return closing{inner} }}
}

// closing ends each connection with its request.
type closing struct{ inner http.RoundTripper }

// RoundTrip asks for the connection to be closed.
func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Close = true
	return c.inner.RoundTrip(r)
}

// Kubeconfig reaches the API server as an administrator.
func (s *Server) Kubeconfig() ([]byte, error) { return s.KubeconfigOf(s.admin) }

// KubeconfigOf reaches the API server as whoever has a token.
func (s *Server) KubeconfigOf(token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[s.name] = &clientcmdapi.Cluster{Server: "https://" + s.address.String(), CertificateAuthorityData: s.ca}
	config.AuthInfos[s.name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[s.name] = &clientcmdapi.Context{Cluster: s.name, AuthInfo: s.name}
	config.CurrentContext = s.name
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig of %s: %w", s.name, err)
	}
	return out, nil
}
