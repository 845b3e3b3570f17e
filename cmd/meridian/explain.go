package main

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/geo/mmdb"
	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// question is what explain is asked.
type question struct {
	Policies string   `json:"-"`
	Cluster  string   `json:"cluster"`
	Role     role     `json:"role"`
	Address  string   `json:"-"`
	Database string   `json:"-"`
	Country  string   `json:"country,omitempty"`
	Tenant   string   `json:"tenant,omitempty"`
	Label    string   `json:"label,omitempty"`
	Model    string   `json:"model,omitempty"`
	Service  string   `json:"service,omitempty"`
	Down     []string `json:"down,omitempty"`
}

// explanation is where a request goes and why.
type explanation struct {
	Question question         `json:"question"`
	Service  string           `json:"service"`
	Class    world.ClassID    `json:"class,omitempty"`
	Refusal  *explainedReason `json:"refusal,omitempty"`
	// Fate is what becomes of a request that no policy refuses.
	Fate    plan.Fate   `json:"fate,omitempty"`
	Choices []explained `json:"choices,omitempty"`
}

// explained is one cluster that was considered.
type explained struct {
	Cluster  policies.ClusterName `json:"cluster"`
	Region   policies.RegionName  `json:"region"`
	Role     plan.Role            `json:"role"`
	Priority uint32               `json:"priority"`
	// Share is in percent.
	Share   float64           `json:"share"`
	Reasons []explainedReason `json:"reasons"`
}

// explainedReason is a reason as data, and in words.
type explainedReason struct {
	plan.Reason
	Text string `json:"text"`
}

func newExplain() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use: "explain --policies FOLDER --from CLUSTER (--model MODEL | --service SERVICE)", Short: "Say where a request would go, and why",
		Long: `Say which clusters may serve a request, in what order and with what share, and why each: also those that are refused.
The answer follows from the policies, with every endpoint healthy but those of the clusters given with --down.`,
		Example: `  meridian explain --policies policies/ --from fra-1 --model llama-3.1-70b --country DE
  meridian explain --policies policies/ --from fra-1 --service llama --country DE --down fra-1 -o json`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&q.Policies, "policies", "", "folder of policy files (required)")
	c.Flags().StringVar(&q.Cluster, "from", "", "the cluster whose gateway the request enters at (required)")
	addRole(c, &q.Role)
	c.Flags().StringVar(&q.Country, "country", "", "the client's country; empty: its location is unknown")
	c.Flags().StringVar(&q.Address, "address", "", "the client's address, to look its country up in --geo-database")
	c.Flags().StringVar(&q.Database, "geo-database", "", "MMDB for --address (default: the embedded demo database)")
	c.Flags().StringVar(&q.Tenant, "tenant", "", "the calling organisation")
	c.Flags().StringVar(&q.Label, "label", "", "the data label that the request carries")
	c.Flags().StringVar(&q.Model, "model", "", "the model that the body names")
	c.Flags().StringVar(&q.Service, "service", "", "the service, where it is not found by a model")
	c.Flags().StringSliceVar(&q.Down, "down", nil, "clusters that have failed")
	f := addFormat(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if q.Policies == "" || q.Cluster == "" || (q.Model == "") == (q.Service == "") {
			return usage("--policies, --from and one of --model and --service are required")
		}
		e, err := explain(q)
		if err != nil {
			return err
		}
		return f.show(c.OutOrStdout(), e, e.table)
	}
	return c
}

