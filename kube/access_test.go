package kube

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	testkube "github.com/meridian-mesh/meridian/internal/testbed/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// memberRole is what deploy grants the control plane in a member cluster.
func memberRole(t *testing.T) *rbac.ClusterRole {
	t.Helper()
	text, err := os.ReadFile("../deploy/rbac/member-cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbac.ClusterRole{}
	if err := yaml.UnmarshalStrict(text, role); err != nil {
		t.Fatal(err)
	}
	return role
}

// asReader has the kubeconfig be one of an account that may do what a role says, and nothing else. It returns the token.
func (c *cluster) asReader(role *rbac.ClusterRole) string {
	c.t.Helper()
	text, err := yaml.Marshal(role)
	if err != nil {
		c.t.Fatal(err)
	}
	c.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: meridian}\n---\n" + string(text) + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: meridian-member}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: meridian-member}
subjects: [{kind: ServiceAccount, namespace: meridian, name: reader}]
`)
	token, err := c.Token(c.t.Context(), testkube.Account{Namespace: "meridian", Name: "reader"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.useToken(token)
	return token
}

func (c *cluster) useToken(token string) {
	c.t.Helper()
	config, err := c.KubeconfigOf(token)
	if err != nil {
		c.t.Fatal(err)
	}
	c.writeKubeconfig(config)
}

// fromPool reads InferencePool models/llama.
var fromPool = policies.PoolSource{Kind: policies.FromInferencePool, Namespace: "models", Name: "llama"}

const inferencePoolLlama = `
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {namespace: models, name: llama}
spec: {selector: {matchLabels: {app: %s}}, targetPorts: [%s]}
`

// podOfLlama is a pod with an address, ready or not.
func podOfLlama(name, app, address, ready string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: models, name: %s, labels: {app: %s}}
spec: {containers: [{name: vllm, image: vllm}]}
status: {phase: Running, podIP: %s, podIPs: [{ip: %s}], conditions: [{type: Ready, status: "%s"}]}
---
`, name, app, address, address, ready)
}

// installInferencePools makes the kind known, and waits until it is.
func (c *cluster) installInferencePools() {
	c.t.Helper()
	crd, err := os.ReadFile("testdata/inferencepool-crd.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	c.apply(string(crd))
	eventually(c.t, "InferencePools are served", func() bool {
		return c.Apply(c.t.Context(), fmt.Appendf(nil, inferencePoolLlama, "llama", "{number: 8000}")) == nil
	})
}

// A pool follows an InferencePool: its pods, as they come and go, at each of its ports, by the selector of now.
func TestAPoolFollowsAnInferencePool(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.installInferencePools()
	c.apply(podOfLlama("a", "llama", "10.0.0.1", "True") + podOfLlama("b", "llama", "10.0.0.2", "False") + podOfLlama("other", "mistral", "10.0.0.9", "True"))
	w, f := watching(t, serving(fromPool, c))
	pool := poolIn("fra-1")
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Ready, "10.0.0.2:8000": world.Unready})
	c.apply(podOfLlama("b", "llama", "10.0.0.2", "True"))
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Ready, "10.0.0.2:8000": world.Ready})
	c.remove(podOfLlama("a", "llama", "10.0.0.1", "True"))
	f.until(t, pool, map[string]world.Condition{"10.0.0.2:8000": world.Ready})
	c.apply(fmt.Sprintf(inferencePoolLlama, "llama", "{number: 8000}, {number: 8001}"))
	f.until(t, pool, map[string]world.Condition{"10.0.0.2:8000": world.Ready, "10.0.0.2:8001": world.Ready})
	c.apply(fmt.Sprintf(inferencePoolLlama, "mistral", "{number: 9000}"))
	f.until(t, pool, map[string]world.Condition{"10.0.0.9:9000": world.Ready})
	c.remove(fmt.Sprintf(inferencePoolLlama, "mistral", "{number: 9000}"))
	f.until(t, pool, map[string]world.Condition{})
	if s := w.Status(); len(s[0].Problems) > 0 {
		t.Errorf("problems: %v", s[0].Problems)
	}
}

