// Package prompt takes a checked blueprint apart into messages, content blocks and tools,
// with their texts parsed. The result of Parse never changes and may be shared.
package prompt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/fstring"
	"promptspool/registry/render/jinja"
	"promptspool/registry/render/language"
	"promptspool/registry/render/rawjson"
)

// Prompt is a blueprint taken apart. Its texts hold variables until they are filled in.
//
// It never changes, and shares what it can with the bytes of the blueprint.
type Prompt struct {
	Chat      bool
	Messages  []Message // of a chat
	Content   []Block   // of a completion
	Tools     []Tool
	Functions []Tool // the older form of tools
	Choice    Choice // tool_choice
	Call      Choice // function_call
}

// Message is one message of a chat.
type Message struct {
	At           string // where it is, for errors: prompt_template.messages[0]
	Role         string
	Name         string
	ToolCallID   string
	Content      []Block
	Calls        []ToolCall
	FunctionCall *ToolCall // the older form, without an id
}

// Block is one block of content.
type Block struct {
	At       string
	Kind     string
	Text     string            // of text; the url of image_url and media
	Template language.Template // of Text; nil if it has no variables
	Fault    error             // why Text cannot be rendered; it stays as it is
	Variable string            // image_variable, or the name of a media_variable: it holds images
	Raw      wire.Object       // all members
}

// ToolCall is a call that an assistant's message contains.
type ToolCall struct {
	ID, Name  string
	Arguments string // JSON, if the model wrote JSON
}

// Tool is what the model may call: a function, or a tool that the provider runs.
type Tool struct {
	At          string
	Kind        string // function, or the type of a provider's tool
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema; nil if absent
	Raw         json.RawMessage // the function, or the whole tool with its provider and config
}

// Choice is the tool that the model must call. The zero value leaves it open.
type Choice struct {
	Mode string          // auto, none, required, function; anything else is as it was written
	Name string          // of the function
	Raw  json.RawMessage // as written; nil if absent
}

// Place shortens a path for messages to people: it is within the blueprint.
func Place(at string) string { return strings.TrimPrefix(at, "prompt_template.") }

// Blocks iterates over all blocks of content, except those of placeholders, which
// variables replace.
func (p *Prompt) Blocks(yield func(*Block) bool) {
	walk := func(blocks []Block) bool {
		for i := range blocks {
			if !yield(&blocks[i]) {
				return false
			}
		}
		return true
	}

	if !walk(p.Content) {
		return
	}
	for i := range p.Messages {
		if p.Messages[i].Role != "placeholder" && !walk(p.Messages[i].Content) {
			return
		}
	}
}

// IsUnfilled reports whether the block is a variable for images that the caller did not
// give. It is then left out.
func (b *Block) IsUnfilled() bool { return b.Variable != "" && b.Text == "" }

// Has reports whether the block has a member.
func (b *Block) Has(name string) bool { return b.Raw.Has(name) }

// StringMember returns a member that is a string; "" if there is none.
func (b *Block) StringMember(name string) string {
	return rawjson.Text(rawjson.Of(b.Raw, name))
}

// Parse takes apart a blueprint that was checked.
func Parse(o wire.Object) *Prompt {
	p := &Prompt{
		Chat:   rawjson.Text(rawjson.Of(o, "type")) == "chat",
		Choice: parseChoice(rawjson.Of(o, "tool_choice")),
		Call:   parseChoice(rawjson.Of(o, "function_call")),
	}
	if p.Chat {
		for i, m := range rawjson.Elements(rawjson.Of(o, "messages")) {
			at := fmt.Sprintf("prompt_template.messages[%d]", i)
			p.Messages = append(p.Messages, ParseMessage(at, rawjson.Object(m), false))
		}
	} else if raw := rawjson.Of(o, "content"); raw != nil {
		p.Content = parseContent("prompt_template.content", FormatOf(o), raw)
	}

	for i, e := range rawjson.Elements(rawjson.Of(o, "tools")) {
		p.Tools = append(p.Tools, parseTool(fmt.Sprintf("prompt_template.tools[%d]", i), e))
	}
	for i, e := range rawjson.Elements(rawjson.Of(o, "functions")) {
		p.Functions = append(p.Functions, parseFunction(fmt.Sprintf("prompt_template.functions[%d]", i), e))
	}

	return p
}

// ParseMessage reads a message. If isData is set, braces in its texts mean nothing.
func ParseMessage(at string, o wire.Object, isData bool) Message {
	get := func(name string) string { return rawjson.Text(rawjson.Of(o, name)) }

	m := Message{At: at, Role: get("role"), Name: get("name"), ToolCallID: get("tool_call_id")}
	// Data that looks like a template must not be filled in a second time.
	format := FormatOf(o)
	if isData {
		format = ""
	}
	if raw, ok := o.Get("content"); ok {
		m.Content = parseContent(at+".content", format, raw)
	}

	for _, e := range rawjson.Elements(rawjson.Of(o, "tool_calls")) {
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
	b := Block{At: at, Kind: rawjson.Text(rawjson.Of(o, "type")), Raw: o}
	switch b.Kind {
	case "text":
		b.Text = rawjson.Text(rawjson.Of(o, "text"))
	case "image_url":
		b.Text = rawjson.Text(rawjson.Member(rawjson.Of(o, "image_url"), "url"))
		b.Variable = rawjson.Text(rawjson.Of(o, "image_variable"))
	case "media":
		b.Text = rawjson.Text(rawjson.Member(rawjson.Of(o, "media"), "url"))
	case "media_variable":
		b.Variable = rawjson.Text(rawjson.Of(o, "name"))
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
	return cmp.Or(rawjson.Text(rawjson.Of(o, "template_format")), "f-string")
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
