package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
)

// prompt is a blueprint taken apart. As Prepare makes it, its texts may hold variables; as fill makes it, they are what the model
// is to read. It never changes, and shares what it can with the blueprint's bytes.
type prompt struct {
	chat      bool
	messages  []message // of a chat
	content   []block   // of a completion
	tools     []tool
	functions []tool // the older form of tools
	choice    choice // tool_choice
	call      choice // function_call
}

// message is one message of a chat.
type message struct {
	at           string // where it stands, for errors: prompt_template.messages[0]
	role         string
	name         string
	toolCallID   string
	content      []block
	calls        []toolCall
	functionCall *toolCall // the older form; without an id
}

// block is one block of content.
type block struct {
	at       string
	kind     string
	text     string      // of text; the url of image_url and media
	template template    // of text; nil if it has no variables
	fault    error       // why text cannot be rendered; it stays as it is
	variable string      // image_variable, or the name of a media_variable: it holds images
	raw      wire.Object // all members
}

// template is a parsed text.
type template interface {
	// appendTo renders it behind b.
	appendTo(b []byte, r *rendering) ([]byte, error)
	// Variables lists those that it uses, in order of appearance, each once.
	Variables() []string
}

// toolCall is what an assistant's message says it called.
type toolCall struct {
	id, name  string
	arguments string // JSON, if the model kept to it
}

// tool is what the model may call: a function, or something that the provider runs (then raw has its provider and config).
type tool struct {
	at          string
	kind        string // function, or the type of a tool of the provider's
	name        string
	description string
	parameters  json.RawMessage // a JSON schema; nil if absent
	raw         json.RawMessage // the function, or the whole tool
}

// choice says which tool is to be called. The zero value says nothing.
type choice struct {
	mode string          // auto, none, required, function; anything else is as it was written
	name string          // of the function
	raw  json.RawMessage // as written; nil if absent
}

// parsePrompt takes apart a blueprint that Check made.
func parsePrompt(o wire.Object) *prompt {
	kind, _ := o.Get("type")
	p := &prompt{chat: text(kind) == "chat"}
	if raw, ok := o.Get("content"); ok && !p.chat {
		p.content = parseContent("prompt_template.content", formatOf(o), raw)
	}
	if raw, ok := o.Get("messages"); ok && p.chat {
		for i, m := range elements(raw) {
			p.messages = append(p.messages, parseMessage(fmt.Sprintf("prompt_template.messages[%d]", i), object(m), false))
		}
	}
	raw, _ := o.Get("tools")
	for i, e := range elements(raw) {
		p.tools = append(p.tools, parseTool(fmt.Sprintf("prompt_template.tools[%d]", i), e))
	}
	raw, _ = o.Get("functions")
	for i, e := range elements(raw) {
		p.functions = append(p.functions, parseFunction(fmt.Sprintf("prompt_template.functions[%d]", i), e))
	}
	raw, _ = o.Get("tool_choice")
	p.choice = parseChoice(raw)
	raw, _ = o.Get("function_call")
	p.call = parseChoice(raw)
	return p
}

// parseMessage reads a message. In one that is data, braces mean nothing.
func parseMessage(at string, o wire.Object, data bool) message {
	get := func(name string) string { v, _ := o.Get(name); return text(v) }
	m := message{at: at, role: get("role"), name: get("name"), toolCallID: get("tool_call_id")}
	format := formatOf(o)
	if data {
		format = ""
	}
	if raw, ok := o.Get("content"); ok {
		m.content = parseContent(at+".content", format, raw)
	}
	raw, _ := o.Get("tool_calls")
	for _, e := range elements(raw) {
		call := parseCall(member(e, "function"))
		call.id = text(member(e, "id"))
		m.calls = append(m.calls, call)
	}
	if raw, ok := o.Get("function_call"); ok {
		call := parseCall(raw)
		m.functionCall = &call
	}
	return m
}

func parseCall(function json.RawMessage) toolCall {
	return toolCall{name: text(member(function, "name")), arguments: text(member(function, "arguments"))}
}

// parseContent reads blocks. Without a format nothing in them is a variable.
func parseContent(at, format string, raw json.RawMessage) []block {
	list := elements(raw)
	blocks := make([]block, len(list))
	for i, e := range list {
		blocks[i] = parseBlock(fmt.Sprintf("%s[%d]", at, i), format, object(e))
	}
	return blocks
}

func parseBlock(at, format string, o wire.Object) block {
	get := func(name string) json.RawMessage { v, _ := o.Get(name); return v }
	b := block{at: at, kind: text(get("type")), raw: o}
	switch b.kind {
	case "text":
		b.text = text(get("text"))
	case "image_url":
		b.text = text(member(get("image_url"), "url"))
		b.variable = text(get("image_variable"))
	case "media":
		b.text = text(member(get("media"), "url"))
	case "media_variable":
		b.variable = text(get("name"))
	}
	if format == "" {
		b.variable = ""
	} else {
		b.template, b.fault = parseTemplate(format, b.text)
	}
	return b
}

// formatOf is the template format that an object asks for.
func formatOf(o wire.Object) string {
	format, _ := o.Get("template_format")
	if text(format) == "" {
		return "f-string"
	}
	return text(format)
}

// parseTemplate parses a text; nil for one that stands for itself.
func parseTemplate(format, source string) (template, error) {
	if strings.IndexByte(source, '{') < 0 && strings.IndexByte(source, '}') < 0 && (format != "jinja2" || !strings.HasSuffix(source, "\n")) {
		return nil, nil
	}
	switch format {
	case "f-string":
		f, err := Parse(source)
		if err != nil {
			return nil, err
		}
		return f, nil
	case "jinja2":
		j, err := ParseJinja(source)
		if err != nil {
			return nil, err
		}
		return j, nil
	}
	return nil, fmt.Errorf("is in %s, which this version does not render", shorten(format))
}

func parseTool(at string, raw json.RawMessage) tool {
	if kind := text(member(raw, "type")); kind != "" && kind != "function" {
		return tool{at: at, kind: kind, name: text(member(raw, "name")), raw: raw}
	}
	return parseFunction(at, member(raw, "function"))
}

func parseFunction(at string, function json.RawMessage) tool {
	t := tool{at: at, kind: "function", name: text(member(function, "name")), description: text(member(function, "description")), raw: function}
	if parameters := member(function, "parameters"); !isNull(parameters) {
		t.parameters = parameters
	}
	return t
}

func parseChoice(raw json.RawMessage) choice {
	if isNull(raw) {
		return choice{}
	}
	if raw[0] == '"' {
		c := choice{mode: text(raw), raw: raw}
		if c.mode == "any" { // as some providers spell it
			c.mode = "required"
		}
		return c
	}
	name := text(member(raw, "name")) // of function_call
	if function := member(raw, "function"); function != nil {
		name = text(member(function, "name"))
	}
	if name == "" {
		return choice{mode: string(raw), raw: raw}
	}
	return choice{mode: "function", name: name, raw: raw}
}
