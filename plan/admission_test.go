package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// places are three regions with a cluster each, two services everywhere, and a gateway that sees tenants and countries.
var places = []string{
	doc("Region", "fra", "{country: DE, location: {latitude: 50.1, longitude: 8.7}}"),
	doc("Region", "dub", "{country: IE, location: {latitude: 53.3, longitude: -6.3}}"),
	doc("Region", "iad", "{country: US, location: {latitude: 38.9, longitude: -77.4}}"),
	doc("Cluster", "fra-1", "{region: fra}"),
	doc("Cluster", "dub-1", "{region: dub}"),
	doc("Cluster", "iad-1", "{region: iad}"),
	doc("Service", "llama", `models: [llama]
pools:
- {cluster: fra-1, endpoints: [{address: 127.1.0.1, port: 8000}]}
- {cluster: dub-1, endpoints: [{address: 127.2.0.1, port: 8000}]}
- {cluster: iad-1, endpoints: [{address: 127.3.0.1, port: 8000}]}`),
	doc("Service", "licensed", `models: [licensed]
pools:
- {cluster: iad-1, endpoints: [{address: 127.3.0.2, port: 8000}]}`),
	doc("Gateway", "edge", `listeners: [{name: http, port: 8080}]
location: {source: GeoIP, database: geo.mmdb}
tenantHeader: x-tenant`),
}

func TestAdmit(t *testing.T) {
	rules := []string{
		doc("Residency", "eu-people", "{match: {countries: [EU]}, within: [EU]}"),
		doc("Residency", "german-health", "{match: {countries: [DE], labels: [health]}, within: [DE], unknownLocation: Pin}"),
		doc("Residency", "acme", "{match: {tenants: [acme]}, within: [region/dub]}"),
		doc("Residency", "american", "{match: {tenants: [usgov]}, within: [US]}"),
		doc("Residency", "licence", "{match: {services: [licensed]}, within: [US]}"),
		doc("Residency", "swiss", "{match: {countries: [CH], tenants: [bank]}, within: [EU], unknownLocation: Ignore}"),
	}
	w := worldOf(t, append(rules, places...))
	admission := plan.Compute(w, nil).Admission
	unknown := func(rules ...policies.ResidencyName) *plan.Reason {
		return &plan.Reason{Code: plan.UnknownLocation, Policies: rules}
	}
	clash := func(rules ...policies.ResidencyName) *plan.Reason {
		return &plan.Reason{Code: plan.NoPermittedRegion, Policies: rules}
	}
	for _, c := range []struct {
		name    string
		service policies.ServiceName
		country geo.Country
		tenant  policies.Tenant
		label   policies.DataLabel
		class   world.ClassID
		refusal *plan.Reason
	}{
		{"nothing binds a plain request from overseas", "llama", "US", "", "", "any", nil},
		{"a country in a union is bound by its rule", "llama", "FR", "", "", "eu-people", nil},
		{"all that a rule names must hold: the label is missing", "llama", "DE", "", "", "eu-people", nil},
		{"two rules make one class", "llama", "DE", "", "health", "eu-people+german-health", nil},
		{"a label alone is not enough either", "llama", "US", "", "health", "any", nil},
		{"a tenant is bound wherever it calls from", "llama", "US", "acme", "", "acme", nil},
		{"boundaries intersect", "llama", "FR", "acme", "", "acme+eu-people", nil},
		{"an empty intersection names all who clash", "llama", "FR", "usgov", "", "", clash("american", "eu-people")},
		{"three can clash", "llama", "DE", "acme", "health", "", clash("acme", "eu-people", "german-health")},
		{"a licence binds every request", "licensed", "JP", "", "", "licence", nil},
		{"a licence can clash with the caller", "licensed", "DE", "", "", "", clash("eu-people", "licence")},
		{"an unknown place is refused by the rule that needs it", "llama", "", "", "", "", unknown("eu-people")},
		{"a rule that pins the unknown does not hide one that refuses", "llama", "", "", "health", "", unknown("eu-people")},
		{"a tenant with an ignoring rule is bound by its country", "llama", "CH", "bank", "", "swiss", nil},
		{"a value that no rule names is like none", "llama", "BR", "someone", "public", "any", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := admission.Admit(c.service, c.country, c.tenant, c.label)
			want := plan.Outcome{Service: c.service, Class: c.class, Refusal: c.refusal}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(plan.Outcome{}, "Country", "Tenant", "Label")); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]world.ClassID{"licence"}, admission.Classes("licensed")[len(admission.Classes("licensed"))-1:]); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

func TestUnknownCountry(t *testing.T) {
	for _, c := range []struct {
		name    string
		unknown string
		outcome plan.Outcome
	}{
		{"Refuse refuses", "Refuse", plan.Outcome{Country: "?", Refusal: &plan.Reason{Code: plan.UnknownLocation, Policies: []policies.ResidencyName{"eu"}}}},
		{"Pin binds as if the country matched", "Pin", plan.Outcome{Country: "?", Class: "eu"}},
		{"Ignore is like any other country", "Ignore", plan.Outcome{Country: "*", Class: "any"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := doc("Residency", "eu", "{match: {countries: [EU]}, within: [EU], unknownLocation: "+c.unknown+"}")
			got := plan.Compute(worldOf(t, append([]string{rule}, places...)), nil).Admission.Admit("llama", "", "", "")
			want := c.outcome
			want.Service, want.Tenant, want.Label = "llama", "*", "*"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAdmissionTables shows the tables that proxies get.
func TestAdmissionTables(t *testing.T) {
	w := worldOf(t, append([]string{
		doc("Residency", "benelux", "{match: {countries: [BE, NL, LU]}, within: [EU], unknownLocation: Ignore}"),
		doc("Residency", "dutch-pii", "{match: {countries: [NL], labels: [pii]}, within: [IE], unknownLocation: Ignore}"),
	}, places...))
	got := plan.Compute(w, nil).Admission
	if diff := cmp.Diff([]plan.CountryGroup{{"BE", "benelux"}, {"LU", "benelux"}, {"NL", "benelux+dutch-pii"}}, got.Countries); diff != "" {
		t.Errorf("countries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]plan.LabelGroup{{"pii", "dutch-pii"}}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want := []plan.Outcome{
		{"llama", "*", "*", "*", "any", nil},
		{"llama", "*", "*", "dutch-pii", "any", nil},
		{"llama", "benelux", "*", "*", "benelux", nil},
		{"llama", "benelux", "*", "dutch-pii", "benelux", nil},
		{"llama", "benelux+dutch-pii", "*", "*", "benelux", nil},
		{"llama", "benelux+dutch-pii", "*", "dutch-pii", "benelux+dutch-pii", nil},
	}
	if diff := cmp.Diff(want, got.OutcomesOf("llama")); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}
