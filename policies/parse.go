package policies

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

const (
	// MaxFileBytes is the largest policy file that is read.
	MaxFileBytes = 4 << 20
	// maxDepth bounds how deep a document nests: the kinds nest less than ten deep.
	maxDepth = 32
	// maxDiagnostics bounds what a run says about hostile input.
	maxDiagnostics = 10_000
)

// Parse turns files into a Set, or into everything that is wrong with them. It never returns both. Files may be given
// in any order and may hold any number of documents; the same objects give the same Set.
func Parse(files []File) (*Set, Diagnostics) {
	p := &parsing{set: &Set{}, index: map[string]*document{}, refused: map[string]bool{}}
	for _, f := range files {
		p.file(f)
	}
	p.sort()
	p.check()
	p.nothingIsMissing(files)
	if len(p.diagnostics) > 0 {
		slices.SortStableFunc(p.diagnostics, compareDiagnostics)
		return nil, slices.Compact(p.diagnostics)
	}
	p.set.Hash = hashOf(p.set)
	return p.set, nil
}

func compareDiagnostics(a, b Diagnostic) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
}

// parsing is one run of Parse.
type parsing struct {
	set         *Set
	index       map[string]*document // of the objects in set, by "Kind/name"
	names       map[Kind][]string    // of the objects in set, sorted
	refused     map[string]bool      // objects that are there but not in set, by "Kind/name"
	unreadable  bool                 // whether some file could not be read to its end
	diagnostics Diagnostics
}

// file reads the documents of a file, up to where it is no YAML any more.
func (p *parsing) file(f File) {
	if message := unreadable(f.Bytes); message != "" {
		p.giveUp(f.Name, position{}, message)
		return
	}
	loader, err := yaml.NewLoader(bytes.NewReader(f.Bytes), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	for err == nil {
		var root yaml.Node
		if err = loader.Load(&root); err == nil && len(root.Content) > 0 && !isNull(root.Content[0]) {
			p.document(f.Name, root.Content[0])
		}
	}
	if !errors.Is(err, io.EOF) {
		at, message := syntaxError(err)
		p.giveUp(f.Name, at, "not valid YAML: "+message)
	}
}

// unreadable says why bytes are not given to the YAML loader; empty where they are.
func unreadable(bytes []byte) string {
	switch {
	case len(bytes) > MaxFileBytes:
		return fmt.Sprintf("the file is larger than %d bytes, the most that is read: split it", MaxFileBytes)
	case len(bytes) == 0:
		return "the file is empty: half-written? remove it, or leave a comment in it if it is meant to hold nothing"
	case !utf8.Valid(bytes):
		return "the file is not UTF-8 text"
	case slices.Contains(bytes, 0):
		return "the file contains a NUL byte"
	}
	return ""
}

func syntaxError(err error) (position, string) {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return position{}, clip(err.Error())
	}
	message := e.Message
	if e.ContextMsg != "" {
		message = e.ContextMsg + ": " + message
	}
	return position{e.Mark.Line, e.Mark.Column}, clip(message)
}

// giveUp reports what ends the reading of a file.
func (p *parsing) giveUp(file string, at position, message string) {
	p.unreadable = true
	p.add(Diagnostic{File: file, Line: at.line, Column: at.column, Message: message})
}

// complain reports something about a field of a document, unless the field could not be read in the first place.
func (p *parsing) complain(doc *document, field, message, near string) {
	if doc.wasMisread(field) {
		return
	}
	p.report(doc, doc.find(field), field, message, near)
}

func (p *parsing) report(doc *document, at position, field, message, near string) {
	p.add(Diagnostic{File: doc.file, Line: at.line, Column: at.column, Object: doc.id, Field: field, Message: message, Nearest: near})
}

func (p *parsing) add(d Diagnostic) {
	switch len(p.diagnostics) {
	case maxDiagnostics:
		p.diagnostics = append(p.diagnostics, Diagnostic{File: d.File, Message: fmt.Sprintf("more than %d errors: the rest is not shown", maxDiagnostics)})
	case maxDiagnostics + 1:
	default:
		p.diagnostics = append(p.diagnostics, d)
	}
}

// sort puts objects into the order of a Set, by name.
func (p *parsing) sort() {
	s := p.set
	p.names = map[Kind][]string{
		KindRegion:    sortByName(s.Regions, func(v *Region) RegionName { return v.Metadata.Name }),
		KindCluster:   sortByName(s.Clusters, func(v *Cluster) ClusterName { return v.Metadata.Name }),
		KindService:   sortByName(s.Services, func(v *Service) ServiceName { return v.Metadata.Name }),
		KindResidency: sortByName(s.Residencies, func(v *Residency) ResidencyName { return v.Metadata.Name }),
		KindTraffic:   sortByName(s.Traffics, func(v *Traffic) TrafficName { return v.Metadata.Name }),
		KindGateway:   sortByName(s.Gateways, func(v *Gateway) GatewayName { return v.Metadata.Name }),
	}
}

// sortByName sorts objects and lists their names.
func sortByName[T any, N ~string](objects []T, name func(*T) N) []string {
	slices.SortFunc(objects, func(a, b T) int { return cmp.Compare(name(&a), name(&b)) })
	names := make([]string, len(objects))
	for i := range objects {
		names[i] = string(name(&objects[i]))
	}
	return names
}

// check resolves, fills in defaults and validates, first each object and then what none can say alone.
func (p *parsing) check() {
	p.regions()
	p.clusters()
	p.services()
	p.residencies()
	p.traffics()
	p.gateways()
	p.acrossKinds()
	for _, s := range p.set.Services {
		sortByName(s.Spec.Pools, func(p *Pool) ClusterName { return p.Cluster })
	}
}

// nothingIsMissing complains about kinds without which no request can be served.
func (p *parsing) nothingIsMissing(files []File) {
	var missing []string
	for _, kind := range []Kind{KindRegion, KindCluster, KindService, KindGateway} {
		if len(p.names[kind]) == 0 && !p.unreadable && !p.refused[string(kind)] {
			missing = append(missing, string(kind))
		}
	}
	if len(missing) == 0 {
		return
	}
	file := "(no files)"
	if len(files) > 0 {
		file = files[0].Name
	}
	p.add(Diagnostic{File: file, Message: fmt.Sprintf("the files hold no %s: without one no request can be served", strings.Join(missing, ", no "))})
}
