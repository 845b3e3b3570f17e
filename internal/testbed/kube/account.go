package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Account says which service account a token is for.
type Account struct {
	// Namespace and Name are made where they are missing. Required.
	Namespace, Name string
	// Pod binds the token to a pod, which is made where it is missing: it runs nowhere. Empty: bound to none.
	Pod string
	// Audiences are whom the token is for. None: the API server.
	Audiences []string
	// Lifetime is at least 10 minutes, as the API server wants it. Default 10 minutes.
	Lifetime time.Duration
}

// Token makes a service account and a token for it, as a kubelet would ask for one.
func (s *Server) Token(ctx context.Context, a Account) (string, error) {
	client, err := kubernetes.NewForConfig(s.REST())
	if err != nil {
		return "", fmt.Errorf("token of %s/%s: %w", a.Namespace, a.Name, err)
	}
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{Audiences: a.Audiences, ExpirationSeconds: new(int64(max(a.Lifetime, 10*time.Minute).Seconds()))}}
	if err := create(ctx, client, a, request); err != nil {
		return "", fmt.Errorf("token of %s/%s: %w", a.Namespace, a.Name, err)
	}
	made, err := client.CoreV1().ServiceAccounts(a.Namespace).CreateToken(ctx, a.Name, request, meta.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of %s/%s: %w", a.Namespace, a.Name, err)
	}
	return made.Status.Token, nil
}

// create makes what an account needs and is not there yet, and binds the request to its pod.
func create(ctx context.Context, client kubernetes.Interface, a Account, request *authentication.TokenRequest) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: a.Namespace}}, meta.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	_, err = client.CoreV1().ServiceAccounts(a.Namespace).Create(ctx, &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: a.Name}}, meta.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	if a.Pod == "" {
		return nil
	}
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: a.Pod}, Spec: core.PodSpec{ServiceAccountName: a.Name, Containers: []core.Container{{Name: "proxy", Image: "proxy"}}}}
	if _, err := client.CoreV1().Pods(a.Namespace).Create(ctx, pod, meta.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	request.Spec.BoundObjectRef = &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: a.Pod}
	return nil
}

// Aged gives a token as it would be had it been issued that much earlier: with the same claims otherwise, and signed as well.
func (s *Server) Aged(token string, by time.Duration) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("age a token: it is no JWT: %d parts", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("age a token: %w", err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", fmt.Errorf("age a token: %w", err)
	}
	for _, when := range []string{"exp", "iat", "nbf"} {
		if at, ok := claims[when].(float64); ok {
			claims[when] = int64(at - by.Seconds())
		}
	}
	if payload, err = json.Marshal(claims); err != nil {
		return "", fmt.Errorf("age a token: %w", err)
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(payload)
	signature, err := s.sign(signed)
	if err != nil {
		return "", fmt.Errorf("age a token: %w", err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// sign signs as the API server does: ES256, RFC 7518, section 3.4.
func (s *Server) sign(text string) ([]byte, error) {
	file, err := os.ReadFile(s.file("accounts.key"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(file)
	if block == nil {
		return nil, fmt.Errorf("%s is no PEM", s.file("accounts.key"))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is no ECDSA key", s.file("accounts.key"))
	}
	digest := sha256.Sum256([]byte(text))
	r, t, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return nil, err
	}
	return append(r.FillBytes(make([]byte, 32)), t.FillBytes(make([]byte, 32))...), nil
}