// explain answers from the policies.
func explain(q question) (explanation, error) {
	i, err := imagineFolder(q.Policies)
	if err != nil {
		return explanation{}, err
	}
	if q.Address != "" {
		if q.Country, err = countryOf(q.Address, q.Database); err != nil {
			return explanation{}, err
		}
	}
	cluster, ok := i.set.Cluster(policies.ClusterName(q.Cluster))
	if !ok {
		return explanation{}, usage("--from: there is no cluster %q", q.Cluster)
	}
	if q.Country != "" && !geo.ValidCountry(geo.Country(q.Country)) {
		return explanation{}, usage("--country: %q is not an ISO 3166-1 code such as DE", q.Country)
	}
	service, ok := serviceFor(i.set, q)
	if !ok {
		return explanation{}, &exitError{code: exitFailed, err: fmt.Errorf("no service offers model %q: clients get 404 model_not_found", q.Model+q.Service)}
	}
	if err := i.fail(q.Down, nil); err != nil {
		return explanation{}, err
	}
	viewpoint := world.Viewpoint{Role: policies.Role(q.Role), Region: cluster.Spec.Region, Cluster: cluster.Metadata.Name}
	return i.explain(q, service, viewpoint)
}

func (i *imagined) explain(q question, service policies.ServiceName, viewpoint world.Viewpoint) (explanation, error) {
	p := i.settle()
	o := p.Admission.Admit(service, geo.Country(q.Country), policies.Tenant(q.Tenant), policies.DataLabel(q.Label))
	e := explanation{Question: q, Service: string(service), Class: o.Class}
	if o.Refusal != nil {
		e.Refusal = &explainedReason{*o.Refusal, o.Refusal.String()}
		return e, nil
	}
	d, ok := p.Find(viewpoint.ID(), service, o.Class)
	if !ok {
		return e, fmt.Errorf("no Gateway policy selects the %s proxies of cluster %s", viewpoint.Role, viewpoint.Cluster)
	}
	e.Fate = d.Fate()
	for _, choice := range d.Choices {
		x := explained{Cluster: choice.Cluster, Region: choice.Region, Role: choice.Role, Priority: choice.Priority, Share: float64(choice.Share) * 100 / world.ShareTotal}
		for _, r := range choice.Reasons {
			x.Reasons = append(x.Reasons, explainedReason{r, r.String()})
		}
		e.Choices = append(e.Choices, x)
	}
	return e, nil
}

// countryOf looks an address up.
func countryOf(address, database string) (string, error) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "", usage("--address: %q is not an IP address", address)
	}
	db, err := mmdb.New(mmdb.Config{Path: database})
	if err != nil {
		return "", err
	}
	place, _, err := db.Lookup(a)
	if err != nil {
		return "", err
	}
	return string(place.Country), nil
}

// serviceFor finds the service by name, or by model: by its whole name, then by the longest prefix.
func serviceFor(set *policies.Set, q question) (policies.ServiceName, bool) {
	if q.Service != "" {
		_, ok := set.Service(policies.ServiceName(q.Service))
		return policies.ServiceName(q.Service), ok
	}
	var found policies.ServiceName
	longest := -1
	for _, s := range set.Services {
		if slices.Contains(s.Spec.Models, q.Model) {
			return s.Metadata.Name, true
		}
		for _, m := range s.Spec.Models {
			if prefix, wild := strings.CutSuffix(m, "*"); wild && strings.HasPrefix(q.Model, prefix) && len(prefix) > longest {
				found, longest = s.Metadata.Name, len(prefix)
			}
		}
	}
	return found, longest >= 0
}

func (e explanation) table(w io.Writer) {
	if e.Refusal != nil {
		fmt.Fprintf(w, "service %s: REFUSED: %s\n", e.Service, e.Refusal.Text)
		return
	}
	fmt.Fprintf(w, "service %s, residency class %s", e.Service, e.Class)
	if e.Fate != plan.Served {
		fmt.Fprintf(w, ": %s", strings.ToUpper(string(e.Fate)))
	}
	fmt.Fprint(w, "\n\n")
	fmt.Fprintln(w, "CLUSTER\tREGION\tROLE\tPRIORITY\tSHARE\tWHY")
	for _, c := range e.Choices {
		priority, share := fmt.Sprint(c.Priority), fmt.Sprintf("%.0f%%", c.Share)
		if c.Role == plan.Refused {
			priority, share = "-", "-"
		}
		var why []string
		for _, r := range c.Reasons {
			why = append(why, r.Text)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Cluster, c.Region, c.Role, priority, share, strings.Join(why, "; "))
	}
}
