package policies

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func isScalar(n *yaml.Node, tags ...string) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	for _, tag := range tags {
		if n.ShortTag() == tag {
			return true
		}
	}
	return false
}

// stringOf is the text of a string. Numbers and booleans are not strings, so `name: 1` is an error and not "1".
func stringOf(n *yaml.Node) (string, bool) { return n.Value, isScalar(n, "!!str") }

func boolOf(n *yaml.Node) (value, ok bool) {
	return strings.EqualFold(n.Value, "true"), isScalar(n, "!!bool")
}

func floatOf(n *yaml.Node) (float64, bool) {
	f, err := strconv.ParseFloat(n.Value, 64)
	return f, err == nil && isScalar(n, "!!float", "!!int") && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// intOf is a plain decimal number. Others are refused: 0777 is 511 to one reader of YAML and 777 to another.
func intOf(n *yaml.Node) (int64, bool) {
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return i, err == nil && isScalar(n, "!!int") && strconv.FormatInt(i, 10) == n.Value
}

// describe says what a node is, for messages about wrong types.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "a YAML alias"
	}
	switch n.ShortTag() {
	case "!!str":
		return fmt.Sprintf("the string %q", clip(n.Value))
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return "the boolean " + clip(n.Value)
	case "!!timestamp":
		return "the date " + clip(n.Value)
	case "!!null":
		return "null"
	}
	return "of the type " + clip(n.Tag)
}

// clip bounds what a message repeats of its input.
func clip(s string) string {
	const most = 64 // no name of an object is longer
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
