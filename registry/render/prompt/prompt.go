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

// Prompt is a blueprint taken apart. As Prepare makes it, its texts may hold variables; as fill makes it, they are what the model
// is to read. It never changes, and shares what it can with the blueprint's bytes.
type Prompt struct {
	Chat      bool
	Messages  []Message // of a chat
	Content   []Block   // of a completion
	Tools     []Tool
	Functions []Tool // the older form of tools
	Choice    choice // tool_choice
	Call      choice // function_call
}

// Message is one message of a chat.
type Message struct {
	At           string // where it stands, for errors: prompt_template.messages[0]
	Role         string
	Name         string
	ToolCallID   string
	Content      []Block
	Calls        []ToolCall
	FunctionCall *ToolCall // the older form; without an id
}

// Block is one block of content.
type Block struct {
	At       string
	Kind     string
	Text     string            // of text; the url of image_url and media
	Template language.Template // of text; nil if it has no variables
	Fault    error             // why text cannot be rendered; it stays as it is
	Variable string            // image_variable, or the name of a media_variable: it holds images
	Raw      wire.Object       // all members
}

// ToolCall is what an assistant's message says it called.
type ToolCall struct {
	Id, Name  string
	Arguments string // JSON, if the model kept to it
}

// Tool is what the model may call: a function, or something that the provider runs (then raw has its provider and config).
type Tool struct {
	At          string
	Kind        string // function, or the type of a tool of the provider's
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema; nil if absent
	Raw         json.RawMessage // the function, or the whole tool
}

// choice says which tool is to be called. The zero value says nothing.
type choice struct {
	Mode string          // auto, none, required, function; anything else is as it was written
	Name string          // of the function
	Raw  json.RawMessage // as written; nil if absent
}

// Parse takes apart a blueprint that Check made.
func Parse(o wire.Object) *Prompt {
	kind, _ := o.Get("type")
	p := &Prompt{Chat: rawjson.Text(kind) == "chat"}
	if raw, ok := o.Get("content"); ok && !p.Chat {
		p.Content = parseContent("prompt_template.content", FormatOf(o), raw)
	}
	if raw, ok := o.Get("messages"); ok && p.Chat {
		for i, m := range rawjson.Elements(raw) {
			p.Messages = append(p.Messages, ParseMessage(fmt.Sprintf("prompt_template.messages[%d]", i), rawjson.Object(m), false))
		}
	}
	raw, _ := o.Get("tools")
	for i, e := range rawjson.Elements(raw) {
		p.Tools = append(p.Tools, parseTool(fmt.Sprintf("prompt_template.tools[%d]", i), e))
	}
	raw, _ = o.Get("functions")
	for i, e := range rawjson.Elements(raw) {
		p.Functions = append(p.Functions, parseFunction(fmt.Sprintf("prompt_template.functions[%d]", i), e))
	}
	raw, _ = o.Get("tool_choice")
	p.Choice = parseChoice(raw)
	raw, _ = o.Get("function_call")
	p.Call = parseChoice(raw)
	return p
}

// ParseMessage reads a message. In one that is data, braces mean nothing.
func ParseMessage(at string, o wire.Object, data bool) Message {
	get := func(name string) string { v, _ := o.Get(name); return rawjson.Text(v) }
	m := Message{At: at, Role: get("role"), Name: get("name"), ToolCallID: get("tool_call_id")}
	format := FormatOf(o)
	if data {
		format = ""
	}
	if raw, ok := o.Get("content"); ok {
		m.Content = parseContent(at+".content", format, raw)
	}
	raw, _ := o.Get("tool_calls")
	for _, e := range rawjson.Elements(raw) {
		call := parseCall(rawjson.Member(e, "function"))
		call.Id = rawjson.Text(rawjson.Member(e, "id"))
		m.Calls = append(m.Calls, call)
	}
	if raw, ok := o.Get("function_call"); ok {
		call := parseCall(raw)
		m.FunctionCall = &call
	}
	return m
}

func parseCall(function json.RawMessage) ToolCall {
	return ToolCall{Name: rawjson.Text(rawjson.Member(function, "name")), Arguments: rawjson.Text(rawjson.Member(function, "arguments"))}
}

// parseContent reads blocks. Without a format nothing in them is a variable.
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
	if format == "" {
		b.Variable = ""
	} else {
		b.Template, b.Fault = ParseTemplate(format, b.Text)
	}
	return b
}

// FormatOf is the template format that an object asks for.
func FormatOf(o wire.Object) string {
	format, _ := o.Get("template_format")
	if rawjson.Text(format) == "" {
		return "f-string"
	}
	return rawjson.Text(format)
}

// ParseTemplate parses a text; nil for one that stands for itself.
func ParseTemplate(format, source string) (language.Template, error) {
	if strings.IndexByte(source, '{') < 0 && strings.IndexByte(source, '}') < 0 && (format != "jinja2" || !strings.HasSuffix(source, "\n")) {
		return nil, nil
	}
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
	if kind := rawjson.Text(rawjson.Member(raw, "type")); kind != "" && kind != "function" {
		return Tool{At: at, Kind: kind, Name: rawjson.Text(rawjson.Member(raw, "name")), Raw: raw}
	}
	return parseFunction(at, rawjson.Member(raw, "function"))
}

func parseFunction(at string, function json.RawMessage) Tool {
	t := Tool{At: at, Kind: "function", Name: rawjson.Text(rawjson.Member(function, "name")), Description: rawjson.Text(rawjson.Member(function, "description")), Raw: function}
	if parameters := rawjson.Member(function, "parameters"); !rawjson.IsNull(parameters) {
		t.Parameters = parameters
	}
	return t
}

func parseChoice(raw json.RawMessage) choice {
	if rawjson.IsNull(raw) {
		return choice{}
	}
	if raw[0] == '"' {
		c := choice{Mode: rawjson.Text(raw), Raw: raw}
		if c.Mode == "any" { // as some providers spell it
			c.Mode = "required"
		}
		return c
	}
	name := rawjson.Text(rawjson.Member(raw, "name")) // of function_call
	if function := rawjson.Member(raw, "function"); function != nil {
		name = rawjson.Text(rawjson.Member(function, "name"))
	}
	if name == "" {
		return choice{Mode: string(raw), Raw: raw}
	}
	return choice{Mode: "function", Name: name, Raw: raw}
}

// Place is where something stands within the blueprint.
func Place(at string) string { return strings.TrimPrefix(at, "prompt_template.") }

// Blocks walks the blocks of all content but that of placeholders, in whose places variables come.
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

// IsUnfilled says whether it stands for images that nobody gave: it is left out.
func (b *Block) IsUnfilled() bool { return b.Variable != "" && b.Text == "" }

func (b *Block) Has(name string) bool { _, ok := b.Raw.Get(name); return ok }

func (b *Block) Member(name string) string { v, _ := b.Raw.Get(name); return rawjson.Text(v) }
