package gitfiles

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire/jsonscan"
)

// yamlDepthMax bounds how deep a file nests.
const yamlDepthMax = 100

// value turns a node into JSON and notes the lines of its values.
//
// Members keep their order, and numbers are as they are written. On a fault it returns
// nil.
func (p *fileParser) value(path string, n *yaml.Node) json.RawMessage {
	if strings.Count(path, ".")+strings.Count(path, "[") > yamlDepthMax {
		p.Fault(n.Line, "nests deeper than %d", yamlDepthMax)
		return nil
	}

	p.lines[path] = n.Line
	switch n.Kind {
	case yaml.MappingNode:
		return p.mapping(path, n)
	case yaml.SequenceNode:
		return p.sequence(path, n)
	case yaml.ScalarNode:
		p.scalars[path] = n
		raw, fault := scalarJSON(n)
		if fault != "" {
			p.Fault(n.Line, "%s: %s", path, fault)
		}
		return raw
	default:
		p.Fault(n.Line, "%s: an alias (*%s) is not read here; write the text out, or make it a snippet",
			path, n.Value)
		return nil
	}
}

func (p *fileParser) sequence(path string, n *yaml.Node) json.RawMessage {
	b := []byte{'['}
	for i, element := range n.Content {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, p.value(fmt.Sprintf("%s[%d]", path, i), element)...)
	}
	return append(b, ']')
}

func (p *fileParser) mapping(path string, n *yaml.Node) json.RawMessage {
	b := []byte{'{'}
	p.Members(n, path, func(key, value *yaml.Node) {
		if key.ShortTag() == "!!merge" {
			p.Fault(key.Line, "%s: << is not read here; write the text out", path)
			return
		}
		if fault := unknownMember(path, key.Value); fault != "" {
			p.Fault(key.Line, "there is no setting %q of %s; %s", key.Value, path, fault)
			return
		}

		b = appendMember(b, key.Value, p.value(path+"."+key.Value, value))
	})
	return append(b, '}')
}

// appendMember appends a member to a JSON object that is being written.
func appendMember(b []byte, name string, value json.RawMessage) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(jsonscan.AppendString(b, name), ':')
	return append(b, value...)
}

// scalarJSON turns a scalar into JSON, or returns why that is not possible.
func scalarJSON(n *yaml.Node) (raw json.RawMessage, fault string) {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return json.RawMessage("null"), ""
	// JSON has no times.
	case "!!str", "!!timestamp":
		return jsonscan.AppendString(nil, n.Value), ""
	case "!!bool":
		return json.RawMessage(strings.ToLower(n.Value)), ""
	case "!!int", "!!float":
		return numberJSON(n, tag)
	default:
		return nil, fmt.Sprintf("the tag %s is not read here", n.Tag)
	}
}

// numberJSON keeps a number as it is written if JSON can, and converts the forms that
// only YAML has.
func numberJSON(n *yaml.Node, tag string) (raw json.RawMessage, fault string) {
	if json.Valid([]byte(n.Value)) {
		return json.RawMessage(n.Value), ""
	}

	var whole int64
	if tag == "!!int" && n.Decode(&whole) == nil {
		return strconv.AppendInt(nil, whole, 10), ""
	}

	var x float64
	if err := n.Decode(&x); err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return nil, fmt.Sprintf("%s is not a number that JSON can hold; put it in quotes if it is a text", n.Value)
	}
	return strconv.AppendFloat(nil, x, 'g', -1, 64), ""
}
