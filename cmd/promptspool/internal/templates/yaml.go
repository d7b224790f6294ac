package templates

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

// value makes JSON of a node, with its members in their order and its numbers as they are written. It notes the lines; on a fault it
// returns nil.
func (p *templateParser) value(path string, n *yaml.Node) json.RawMessage {
	if strings.Count(path, ".")+strings.Count(path, "[") > yamlDepthMax {
		p.Fault(n.Line, "nests deeper than %d", yamlDepthMax)
		return nil
	}
	p.lines[path] = n.Line
	switch n.Kind {
	case yaml.MappingNode:
		return p.mapping(path, n)
	case yaml.SequenceNode:
		b := []byte{'['}
		for i, e := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, p.value(fmt.Sprintf("%s[%d]", path, i), e)...)
		}
		return append(b, ']')
	case yaml.ScalarNode:
		p.scalars[path] = n
		raw, fault := scalar(n)
		if fault != "" {
			p.Fault(n.Line, "%s: %s", path, fault)
		}
		return raw
	default:
		p.Fault(n.Line, "%s: an alias (*%s) is not read here; write the text out, or make it a snippet", path, n.Value)
		return nil
	}
}

func (p *templateParser) mapping(path string, n *yaml.Node) json.RawMessage {
	b := []byte{'{'}
	p.Members(n, path, func(key, value *yaml.Node) {
		if key.ShortTag() == "!!merge" {
			p.Fault(key.Line, "%s: << is not read here; write the text out", path)
			return
		}
		if others := strayMember(path, key.Value); others != "" {
			p.Fault(key.Line, "there is no setting %q of %s; %s", key.Value, path, others)
			return
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(jsonscan.AppendString(b, key.Value), ':')
		b = append(b, p.value(path+"."+key.Value, value)...)
	})
	return append(b, '}')
}

// scalar makes JSON of a word.
func scalar(n *yaml.Node) (raw json.RawMessage, fault string) {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return json.RawMessage("null"), ""
	case "!!str", "!!timestamp": // JSON has no times
		return jsonscan.AppendString(nil, n.Value), ""
	case "!!bool":
		return json.RawMessage(strings.ToLower(n.Value)), ""
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.RawMessage(n.Value), ""
		}
		var whole int64
		if tag == "!!int" && n.Decode(&whole) == nil {
			return strconv.AppendInt(nil, whole, 10), ""
		}
		var x float64
		if err := n.Decode(&x); err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return nil, fmt.Sprintf("%s is no number that JSON can hold; put it in quotes if it is a text", n.Value)
		}
		return strconv.AppendFloat(nil, x, 'g', -1, 64), ""
	default:
		return nil, fmt.Sprintf("the tag %s is not read here", n.Tag)
	}
}

// templateText writes a template as a file that parseTemplate reads back to the same. named says whether its name is to stand in it.
func templateText(t wire.Publish, named bool) ([]byte, error) {
	for _, form := range []struct {
		literal, whole bool // whether texts of several lines stand as they are, and the blueprint unabridged
	}{{true, false}, {false, false}, {false, true}} {
		text, err := encodeTemplate(t, named, form.literal, form.whole)
		if err != nil {
			return nil, err
		}
		back, err := parseTemplate("", t.Name, text)
		if err == nil && back.template.Name == t.Name && sameContent(back.template, t) {
			return text, nil
		}
	}
	return nil, fmt.Errorf("the template %q cannot be written as YAML; `promptspool templates show -o json` prints it", t.Name)
}

// sameContent says whether publishing a over b would make no version.
func sameContent(a, b wire.Publish) bool {
	return registry.SameJSON(a.Blueprint, b.Blueprint) && registry.SameJSON(a.Metadata, b.Metadata)
}

func encodeTemplate(t wire.Publish, named, literal, whole bool) ([]byte, error) {
	w := yamlWriter{literal}
	root := &yaml.Node{Kind: yaml.MappingNode}
	add := func(name string, value *yaml.Node) { root.Content = append(root.Content, w.text(name), value) }
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
	rest := []byte{'{'}
	for m := range jsonscan.Members(orObject(t.Metadata)) {
		if m.Name == "model" && string(m.Value) != "null" && !whole {
			add("model", w.node(m.Value))
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(jsonscan.AppendString(rest, m.Name), ':'), m.Value...)
	}
	if len(rest) > 1 {
		add("metadata", w.node(append(rest, '}')))
	}
	if whole {
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

// abridged leaves out of a blueprint what publishing it adds by itself: the type, input_variables that are the computed ones, the block
// around a text.
func abridged(blueprint json.RawMessage) json.RawMessage {
	shorter := abridge(blueprint, true)
	if again, faults := render.Check(shorter); len(faults) == 0 && registry.SameJSON(again, blueprint) {
		return shorter
	}
	return abridge(blueprint, false) // somebody listed other variables than the texts use
}

func abridge(blueprint json.RawMessage, computed bool) json.RawMessage {
	b := []byte{'{'}
	add := func(b []byte, name string, value json.RawMessage) []byte {
		if len(b) > 0 && b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		return append(append(jsonscan.AppendString(b, name), ':'), value...)
	}
	for m := range jsonscan.Members(blueprint) {
		switch {
		case m.Name == "type", m.Name == "input_variables" && computed:
		case m.Name == "content":
			b = add(b, m.Name, plainText(m.Value))
		case m.Name == "messages" && m.Value[0] == '[':
			list := []byte{'['}
			for i, message := range jsonscan.Elements(m.Value) {
				if i > 0 {
					list = append(list, ',')
				}
				list = append(list, '{')
				for part := range jsonscan.Members(message) {
					switch {
					case part.Name == "input_variables" && computed:
					case part.Name == "content":
						list = add(list, part.Name, plainText(part.Value))
					default:
						list = add(list, part.Name, part.Value)
					}
				}
				list = append(list, '}')
			}
			b = add(b, m.Name, append(list, ']'))
		default:
			b = add(b, m.Name, m.Value)
		}
	}
	return append(b, '}')
}

// plainText is the text of a content that is one block of nothing but text; else the content as it is.
func plainText(content json.RawMessage) json.RawMessage {
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(content, &blocks) == nil && len(blocks) == 1 && len(blocks[0]) == 2 &&
		string(blocks[0]["type"]) == `"text"` && len(blocks[0]["text"]) > 0 && blocks[0]["text"][0] == '"' {
		return blocks[0]["text"]
	}
	return content
}

// yamlWriter makes nodes of JSON.
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
	if n.Tag == "!!str" { // a number that is too large for YAML's own
		n.Tag = "!!float"
	}
	return n
}

func (w yamlWriter) text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if s == "<<" { // which YAML would take for a merge
		n.Style = yaml.DoubleQuotedStyle
	}
	if inside := strings.TrimSuffix(s, "\n"); inside != s || strings.Contains(inside, "\n") {
		n.Style = yaml.DoubleQuotedStyle
		if w.literal && strings.TrimSpace(s[:1]) != "" && !strings.HasSuffix(inside, "\n") {
			n.Style = yaml.LiteralStyle
		}
	}
	return n
}
