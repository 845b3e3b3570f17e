package envoy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// DefaultVersion is the Envoy that `make envoy` fetches and that tests and the demo run.
const DefaultVersion = "1.40.0"

// EnvBinary names the environment variable that overrides which Envoy is run.
const EnvBinary = "MERIDIAN_ENVOY"

// ErrNoBinary says that there is no Envoy to run.
var ErrNoBinary = errors.New("no Envoy found: run `make envoy`, or set " + EnvBinary + " to the path of one")

// Binary finds the Envoy to run: the one that the environment names, else the one in .tools of this or an enclosing
// folder, else the one on the PATH.
func Binary() (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", EnvBinary, err)
		}
		return path, nil
	}
	path, err := BinaryOf(DefaultVersion)
	if err == nil {
		return path, nil
	}
	if path, err := exec.LookPath("envoy"); err == nil {
		return path, nil
	}
	return "", ErrNoBinary
}

// BinaryOf finds the Envoy of a version in .tools of this or an enclosing folder.
func BinaryOf(version string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find Envoy: %w", err)
	}
	for {
		path := filepath.Join(dir, ".tools", "envoy", version, "envoy")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no Envoy %s in .tools: run `make tools`", version)
		}
		dir = parent
	}
}
