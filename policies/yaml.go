package policies

import (
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"
)

// stringOf is the text of a string node. Numbers and booleans are not strings, so `name: 1` is an error and not "1".
func stringOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

func floatOf(n ast.Node) (float64, bool) {
	if f, ok := n.(*ast.FloatNode); ok {
		return f.Value, true
	}
	i, ok := intOf(n)
	return float64(i), ok
}

func intOf(n ast.Node) (int64, bool) {
	node, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch v := node.Value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// describe says what a node is, for messages about wrong types.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AliasNode, *ast.AnchorNode:
		return "an anchor or alias (not supported: write the value out)"
	case *ast.StringNode:
		return fmt.Sprintf("the string %q", clip(n.Value))
	case *ast.IntegerNode, *ast.FloatNode:
		return "the number " + clip(n.GetToken().Value)
	case *ast.BoolNode:
		return "the boolean " + clip(n.GetToken().Value)
	}
	return "of another type"
}

// clip bounds what a message repeats of its input.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
