package policies

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// document is one YAML document: who it is, and where its fields are.
type document struct {
	file      string
	id        string // "Kind/name", as far as known
	at        position
	positions map[string]position
	misread   map[string]bool // fields that could not be decoded: what follows from that is not worth saying
	around    map[string]bool // fields that those are parts of
}

// find is the position of a field, or of the nearest field around it that was written.
func (d *document) find(field string) position {
	for ; field != ""; field = parent(field) {
		if at, ok := d.positions[field]; ok {
			return at
		}
	}
	return d.at
}

// parent is the field that a field is part of; empty where none is.
func parent(field string) string { return field[:max(strings.LastIndexAny(field, ".["), 0)] }

func (d *document) markMisread(field string) {
	d.misread[field] = true
	for field = parent(field); field != ""; field = parent(field) {
		d.around[field] = true
	}
}

// wasMisread says whether a field, one that it is part of, or a part of it could not be decoded.
func (d *document) wasMisread(field string) bool {
	if d.around[field] {
		return true
	}
	for ; field != ""; field = parent(field) {
		if d.misread[field] {
			return true
		}
	}
	return false
}

// document decodes one document into the set.
func (p *parsing) document(file string, body *yaml.Node) {
	doc := &document{file: file, id: nameOf(body), at: positionOf(body), positions: map[string]position{}, misread: map[string]bool{}, around: map[string]bool{}}
	d := &decoder{doc, p}
	entries, ok := d.mapping(body, "")
	if !ok {
		return
	}
	if len(entries) > 0 {
		doc.at = entries[0].at
	}
	if kind, ok := d.kindOf(entries); ok {
		d.object(kind, entries)
	}
}

// nameOf is "Kind/name", or what of it a document has, for messages about it.
func nameOf(body *yaml.Node) string {
	kind, _ := stringOf(valueOf(body, "kind"))
	if name, _ := stringOf(valueOf(valueOf(body, "metadata"), "name")); name != "" {
		return clip(kind) + "/" + clip(name)
	}
	return clip(kind)
}

// valueOf is the value of a mapping's first such key; the zero node where there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return &yaml.Node{}
}

var kinds = []Kind{KindRegion, KindCluster, KindService, KindResidency, KindTraffic, KindGateway}

// kindOf reads apiVersion and kind; ok is false where the document can't be read any further.
func (d *decoder) kindOf(entries []entry) (kind Kind, ok bool) {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       Kind   `json:"kind"`
	}
	fields := reflect.ValueOf(&header).Elem()
	names := namesOf(fields.Type())
	for _, e := range entries {
		if i, ok := names[e.key]; ok {
			d.decode(e.value, fields.Field(i), e.key)
		}
	}
	meant := nearest(string(header.Kind), asStrings(kinds))
	isCurrent, isKind := header.APIVersion == APIVersion, slices.Contains(kinds, header.Kind)
	if !isCurrent {
		d.p.complain(d.document, "apiVersion", fmt.Sprintf("%s: this release reads %q", missingOr(header.APIVersion), APIVersion), APIVersion)
	}
	if !isKind {
		d.p.complain(d.document, "kind", fmt.Sprintf("%s: the kinds of %s are %s", missingOr(string(header.Kind)), APIVersion, strings.Join(asStrings(kinds), ", ")), meant)
	}
	if !isCurrent || !isKind {
		_, name, _ := strings.Cut(d.id, "/")
		d.p.refuse(Kind(meant), name)
	}
	return header.Kind, isCurrent && isKind
}

func missingOr(value string) string {
	if value == "" {
		return "is missing"
	}
	return fmt.Sprintf("is %q", clip(value))
}

// refuse notes that an object is there, although it can't be in the set: references to it don't dangle.
func (p *parsing) refuse(kind Kind, name string) {
	p.refused[string(kind)] = true
	p.refused[string(kind)+"/"+name] = true
}

// object decodes a document of a known kind and puts it into the set.
func (d *decoder) object(kind Kind, entries []entry) {
	switch kind {
	case KindRegion:
		add(d, kind, entries, &d.p.set.Regions)
	case KindCluster:
		add(d, kind, entries, &d.p.set.Clusters)
	case KindService:
		add(d, kind, entries, &d.p.set.Services)
	case KindResidency:
		add(d, kind, entries, &d.p.set.Residencies)
	case KindTraffic:
		add(d, kind, entries, &d.p.set.Traffics)
	case KindGateway:
		add(d, kind, entries, &d.p.set.Gateways)
	}
}

// add decodes metadata and spec into a new object of type T and appends it, unless its name is missing or taken.
func add[T any](d *decoder, kind Kind, entries []entry, objects *[]T) {
	object := reflect.New(reflect.TypeFor[T]()).Elem()
	metadata := object.FieldByName("Metadata")
	for _, e := range entries {
		d.positions[e.key] = e.at
		switch e.key {
		case "apiVersion", "kind":
		case "metadata":
			d.decode(e.value, metadata, e.key)
		case "spec":
			d.decode(e.value, object.FieldByName("Spec"), e.key)
		default:
			d.report(e.at, clip(e.key), "unknown field", nearest(e.key, []string{"apiVersion", "kind", "metadata", "spec"}))
		}
	}
	name := metadata.FieldByName("Name").String()
	key := string(kind) + "/" + name
	if !d.nameIsGood(key, name) {
		d.p.refuse(kind, name)
		return
	}
	origin := Origin{File: d.file, Line: d.at.line, Column: d.at.column}
	object.FieldByName("Origin").Set(reflect.ValueOf(origin))
	d.p.index[key] = d.document
	*objects = append(*objects, object.Interface().(T))
}

// nameIsGood checks an object's name and that it is the only one of its kind.
func (d *decoder) nameIsGood(key, name string) bool {
	before, taken := d.p.index[key]
	switch {
	case name == "":
		d.p.complain(d.document, "metadata.name", "is missing: every object has a name", "")
	case !isLabel(name):
		d.p.complain(d.document, "metadata.name", fmt.Sprintf("%q is not a name: use lower-case letters, digits and '-', at most 63, beginning and ending with a letter or digit", clip(name)), "")
	case taken:
		d.p.complain(d.document, "metadata.name", fmt.Sprintf("%s is already defined at %s:%d:%d: rename or remove one", key, before.file, before.at.line, before.at.column), "")
	default:
		return true
	}
	return false
}

// isLabel says whether s is a DNS-1123 label.
func isLabel(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
