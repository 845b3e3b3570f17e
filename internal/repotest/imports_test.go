package repotest

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// layer is what a package may import of this repository, and why no more. Data flows from those that know to those that
// decide; imports point the other way.
type layer struct {
	may []string
	why string
}

// everything stands for all packages in a layer.
const everything = "..."

const (
	pureCore = "it decides from values that it is given, so that what-if, replay and tests are the same call"
	edge     = "an edge hands over plain values; what must act on them takes a func from the wiring"
	testbed  = "it plays the world around Meridian, which must not share the code under test"
)

// layers has a row for each package, or for all packages below a folder ("folder/..."). Tests may import more.
var layers = map[string]layer{
	"geo":                      {nil, "where things are is known without knowing anything of Meridian"},
	"geo/mmdb":                 {[]string{"geo"}, edge},
	"policies":                 {[]string{"geo"}, "what an operator wrote has a meaning of its own, whatever runs"},
	"policies/folder":          {[]string{"policies"}, edge},
	"world":                    {[]string{"geo", "policies"}, "what is known does not depend on what is decided from it"},
	"kube":                     {[]string{"geo", "kube/gpu", "policies", "world"}, edge},
	"kube/gpu":                 {[]string{"policies", "world"}, pureCore},
	"health":                   {[]string{"policies", "world"}, pureCore},
	"health/internal/fetch":    {nil, "getting bytes from an endpoint needs to know no domain"},
	"health/internal/schedule": {nil, "whose turn it is needs to know no domain"},
	"health/probe":             {[]string{"health", "health/internal/...", "policies", "world"}, edge},
	"health/scrape":            {[]string{"health", "health/internal/...", "policies", "world"}, edge},
	"plan":                     {[]string{"geo", "plan/flow", "policies", "world"}, pureCore},
	"plan/flow":                {nil, "min-cost flow is arithmetic; it knows no domain"},
	"xds":                      {[]string{"policies", "world"}, "a vocabulary that build, verify and serve share must not depend on one of them"},
	"xds/bootstrap":            {[]string{"policies", "world", "xds"}, "a proxy's bootstrap depends on who it is, not on a plan"},
	"xds/build":                {[]string{"geo", "plan", "policies", "world", "xds"}, pureCore},
	"xds/verify":               {[]string{"geo", "policies", "world", "xds"}, "a second opinion that shared code with plan or build would share their mistakes"},
	"xds/cache":                {[]string{"world", "xds"}, "what is published is bytes by viewpoint, whoever made them"},
	"xds/serve":                {[]string{"policies", "world", "xds", "xds/cache"}, "the wire must go on with the last good snapshot whatever planning does"},
	"xds/identity":             {[]string{"policies", "world"}, "who a proxy is depends on what it proves and on policies, not on what it would be sent"},
	"xds/report":               {[]string{"audit", "health", "policies", "world", "xds"}, edge},
	"xds/locate":               {[]string{"geo", "geo/mmdb", "xds"}, edge},
	"audit":                    {[]string{"plan", "world"}, "a record is made of decisions, not of how they were served"},
	"web":                      {[]string{"audit", "plan", "policies", "world"}, "a page shows values; the state of proxies comes in as a func"},
	"internal/pipeline": {[]string{"audit", "geo", "health", "plan", "policies", "world", "xds", "xds/build", "xds/cache", "xds/verify"},
		"the loop drives pure functions, so that tests, simulations and the server run the same one"},
	"internal/controlplane": {[]string{"audit", "geo", "geo/mmdb", "health", "health/probe", "health/scrape", "internal/pipeline", "kube", "plan", "policies",
		"policies/folder", "web", "world", "xds", "xds/cache", "xds/identity", "xds/locate", "xds/report", "xds/serve"},
		"wiring starts the edges and the loop; it decides nothing"},
	"cmd/meridian":         {[]string{everything}, ""},
	"bench":                {[]string{everything}, ""},
	"bench/...":            {[]string{everything}, ""},
	"internal/demo":        {[]string{everything}, ""},
	"internal/e2e":         {[]string{everything}, ""},
	"internal/conformance": {[]string{everything}, ""},
	"internal/repotest":    {nil, "it reads the repository as text"},
	"internal/testbed":     {nil, testbed},
	"internal/testbed/...": {[]string{"internal/testbed/..."}, testbed},
	"internal/testbed/mesh": {[]string{"geo", "geo/mmdb", "internal/controlplane", "internal/testbed/...", "policies", "world", "xds", "xds/bootstrap"},
		"a mesh runs the control plane as an operator would, from the outside"},
}

