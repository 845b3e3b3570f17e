package demo

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Check is what one act has shown.
type Check struct {
	// Name says what must hold.
	Name string `json:"name"`
	// Passed says whether it did.
	Passed bool `json:"passed"`
	// Detail says what was seen, with counts.
	Detail string `json:"detail"`
	// Sent and Failed count the act's requests.
	Sent   int `json:"sent"`
	Failed int `json:"failed"`
	// By counts its answers by who gave them.
	By map[string]int `json:"by,omitempty"`
}

// Result is what the demo has shown.
type Result struct {
	Checks  []Check `json:"checks"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Seconds float64 `json:"seconds"`
	// Gateways are where requests can be sent while the demo is kept running.
	Gateways map[string]string `json:"gateways,omitempty"`
}

func (r *Result) add(c Check) {
	r.Checks = append(r.Checks, c)
	if c.Passed {
		r.Passed++
	} else {
		r.Failed++
	}
}

// Summary writes the result for people. It ends with a line "N passed, N failed".
func (r *Result) Summary(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range r.Checks {
		mark := "ok  "
		if !c.Passed {
			mark = "FAIL"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, c.Name, c.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n%d passed, %d failed\n", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second), r.Passed, r.Failed)
	return err
}
