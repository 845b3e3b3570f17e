package policies

import (
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// decoder turns one document's YAML nodes into a Go struct by its json tags, strictly: every field that is unknown,
// given twice or of another type is reported, and decoding goes on behind it. Aliases are refused, so no document is
// larger in memory than on disk.
type decoder struct {
	*document
	p *parsing
}

// report notes that a field is misread, and why.
func (d *decoder) report(at position, field, message, near string) {
	d.markMisread(field)
	d.p.report(d.document, at, field, message, near)
}

// position is a 1-based place in a file.
type position struct{ line, column int }

func positionOf(n *yaml.Node) position { return position{n.Line, n.Column} }

// decode fills v from n. path names the field for messages.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	if _, seen := d.positions[path]; !seen {
		d.positions[path] = positionOf(n)
	}
	if isNull(n) {
		return
	}
	if n.Kind == yaml.AliasNode {
		d.report(positionOf(n), path, "is a YAML alias, which is not read: write the value out", "")
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, u, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path)
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Slice:
		d.slice(n, v, path)
	case reflect.Map:
		d.stringMap(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) wrongType(n *yaml.Node, path, want string) {
	d.report(positionOf(n), path, fmt.Sprintf("is %s, want %s", describe(n), want), "")
}

const wantString = "a string: put it in quotes"

func (d *decoder) text(n *yaml.Node, u encoding.TextUnmarshaler, path string) {
	want := wantString
	switch u.(type) {
	case *Duration:
		want = `a duration such as "500ms", "2s" or "5m"`
	case *netip.Addr:
		want = `an IP address such as "10.0.0.1"; names are not resolved`
	}
	s, ok := stringOf(n)
	if !ok || u.UnmarshalText([]byte(s)) != nil {
		d.wrongType(n, path, want)
	}
}

// structure decodes a mapping into a struct's fields.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	entries, ok := d.mapping(n, path)
	if !ok {
		return
	}
	names := namesOf(v.Type())
	for _, e := range entries {
		index, known := names[e.key]
		if !known {
			d.report(e.at, join(path, clip(e.key)), "unknown field", nearest(e.key, inOrder(v.Type(), names)))
			continue
		}
		d.positions[join(path, e.key)] = e.at
		d.decode(e.value, v.Field(index), join(path, e.key))
	}
}

func (d *decoder) slice(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.decode(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) stringMap(n *yaml.Node, v reflect.Value, path string) {
	entries, ok := d.mapping(n, path)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range entries {
		s, ok := stringOf(e.value)
		if !ok {
			d.wrongType(e.value, join(path, clip(e.key)), wantString)
			continue
		}
		v.SetMapIndex(reflect.ValueOf(e.key), reflect.ValueOf(s))
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := stringOf(n); ok {
			v.SetString(s)
			return
		}
		d.wrongType(n, path, wantString)
	case reflect.Bool:
		if b, ok := boolOf(n); ok {
			v.SetBool(b)
			return
		}
		d.wrongType(n, path, "true or false")
	case reflect.Float64:
		if f, ok := floatOf(n); ok {
			v.SetFloat(f)
			return
		}
		d.wrongType(n, path, "a number")
	default:
		d.integer(n, v, path)
	}
}

func (d *decoder) integer(n *yaml.Node, v reflect.Value, path string) {
	i, ok := intOf(n)
	switch {
	case !ok:
		d.wrongType(n, path, "a whole number in decimal digits")
	case v.CanInt() && !v.OverflowInt(i):
		v.SetInt(i)
	case v.Kind() == reflect.Uint16 && i >= 1 && i <= 65535: // every one is a port
		v.SetUint(uint64(i))
	case v.Kind() == reflect.Uint16:
		d.report(positionOf(n), path, fmt.Sprintf("%d is outside 1 to 65535", i), "")
	default:
		d.report(positionOf(n), path, fmt.Sprintf("%d is out of range", i), "")
	}
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    position
	value *yaml.Node
}

// mapping lists a mapping's entries in order and reports keys given twice.
func (d *decoder) mapping(n *yaml.Node, path string) ([]entry, bool) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "a mapping of fields")
		return nil, false
	}
	first := map[string]position{}
	var entries []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := stringOf(n.Content[i])
		at := positionOf(n.Content[i])
		if !ok {
			d.report(at, path, fmt.Sprintf("a field's name is %s, want a plain string", describe(n.Content[i])), "")
			continue
		}
		if before, twice := first[key]; twice {
			d.report(at, join(path, clip(key)), fmt.Sprintf("given twice, first on line %d: remove one", before.line), "")
			continue
		}
		first[key] = at
		entries = append(entries, entry{key, at, n.Content[i+1]})
	}
	return entries, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// namesOf maps a struct's json names to field indices; fields tagged "-" are left out.
func namesOf(t reflect.Type) map[string]int {
	names := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names[name] = i
		}
	}
	return names
}

// inOrder are a struct's json names in order of declaration.
func inOrder(t reflect.Type, names map[string]int) []string {
	ordered := make([]string, t.NumField())
	for name, i := range names {
		ordered[i] = name
	}
	return slices.DeleteFunc(ordered, func(name string) bool { return name == "" })
}
