package identity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authentication "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meridian-mesh/meridian/policies"
)

// Audience is whom a proxy's token must be for.
const Audience = "meridian"

const (
	// maxTokenBytes is several times the largest token of a service account.
	maxTokenBytes = 16 << 10
	// mostReviews bounds what one API server is asked at a time, mostReviewsFrom those of them that come from one address.
	mostReviews     = 16
	mostReviewsFrom = 4
	// mostRemembered bounds the answers kept for each API server.
	mostRemembered = 16 << 10
)

// ReviewConfig says which API server reviews tokens.
type ReviewConfig struct {
	// Cluster is whose API server it is. Required.
	Cluster policies.ClusterName
	// Kubeconfig is a file that says where the API server is and who we are to it: somebody who may create TokenReviews,
	// as the role system:auth-delegator says. Required. It must be reached by TLS, or on loopback.
	Kubeconfig string
	// Remember is how long an answer is good for. Default 30s.
	Remember time.Duration
	// Timeout is how long an answer may take. Default 5s.
	Timeout time.Duration
}

// Reviewer asks one cluster's API server whose tokens are. Make one with NewReviewer.
type Reviewer struct {
	// Set once.
	config ReviewConfig
	http   *http.Client
	server rest.Interface
	turns  *turns

	// Guard themselves.
	answers *lru.Cache[[sha256.Size]byte, answer]
	asking  singleflight.Group
}

// answer is what the API server said of a token.
type answer struct {
	account Account
	refused string // why the token is not good; empty where it is
	until   time.Time
}

// NewReviewer reads the kubeconfig. It does not speak to the API server.
func NewReviewer(config ReviewConfig) (*Reviewer, error) {
	if config.Cluster == "" || config.Kubeconfig == "" {
		return nil, errors.New("token reviews: a cluster and a kubeconfig are required")
	}
	config.Remember = cmp.Or(max(config.Remember, 0), 30*time.Second)
	config.Timeout = cmp.Or(max(config.Timeout, 0), 5*time.Second)
	to, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err == nil {
		err = isSafe(to)
	}
	if err != nil {
		return nil, fmt.Errorf("token reviews of cluster %s: kubeconfig %s: %w", config.Cluster, config.Kubeconfig, err)
	}
	through, server, err := connect(to)
	if err != nil {
		return nil, fmt.Errorf("token reviews of cluster %s: %w", config.Cluster, err)
	}
	answers, err := lru.New[[sha256.Size]byte, answer](mostRemembered)
	if err != nil {
		return nil, fmt.Errorf("token reviews of cluster %s: %w", config.Cluster, err)
	}
	return &Reviewer{config: config, http: through, server: server, turns: newTurns(mostReviews, mostReviewsFrom), answers: answers}, nil
}

// connect makes a client that knows TokenReviews and no other kind: all kinds would add 20 MB to the binary.
func connect(to *rest.Config) (*http.Client, rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := authentication.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	to.QPS, to.UserAgent = -1, "meridian" // turns bound what is asked
	to.APIPath, to.GroupVersion = "/apis", &authentication.SchemeGroupVersion
	to.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	through, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, nil, err
	}
	server, err := rest.RESTClientForConfigAndClient(to, through)
	return through, server, err
}

// Close lets go of connections to the API server that nobody uses. A Reviewer goes on to work after it.
func (r *Reviewer) Close() { r.http.CloseIdleConnections() }

// isSafe wants TLS that is checked: whoever sits between could read tokens, and say that they are good.
func isSafe(to *rest.Config) error {
	u, err := url.Parse(to.Host)
	if err != nil {
		return fmt.Errorf("the server's address: %w", err)
	}
	if to.Insecure {
		return errors.New("insecure-skip-tls-verify is set: give the CA of the API server instead")
	}
	if a, err := netip.ParseAddr(u.Hostname()); u.Scheme != "https" && (err != nil || !a.IsLoopback()) {
		return fmt.Errorf("the server %s is not reached by TLS", u.Host)
	}
	return nil
}

// Review gives the service account of a token. The error has a gRPC status: Unauthenticated where the API server says no,
// Unavailable where it says nothing.
func (r *Reviewer) Review(ctx context.Context, token string) (Account, error) {
	if len(token) > maxTokenBytes {
		return Account{}, status.Errorf(codes.Unauthenticated, "its bearer token has more than %d bytes", maxTokenBytes)
	}
	hash := sha256.Sum256([]byte(token))
	a, known := r.answers.Get(hash)
	if !known || time.Now().After(a.until) {
		var err error
		if a, err = r.ask(ctx, hash, token); err != nil {
			return Account{}, err
		}
	}
	if a.refused != "" {
		return Account{}, status.Errorf(codes.Unauthenticated, "cluster %s does not vouch for its bearer token: %s", r.config.Cluster, a.refused)
	}
	return a.account, nil
}

// ask asks the API server, once for all who have the same token. It is not given up where one of them goes.
func (r *Reviewer) ask(ctx context.Context, hash [sha256.Size]byte, token string) (answer, error) {
	asked := r.asking.DoChan(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.Timeout)
		defer cancel()
		a, err := r.review(ctx, token)
		if err == nil {
			a.until = time.Now().Add(r.config.Remember)
			r.answers.Add(hash, a)
		}
		return a, err
	})
	select {
	case <-ctx.Done():
		return answer{}, status.FromContextError(ctx.Err()).Err()
	case result := <-asked:
		if result.Err != nil {
			return answer{}, status.Errorf(codes.Unavailable, "the API server of cluster %s does not say whose its bearer token is: %s", r.config.Cluster, result.Err.Error())
		}
		return result.Val.(answer), nil
	}
}

// review asks in turn. What it gives does not have the token in it, nor do its errors.
func (r *Reviewer) review(ctx context.Context, token string) (answer, error) {
	done, err := r.turns.take(ctx, remote(ctx))
	if err != nil {
		return answer{}, fmt.Errorf("wait for a turn: %w", err)
	}
	defer done()
	review := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{Audience}}}
	var got authentication.TokenReview
	if err := r.server.Post().Resource("tokenreviews").Body(review).Do(ctx).Into(&got); err != nil {
		return answer{}, fmt.Errorf("create TokenReview: %w", err)
	}
	return r.read(got.Status), nil
}

// usernamePrefix begins the user name of each service account.
const usernamePrefix = "system:serviceaccount:"

// read takes the account out of the API server's answer. A server that knows nothing of audiences lists none, and is not
// believed: its word would be for tokens that were given to somebody else.
func (r *Reviewer) read(s authentication.TokenReviewStatus) answer {
	names, isAccount := strings.CutPrefix(s.User.Username, usernamePrefix)
	namespace, name, _ := strings.Cut(names, ":")
	switch {
	case !s.Authenticated:
		return answer{refused: cmp.Or(s.Error, "it is not authentic")}
	case !slices.Contains(s.Audiences, Audience):
		return answer{refused: "it is not for the audience " + Audience}
	case !isAccount || namespace == "" || name == "":
		return answer{refused: "it is not that of a service account"}
	}
	account := Account{Cluster: r.config.Cluster, Namespace: namespace, ServiceAccount: name}
	if pod := s.User.Extra["authentication.kubernetes.io/pod-name"]; len(pod) == 1 {
		account.Pod = pod[0]
	}
	return answer{account: account}
}
