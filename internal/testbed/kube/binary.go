package kube

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Version is the Kubernetes that `make kubernetes` builds.
const Version = "1.37.2"

// EnvBinaries names the environment variable that overrides in which folder the kube-apiserver and the etcd are.
const EnvBinaries = "MERIDIAN_KUBERNETES"

// ErrNoBinaries says that there is no Kubernetes to run.
var ErrNoBinaries = errors.New("no Kubernetes found: run `make kubernetes`, or set " + EnvBinaries + " to a folder with a kube-apiserver and an etcd")

// Binaries finds the folder with the kube-apiserver and the etcd to run: the one that the environment names, else the one
// in .tools of this or an enclosing folder.
func Binaries() (string, error) {
	if dir := os.Getenv(EnvBinaries); dir != "" {
		if err := has(dir); err != nil {
			return "", fmt.Errorf("%s: %w", EnvBinaries, err)
		}
		return dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find Kubernetes: %w", err)
	}
	for {
		if tools := filepath.Join(dir, ".tools", "kubernetes", Version); has(tools) == nil {
			return tools, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNoBinaries
		}
		dir = parent
	}
}

// has says whether a folder has both.
func has(dir string) error {
	_, api := os.Stat(filepath.Join(dir, "kube-apiserver"))
	_, etcd := os.Stat(filepath.Join(dir, "etcd"))
	return errors.Join(api, etcd)
}
