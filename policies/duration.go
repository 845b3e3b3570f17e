package policies

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as a Go duration string: "500ms", "5m".
type Duration time.Duration

// Std is the duration in the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String is the form in which the duration is written in policy files.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration string.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration string, with a unit: without one it would be a guess.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as \"500ms\", \"2s\" or \"5m\"", text)
	}
	*d = Duration(parsed)
	return nil
}
