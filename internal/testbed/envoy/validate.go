package envoy

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Validate checks a bootstrap, YAML or JSON, with `envoy --mode validate`: all that Envoy can tell without connecting.
// The error has Envoy's words.
func Validate(ctx context.Context, bootstrap []byte) error {
	binary, err := Binary()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "--mode", "validate", "--disable-hot-restart", "--config-yaml", string(bootstrap))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("refused by Envoy: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
