package policies

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxFileBytes is the largest policy file that is read.
const MaxFileBytes = 4 << 20

// Parse turns files into a Set, or into everything that is wrong with them. It never returns both. Files may be given
// in any order and may hold any number of documents; the same objects give the same Set.
func Parse(files []File) (*Set, Diagnostics) {
	p := &parsing{set: &Set{}, index: map[string]*document{}}
	for _, f := range files {
		p.file(f)
	}
	if len(p.diagnostics) == 0 && len(p.index) == 0 {
		p.diagnostics = append(p.diagnostics, Diagnostic{File: emptyName(files),
			Message: "no policy object found: write at least a Region, a Cluster, a Service and a Gateway"})
	}
	p.finish()
	if len(p.diagnostics) > 0 {
		slices.SortStableFunc(p.diagnostics, compareDiagnostics)
		return nil, slices.Compact(p.diagnostics)
	}
	return p.set, nil
}

func emptyName(files []File) string {
	if len(files) == 0 {
		return "(no files)"
	}
	return files[0].Name
}

func compareDiagnostics(a, b Diagnostic) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
}

// parsing is one run of Parse.
type parsing struct {
	set         *Set
	index       map[string]*document // by "Kind/name"
	diagnostics Diagnostics
}

// document is one YAML document: who it is, and where its fields are.
type document struct {
	file      string
	object    string
	at        position
	positions map[string]position
	misread   []string // fields that could not be decoded: what follows from that is not worth saying
}