// All works under the role in deploy, and nothing works without any of what it grants.
func TestTheRoleGrantsWhatIsNeededAndNothingElse(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.installInferencePools()
	c.apply(kueueCRDs())
	c.applyNodes(gpuNode("a", ""))
	c.apply(podOfLlama("a", "llama", "10.0.0.1", "True") + "---\n" + sliceOfLlama("a", "10.0.0.5"))
	set := serving(fromPool, c)
	second := set.Services[0]
	second.Metadata.Name, second.Spec.Pools = "mistral", []policies.Pool{{Cluster: "fra-1", From: &fromService}}
	set.Services = append(set.Services, second)
	whole := memberRole(t)
	for i, rule := range whole.Rules {
		for j, resource := range rule.Resources {
			without := whole.DeepCopy()
			without.Rules[i].Resources = slices.Delete(without.Rules[i].Resources, j, j+1)
			if len(without.Rules[i].Resources) == 0 { // a rule without resources is invalid
				without.Rules = slices.Delete(without.Rules, i, i+1)
			}
			c.asReader(without)
			t.Run("without "+resource, func(t *testing.T) {
				w, _ := counting(t, set)
				eventually(t, "a problem with "+resource, func() bool {
					s := w.Status()
					return len(s) == 1 && strings.Contains(strings.Join(s[0].Problems, "\n"), resource)
				})
			})
		}
	}
	c.asReader(whole)
	counted := newCounts()
	w, f := watchingAs(t, Config{Counted: counted.take}, set)
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Ready})
	f.until(t, world.PoolKey{Service: "mistral", Cluster: "fra-1"}, map[string]world.Condition{"10.0.0.5:8000": world.Ready})
	until(t, counted, "accelerators are counted", []string{"H100 spot: 8 total, 0 used, 0 pending, 8 free, 0 barred"}, rowsOf)
	eventually(t, "no problem is left", func() bool { return len(w.Status()[0].Problems) == 0 })
}

// A token that expires leaves all as it is, and a kubeconfig with a new one is taken up.
func TestAnExpiredTokenIsReplaced(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.apply(sliceOfLlama("a", "10.0.0.1"))
	token := c.asReader(memberRole(t))
	w, f := watching(t, serving(fromService, c))
	pool := poolIn("fra-1")
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Ready})
	expired, err := c.Aged(token, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c.useToken(expired)
	eventually(t, "it counts as stale", func() bool { return w.Status()[0].Stale })
	if problems := strings.Join(w.Status()[0].Problems, "\n"); !strings.Contains(problems, "Unauthorized") || strings.Contains(problems, expired) {
		t.Errorf("problems: %s", problems)
	}
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Unsaid})
	c.apply(sliceOfLlama("a", "10.0.0.2"))
	c.asReader(memberRole(t))
	f.until(t, pool, map[string]world.Condition{"10.0.0.2:8000": world.Ready})
}

// A kubeconfig in a Secret is followed, and must not make the control plane read its own files.
func TestAKubeconfigInASecret(t *testing.T) {
	own, c := startCluster(t, "own"), startCluster(t, "fra-1")
	c.apply(sliceOfLlama("a", "10.0.0.1"))
	put := func(kubeconfig []byte) {
		text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "models", "name": "fra-1"}, "stringData": map[string]string{"kubeconfig": string(kubeconfig)}})
		if err != nil {
			t.Fatal(err)
		}
		own.apply(string(text))
	}
	reach := &policies.Kubernetes{Secret: &policies.SecretKey{Namespace: "models", Name: "fra-1", Key: "kubeconfig"}, StaleAfter: policies.Duration(time.Minute)}
	set := serving(fromService, c)
	set.Clusters[0].Spec.Kubernetes = reach
	client, err := kubernetes.NewForConfig(own.REST())
	if err != nil {
		t.Fatal(err)
	}
	w, f := watchingAs(t, Config{Own: client}, set)
	eventually(t, "the Secret is missed", func() bool {
		s := w.Status()
		return len(s) == 1 && strings.Contains(strings.Join(s[0].Problems, "\n"), `secrets "fra-1" not found`)
	})
	good := must(c.Kubeconfig())
	put([]byte(strings.Replace(string(good), "token: ", "tokenFile: /etc/passwd #", 1)))
	eventually(t, "the file is refused", func() bool {
		return strings.Contains(strings.Join(w.Status()[0].Problems, "\n"), "names a file or a program")
	})
	put(good)
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Ready})
}