// imports holds every package to its row.
func imports(r *tree) (broken []string) {
	for _, p := range r.packages {
		sources := p.sources()
		if len(sources) == 0 {
			continue
		}
		row, ok := layerOf(p.dir)
		if !ok {
			broken = append(broken, fmt.Sprintf("%s:1: package %s has no row in the table of layers: decide what it may import and say why", sources[0].path, p.dir))
			continue
		}
		for _, f := range sources {
			for _, spec := range f.Imports {
				to, ours := strings.CutPrefix(importPath(spec.Path.Value), module)
				if ours && !matches(row.may, to) {
					broken = append(broken, r.at(spec.Pos(), "%s must not import %s: %s", p.dir, to, row.why))
				}
			}
		}
	}
	return broken
}

// layerOf finds the row of a package, or of the nearest folder around it that has one.
func layerOf(dir string) (layer, bool) {
	if row, ok := layers[dir]; ok {
		return row, true
	}
	for up := path.Dir(dir); up != "."; up = path.Dir(up) {
		if row, ok := layers[up+"/..."]; ok {
			return row, true
		}
	}
	return layer{}, false
}

func importPath(quoted string) string {
	unquoted, _ := strconv.Unquote(quoted) // the parser has checked it
	return unquoted
}

// matches tells whether a path is one of those listed; "folder/..." is all below a folder.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		folder, below := strings.CutSuffix(p, everything)
		return name == p || below && strings.HasPrefix(name, folder)
	})
}

// exclusive is what only some packages may import from others, and why.
type exclusive struct {
	path string // an import path or a prefix of one
	only []string
	why  string
}

// exclusives keep each library behind one package. The testbed plays other programs and may use what they use.
var exclusives = []exclusive{
	{"github.com/oschwald/", []string{"geo/mmdb"}, "what a database says comes in as a place"},
	{"github.com/hashicorp/golang-lru/", []string{"geo/mmdb", "xds/identity"}, "a cache must not outlive what it was filled from; these know when that ends"},
	{"go.yaml.in/yaml/", []string{"policies"}, "YAML from users is read in one place, strictly"},
	{"github.com/invopop/jsonschema", []string{"policies"}, "the schema is made from the types of policies"},
	{"github.com/fsnotify/", []string{"policies/folder"}, "watching files has traps; one package knows them"},
	{"k8s.io/", []string{"kube", "kube/gpu", "xds/identity", "bench/kube", "bench/kube/..."}, "what clusters hold comes in as facts"},
	{"github.com/spiffe/", []string{"xds/identity"}, "whose a certificate is, is decided in one place"},
	{"google.golang.org/grpc/health", []string{"health/probe"}, "endpoints are asked in one place, at a bounded rate"},
	{"github.com/prometheus/common/", []string{"health/scrape"}, "metrics of model servers are read in one place"},
	{"github.com/envoyproxy/go-control-plane/", []string{"xds", "xds/...", "bench/xds", "bench/kube"}, "the rest of Meridian decides in its own words, whatever Envoy's are"},
	{"github.com/cncf/xds/", []string{"xds", "xds/..."}, "the rest of Meridian decides in its own words, whatever Envoy's are"},
	{"github.com/spf13/", []string{"cmd/meridian"}, "flags are read in one place"},
	{"testing", nil, "what ships must not know of tests"},
	{"pgregory.net/rapid", nil, "what ships must not know of tests"},
	{"go.uber.org/goleak", nil, "what ships must not know of tests"},
	{"github.com/google/go-cmp/", nil, "what ships must not know of tests"},
	{module + "internal/testbed", []string{"internal/demo", "internal/e2e", "bench", "bench/..."}, "what serves must not know of its simulation"},
	{module + "internal/demo", []string{"cmd/meridian"}, "what serves must not know of its simulation"},
	{module + "internal/e2e", nil, "it holds tests only"},
	{module + "cmd/", nil, "a command is run, not imported"},
}

// alone holds the exclusives.
func alone(r *tree) (broken []string) {
	for _, p := range r.packages {
		if p.dir == "internal/testbed" || strings.HasPrefix(p.dir, "internal/testbed/") {
			continue
		}
		for _, f := range p.sources() {
			for _, spec := range f.Imports {
				for _, e := range exclusives {
					if strings.HasPrefix(importPath(spec.Path.Value), e.path) && !matches(e.only, p.dir) {
						broken = append(broken, r.at(spec.Pos(), "%s must not import %s: %s", p.dir, importPath(spec.Path.Value), e.why))
					}
				}
			}
		}
	}
	return broken
}