// find is the position of a field, or of the nearest field around it that was written.
func (d *document) find(field string) position {
	for field != "" {
		if at, ok := d.positions[field]; ok {
			return at
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return d.at
}

func (p *parsing) file(f File) {
	if message := unreadable(f.Bytes); message != "" {
		p.diagnostics = append(p.diagnostics, Diagnostic{File: f.Name, Message: message})
		return
	}
	parsed, err := parser.ParseBytes(f.Bytes, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		p.diagnostics = append(p.diagnostics, syntaxError(f.Name, err))
		return
	}
	for _, doc := range parsed.Docs {
		if doc.Body != nil {
			p.document(f.Name, doc.Body)
		}
	}
}

// unreadable says why bytes are not given to the YAML parser; empty where they are.
func unreadable(bytes []byte) string {
	switch {
	case len(bytes) > MaxFileBytes:
		return fmt.Sprintf("the file has %d bytes, at most %d are read: split it", len(bytes), MaxFileBytes)
	case !utf8.Valid(bytes):
		return "the file is not UTF-8 text"
	case slices.Contains(bytes, 0):
		return "the file contains a NUL byte"
	case flowDepth(bytes) > maxDepth:
		return "the file nests brackets too deep"
	}
	return ""
}

// flowDepth is how deep brackets nest, so that no input can exhaust the stack of the YAML parser.
func flowDepth(bytes []byte) int {
	depth, deepest := 0, 0
	for _, b := range bytes {
		switch b {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

func syntaxError(file string, err error) Diagnostic {
	d := Diagnostic{File: file, Message: "not valid YAML: " + firstLine(err.Error())}
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		at := positionOfToken(syntax.GetToken())
		d.Line, d.Column, d.Message = at.line, at.column, "not valid YAML: "+firstLine(syntax.GetMessage())
	}
	return d
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return clip(line)
}

// document decodes one document into the set.
func (p *parsing) document(file string, body ast.Node) {
	if _, comment := body.(*ast.CommentGroupNode); comment {
		return
	}
	doc := &document{file: file, at: positionOf(body), positions: map[string]position{}}
	d := &decoder{positions: doc.positions, report: func(at position, field, message, near string) {
		doc.misread = append(doc.misread, field)
		p.add(doc, at, field, message, near)
	}}
	entries, ok := d.mapping(body, "")
	if !ok {
		return
	}
	if len(entries) > 0 {
		doc.at = entries[0].at
	}
	kind, ok := p.kindOf(doc, entries)
	if ok {
		p.object(doc, d, kind, entries)
	}
}

// kindOf reads apiVersion and kind; ok is false where the document can't be read any further.
func (p *parsing) kindOf(doc *document, entries []entry) (Kind, bool) {
	values := map[string]string{}
	for _, e := range entries {
		if s, isString := stringOf(e.value); isString {
			values[e.key] = s
			doc.positions[e.key] = positionOf(e.value)
		}
	}
	kind := Kind(values["kind"])
	doc.object = values["kind"]
	if v := values["apiVersion"]; v != APIVersion {
		p.complain(doc, "apiVersion", fmt.Sprintf("is %q, this release reads %q", clip(v), APIVersion), APIVersion)
		return "", false
	}
	if !slices.Contains(kinds, kind) {
		p.complain(doc, "kind", fmt.Sprintf("%q is not a kind of %s", clip(string(kind)), APIVersion), nearest(string(kind), asStrings(kinds)))
		return "", false
	}
	return kind, true
}

var kinds = []Kind{KindRegion, KindCluster, KindService, KindResidency, KindTraffic, KindGateway}

// object decodes a document of a known kind and puts it into the set.
func (p *parsing) object(doc *document, d *decoder, kind Kind, entries []entry) {
	switch kind {
	case KindRegion:
		add(p, doc, d, entries, &p.set.Regions)
	case KindCluster:
		add(p, doc, d, entries, &p.set.Clusters)
	case KindService:
		add(p, doc, d, entries, &p.set.Services)
	case KindResidency:
		add(p, doc, d, entries, &p.set.Residencies)
	case KindTraffic:
		add(p, doc, d, entries, &p.set.Traffics)
	case KindGateway:
		add(p, doc, d, entries, &p.set.Gateways)
	}
}

// add decodes metadata and spec into a new object of type T and appends it, unless its name is missing or taken.
func add[T any](p *parsing, doc *document, d *decoder, entries []entry, objects *[]T) {
	object := reflect.New(reflect.TypeFor[T]()).Elem()
	for _, e := range entries {
		switch e.key {
		case "apiVersion", "kind":
		case "metadata":
			d.positions[e.key] = e.at
			d.decode(e.value, object.FieldByName("Metadata"), e.key)
			doc.object += "/" + object.FieldByName("Metadata").FieldByName("Name").String()
		case "spec":
			d.positions[e.key] = e.at
			d.decode(e.value, object.FieldByName("Spec"), e.key)
		default:
			d.report(e.at, e.key, "unknown field", nearest(e.key, []string{"apiVersion", "kind", "metadata", "spec"}))
		}
	}
	name := object.FieldByName("Metadata").FieldByName("Name").String()
	if !p.nameIsGood(doc, name) {
		return
	}
	origin := Origin{File: doc.file, Line: doc.at.line, Column: doc.at.column}
	object.FieldByName("Origin").Set(reflect.ValueOf(origin))
	p.index[doc.object] = doc
	*objects = append(*objects, object.Interface().(T))
}

// nameIsGood checks an object's name and that it is the only one of its kind.
func (p *parsing) nameIsGood(doc *document, name string) bool {
	if name == "" {
		p.complain(doc, "metadata.name", "is missing: every object has a name", "")
		return false
	}
	if !isLabel(name) {
		p.complain(doc, "metadata.name", fmt.Sprintf("%q is not a name: use lower-case letters, digits and '-', at most 63, beginning and ending with a letter or digit", clip(name)), "")
		return false
	}
	if before, taken := p.index[doc.object]; taken {
		p.complain(doc, "metadata.name", fmt.Sprintf("%s is already defined at %s:%d: rename or remove one", doc.object, before.file, before.at.line), "")
		return false
	}
	return true
}

// isLabel says whether s is a DNS-1123 label.
func isLabel(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// wasMisread says whether a field, one that it is part of, or a part of it could not be decoded.
func (d *document) wasMisread(field string) bool {
	return slices.ContainsFunc(d.misread, func(m string) bool {
		return m == field || strings.HasPrefix(field, m+".") || strings.HasPrefix(field, m+"[") ||
			strings.HasPrefix(m, field+".")
	})
}

// complain reports something about a field of a document, unless the field could not be read in the first place.
func (p *parsing) complain(doc *document, field, message, near string) {
	if doc.wasMisread(field) {
		return
	}
	p.add(doc, doc.find(field), field, message, near)
}

func (p *parsing) add(doc *document, at position, field, message, near string) {
	p.diagnostics = append(p.diagnostics, Diagnostic{File: doc.file, Line: at.line, Column: at.column,
		Object: doc.object, Field: field, Message: message, Nearest: near})
}

// finish sorts, resolves, fills in defaults and validates what was decoded as a whole.
func (p *parsing) finish() {
	s := p.set
	sortByName(s.Regions, func(v *Region) RegionName { return v.Metadata.Name })
	sortByName(s.Clusters, func(v *Cluster) ClusterName { return v.Metadata.Name })
	sortByName(s.Services, func(v *Service) ServiceName { return v.Metadata.Name })
	sortByName(s.Residencies, func(v *Residency) ResidencyName { return v.Metadata.Name })
	sortByName(s.Traffics, func(v *Traffic) TrafficName { return v.Metadata.Name })
	sortByName(s.Gateways, func(v *Gateway) GatewayName { return v.Metadata.Name })
	p.regions()
	p.clusters()
	p.services()
	p.residencies()
	p.traffics()
	p.gateways()
	if len(p.diagnostics) == 0 {
		p.acrossKinds()
		for _, v := range s.Services {
			sortByName(v.Spec.Pools, func(p *Pool) ClusterName { return p.Cluster })
		}
		s.Hash = hashOf(s)
	}
}

func sortByName[T any, N cmp.Ordered](objects []T, name func(*T) N) {
	slices.SortFunc(objects, func(a, b T) int { return cmp.Compare(name(&a), name(&b)) })
}
