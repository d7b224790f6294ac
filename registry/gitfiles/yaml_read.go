package gitfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/registry"
	"promptspool/registry/render"
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

// yamlForm is how a template is written.
type yamlForm struct {
	literal bool // texts of several lines are block scalars (|)
	whole   bool // the blueprint is not abridged
}

// Text returns a template as a file that Parse reads back to the same content.
//
// named puts the template's name into the file.
func Text(t wire.Publish, named bool) ([]byte, error) {
	// The most readable form that survives the way back. YAML cannot hold every text in
	// every style, and not every blueprint can be abridged.
	forms := []yamlForm{
		{literal: true},
		{},
		{whole: true},
	}
	for _, form := range forms {
		text, err := encode(t, named, form)
		if err != nil {
			return nil, err
		}

		back, err := Parse("", t.Name, text)
		if err == nil && back.Template.Name == t.Name && SameContent(back.Template, t) {
			return text, nil
		}
	}

	return nil, fmt.Errorf("the template %q cannot be written as YAML; "+
		"`promptspool templates show -o json` prints it", t.Name)
}

// SameContent reports whether two templates are the same version, apart from names and
// tags.
func SameContent(a, b wire.Publish) bool {
	return registry.SameJSON(a.Blueprint, b.Blueprint) && registry.SameJSON(a.Metadata, b.Metadata)
}

// encode writes a template in one form, without checking that it can be read back.
func encode(t wire.Publish, named bool, form yamlForm) ([]byte, error) {
	w := yamlWriter{literal: form.literal}
	root := &yaml.Node{Kind: yaml.MappingNode}
	add := func(name string, value *yaml.Node) {
		root.Content = append(root.Content, w.text(name), value)
	}

	if named {
		add("name", w.text(t.Name))
	}
	if len(t.Tags) > 0 {
		tags := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, tag := range t.Tags {
			tags.Content = append(tags.Content, w.text(tag))
		}
		add("tags", tags)
	}

	// The model has its own setting; the other metadata stays together.
	rest := []byte{'{'}
	for m := range jsonscan.Members(orObject(t.Metadata)) {
		if m.Name == "model" && string(m.Value) != "null" && !form.whole {
			add("model", w.node(m.Value))
			continue
		}
		rest = appendMember(rest, m.Name, m.Value)
	}
	if len(rest) > 1 {
		add("metadata", w.node(append(rest, '}')))
	}

	if form.whole {
		add("prompt_template", w.node(t.Blueprint))
	} else {
		for m := range jsonscan.Members(abridged(t.Blueprint)) {
			add(m.Name, w.node(m.Value))
		}
	}

	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// abridged leaves out of a blueprint what publishing it adds again.
//
// That is the type, the list around a single text, and input_variables where they are
// those that the texts use.
func abridged(blueprint json.RawMessage) json.RawMessage {
	shorter := abridge(blueprint, true)
	again, faults := render.Check(shorter)
	if len(faults) == 0 && registry.SameJSON(again, blueprint) {
		return shorter
	}

	// Its author listed other variables than the texts use: keep the list.
	return abridge(blueprint, false)
}

// abridge abridges a blueprint, or one of its messages.
func abridge(object json.RawMessage, dropVariables bool) json.RawMessage {
	b := []byte{'{'}
	for m := range jsonscan.Members(object) {
		switch {
		case m.Name == "type", m.Name == "input_variables" && dropVariables:
		case m.Name == "content":
			b = appendMember(b, m.Name, plainText(m.Value))
		case m.Name == "messages" && m.Value[0] == '[':
			var messages []string
			for _, message := range jsonscan.Elements(m.Value) {
				messages = append(messages, string(abridge(message, dropVariables)))
			}
			b = appendMember(b, m.Name, json.RawMessage("["+strings.Join(messages, ",")+"]"))
		default:
			b = appendMember(b, m.Name, m.Value)
		}
	}

	return append(b, '}')
}

// plainText returns the text of a content that is a single text block, and any other
// content as it is.
func plainText(content json.RawMessage) json.RawMessage {
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(content, &blocks) != nil || len(blocks) != 1 || len(blocks[0]) != 2 {
		return content
	}

	text := blocks[0]["text"]
	if string(blocks[0]["type"]) != `"text"` || len(text) == 0 || text[0] != '"' {
		return content
	}
	return text
}

// yamlWriter turns JSON into YAML nodes.
type yamlWriter struct{ literal bool }

func (w yamlWriter) node(raw json.RawMessage) *yaml.Node {
	switch raw[0] {
	case '{':
		n := &yaml.Node{Kind: yaml.MappingNode}
		for m := range jsonscan.Members(raw) {
			n.Content = append(n.Content, w.text(m.Name), w.node(m.Value))
		}
		return n
	case '[':
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range jsonscan.Elements(raw) {
			n.Content = append(n.Content, w.node(e))
		}
		return n
	case '"':
		return w.text(jsonscan.Unquote(raw))
	}

	n := &yaml.Node{Kind: yaml.ScalarNode, Value: string(raw)}
	n.Tag = n.ShortTag()
	// A number that is too large for YAML's own.
	if n.Tag == "!!str" {
		n.Tag = "!!float"
	}
	return n
}

// text returns a scalar, in quotes or as a block where YAML would change a plain one.
func (w yamlWriter) text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	// YAML would take it for a merge key.
	if s == "<<" {
		n.Style = yaml.DoubleQuotedStyle
	}

	inside := strings.TrimSuffix(s, "\n")
	if inside == s && !strings.Contains(inside, "\n") {
		// It is a single line.
		return n
	}

	n.Style = yaml.DoubleQuotedStyle
	if w.literal && strings.TrimSpace(s[:1]) != "" && !strings.HasSuffix(inside, "\n") {
		n.Style = yaml.LiteralStyle
	}
	return n
}
