package prompt

import (
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/fstring"
	"promptspool/registry/render/jinja"
	"promptspool/registry/render/language"
	"promptspool/registry/render/rawjson"
)

// Parse takes apart a blueprint that was checked.
func Parse(o wire.Object) *Prompt {
	member := func(name string) json.RawMessage { v, _ := o.Get(name); return v }

	p := &Prompt{
		Chat:   rawjson.Text(member("type")) == "chat",
		Choice: parseChoice(member("tool_choice")),
		Call:   parseChoice(member("function_call")),
	}
	if p.Chat {
		for i, m := range rawjson.Elements(member("messages")) {
			at := fmt.Sprintf("prompt_template.messages[%d]", i)
			p.Messages = append(p.Messages, ParseMessage(at, rawjson.Object(m), false))
		}
	} else if raw := member("content"); raw != nil {
		p.Content = parseContent("prompt_template.content", FormatOf(o), raw)
	}

	for i, e := range rawjson.Elements(member("tools")) {
		p.Tools = append(p.Tools, parseTool(fmt.Sprintf("prompt_template.tools[%d]", i), e))
	}
	for i, e := range rawjson.Elements(member("functions")) {
		p.Functions = append(p.Functions, parseFunction(fmt.Sprintf("prompt_template.functions[%d]", i), e))
	}

	return p
}

// ParseMessage reads a message. If isData is set, braces in its texts mean nothing.
func ParseMessage(at string, o wire.Object, isData bool) Message {
	get := func(name string) string { v, _ := o.Get(name); return rawjson.Text(v) }

	m := Message{At: at, Role: get("role"), Name: get("name"), ToolCallID: get("tool_call_id")}
	// Data that looks like a template must not be filled in a second time.
	format := FormatOf(o)
	if isData {
		format = ""
	}
	if raw, ok := o.Get("content"); ok {
		m.Content = parseContent(at+".content", format, raw)
	}

	raw, _ := o.Get("tool_calls")
	for _, e := range rawjson.Elements(raw) {
		call := parseCall(rawjson.Member(e, "function"))
		call.ID = rawjson.Text(rawjson.Member(e, "id"))
		m.Calls = append(m.Calls, call)
	}
	if raw, ok := o.Get("function_call"); ok {
		call := parseCall(raw)
		m.FunctionCall = &call
	}

	return m
}

func parseCall(function json.RawMessage) ToolCall {
	return ToolCall{
		Name:      rawjson.Text(rawjson.Member(function, "name")),
		Arguments: rawjson.Text(rawjson.Member(function, "arguments")),
	}
}

// parseContent reads blocks. Without a format, nothing in them is a variable.
func parseContent(at, format string, raw json.RawMessage) []Block {
	list := rawjson.Elements(raw)
	blocks := make([]Block, len(list))
	for i, e := range list {
		blocks[i] = parseBlock(fmt.Sprintf("%s[%d]", at, i), format, rawjson.Object(e))
	}

	return blocks
}

func parseBlock(at, format string, o wire.Object) Block {
	get := func(name string) json.RawMessage { v, _ := o.Get(name); return v }

	b := Block{At: at, Kind: rawjson.Text(get("type")), Raw: o}
	switch b.Kind {
	case "text":
		b.Text = rawjson.Text(get("text"))
	case "image_url":
		b.Text = rawjson.Text(rawjson.Member(get("image_url"), "url"))
		b.Variable = rawjson.Text(get("image_variable"))
	case "media":
		b.Text = rawjson.Text(rawjson.Member(get("media"), "url"))
	case "media_variable":
		b.Variable = rawjson.Text(get("name"))
	}

	// Data has no variables, whatever its members are called.
	if format == "" {
		b.Variable = ""
	} else {
		b.Template, b.Fault = ParseTemplate(format, b.Text)
	}

	return b
}

// FormatOf returns the template format that an object asks for.
func FormatOf(o wire.Object) string {
	format, _ := o.Get("template_format")
	if rawjson.Text(format) == "" {
		return "f-string"
	}
	return rawjson.Text(format)
}

// ParseTemplate parses a text. It returns nil for a text that renders to itself.
func ParseTemplate(format, source string) (language.Template, error) {
	hasBraces := strings.ContainsAny(source, "{}")
	// jinja2 drops the last line break.
	dropsBreak := format == "jinja2" && strings.HasSuffix(source, "\n")
	if !hasBraces && !dropsBreak || format == "none" {
		return nil, nil
	}

	// An error must not become a Template that holds a nil pointer.
	switch format {
	case "f-string":
		f, err := fstring.Parse(source)
		if err != nil {
			return nil, err
		}
		return f, nil
	case "jinja2":
		j, err := jinja.Parse(source)
		if err != nil {
			return nil, err
		}
		return j, nil
	}

	return nil, fmt.Errorf("is in %s, which this version does not render", language.Shorten(format))
}

func parseTool(at string, raw json.RawMessage) Tool {
	kind := rawjson.Text(rawjson.Member(raw, "type"))
	// A tool that the provider runs: its members are the
	// provider's, and stay as they are.
	if kind != "" && kind != "function" {
		return Tool{At: at, Kind: kind, Name: rawjson.Text(rawjson.Member(raw, "name")), Raw: raw}
	}

	return parseFunction(at, rawjson.Member(raw, "function"))
}

func parseFunction(at string, function json.RawMessage) Tool {
	t := Tool{
		At:          at,
		Kind:        "function",
		Name:        rawjson.Text(rawjson.Member(function, "name")),
		Description: rawjson.Text(rawjson.Member(function, "description")),
		Raw:         function,
	}
	if parameters := rawjson.Member(function, "parameters"); !rawjson.IsNull(parameters) {
		t.Parameters = parameters
	}
	return t
}

func parseChoice(raw json.RawMessage) Choice {
	if rawjson.IsNull(raw) {
		return Choice{}
	}
	if raw[0] == '"' {
		c := Choice{Mode: rawjson.Text(raw), Raw: raw}
		// As some providers spell it.
		if c.Mode == "any" {
			c.Mode = "required"
		}
		return c
	}

	// An object names the function that must be called.
	// This one is of a function_call.
	name := rawjson.Text(rawjson.Member(raw, "name"))
	if function := rawjson.Member(raw, "function"); function != nil {
		name = rawjson.Text(rawjson.Member(function, "name"))
	}
	if name == "" {
		return Choice{Mode: string(raw), Raw: raw}
	}

	return Choice{Mode: "function", Name: name, Raw: raw}
}
