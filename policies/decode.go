package policies

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds how deep a document nests: the kinds nest less than ten deep.
const maxDepth = 32

// decoder turns one document's YAML nodes into a Go struct by its json tags, strictly: every field that is unknown,
// given twice or of another type is reported, and decoding goes on behind it. Anchors and aliases are refused, so no
// document is larger in memory than on disk.
type decoder struct {
	report    func(at position, field, message, near string)
	positions map[string]position // by field path
}

// position is a 1-based place in a file.
type position struct{ line, column int }

func positionOf(n ast.Node) position {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return position{}
	}
	return positionOfToken(n.GetToken())
}

func positionOfToken(t *token.Token) position { return position{t.Position.Line, t.Position.Column} }

// decode fills v from n. path names the field for messages.
func (d *decoder) decode(n ast.Node, v reflect.Value, path string) {
	at := positionOf(n)
	if _, seen := d.positions[path]; !seen {
		d.positions[path] = at
	}
	if strings.Count(path, ".")+strings.Count(path, "[") > maxDepth {
		d.report(at, path, "the document nests too deep", "")
		return
	}
	if _, null := n.(*ast.NullNode); null || n == nil {
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

func (d *decoder) wrongType(n ast.Node, path, want string) {
	d.report(positionOf(n), path, fmt.Sprintf("is %s, want %s", describe(n), want), "")
}

func (d *decoder) text(n ast.Node, u encoding.TextUnmarshaler, path string) {
	s, ok := stringOf(n)
	if !ok {
		d.wrongType(n, path, "a string")
		return
	}
	if err := u.UnmarshalText([]byte(s)); err != nil {
		d.report(positionOf(n), path, err.Error(), "")
	}
}

// structure decodes a mapping into a struct's fields.
func (d *decoder) structure(n ast.Node, v reflect.Value, path string) {
	entries, ok := d.mapping(n, path)
	if !ok {
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range entries {
		index, known := fields[e.key]
		if !known {
			d.report(e.at, join(path, e.key), "unknown field", nearest(e.key, namesOf(v.Type())))
			continue
		}
		d.positions[join(path, e.key)] = e.at
		d.decode(e.value, v.Field(index), join(path, e.key))
	}
}

func (d *decoder) slice(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.wrongType(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		d.decode(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) stringMap(n ast.Node, v reflect.Value, path string) {
	entries, ok := d.mapping(n, path)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range entries {
		s, ok := stringOf(e.value)
		if !ok {
			d.wrongType(e.value, join(path, e.key), "a string")
			continue
		}
		v.SetMapIndex(reflect.ValueOf(e.key), reflect.ValueOf(s))
	}
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := stringOf(n); ok {
			v.SetString(s)
			return
		}
		d.wrongType(n, path, "a string")
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
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

func (d *decoder) integer(n ast.Node, v reflect.Value, path string) {
	i, ok := intOf(n)
	switch {
	case !ok:
		d.wrongType(n, path, "a whole number")
	case v.CanInt() && !v.OverflowInt(i):
		v.SetInt(i)
	case v.CanUint() && i >= 0 && !v.OverflowUint(uint64(i)):
		v.SetUint(uint64(i))
	default:
		d.report(positionOf(n), path, fmt.Sprintf("%d is out of range", i), "")
	}
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    position
	value ast.Node
}

// mapping lists a mapping's entries in order and reports keys given twice.
func (d *decoder) mapping(n ast.Node, path string) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		d.wrongType(n, path, "a mapping of fields")
		return nil, false
	}
	first := map[string]position{}
	var entries []entry
	for _, v := range values {
		key, ok := stringOf(v.Key)
		at := positionOf(v.Key)
		if !ok {
			d.report(at, path, "a field's name is a plain string", "")
			continue
		}
		if before, twice := first[key]; twice {
			d.report(at, join(path, key), fmt.Sprintf("given twice, first on line %d: remove one", before.line), "")
			continue
		}
		first[key] = at
		entries = append(entries, entry{key, at, v.Value})
	}
	return entries, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fieldsOf maps a struct's json names to field indices; fields tagged "-" are left out.
func fieldsOf(t reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = i
		}
	}
	return fields
}

// namesOf are a struct's json names in order of declaration.
func namesOf(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
