package calls

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire"
)

// Message is one turn of a model call, in whatever form the provider's API writes it.
type Message struct {
	Role       string // system, developer, user, assistant, tool, function, or as written; "" if unknown
	Name       string
	Parts      []Part
	ToolCalls  []ToolCall
	ToolCallID string // in a tool's answer: the call that it answers
}

// PartKind is the kind of a message's part.
type PartKind string

// The kinds of parts.
const (
	PartText     PartKind = "text"
	PartThinking PartKind = "thinking" // what the model wrote before its answer
	PartRefusal  PartKind = "refusal"
	PartResult   PartKind = "result" // of a tool that the provider ran, beside the model's words
	PartMedia    PartKind = "media"  // Text is a URL or names the kind; never the bytes
)

// Part is a piece of a message.
type Part struct {
	Kind PartKind
	Text string
	Name string `json:",omitempty"` // of a PartMedia: its file's name or title

	// Media is a PartMedia as the caller wrote it; see Image. It aliases the body.
	Media json.RawMessage
}

// ToolCall is a model's call of a tool or function.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // as the model wrote them; mostly a JSON object
}

// Label returns how a PartMedia is shown: its URL or its kind, with its name if it has one.
func (p *Part) Label() string {
	if p.Name == "" {
		return p.Text
	}

	return p.Name + " (" + p.Text + ")"
}

// Text returns the message's text: its parts, each on its own lines. Of media that is the name.
func (m *Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		text := p.Text
		if p.Kind == PartMedia {
			text = p.Name
		}
		if text != "" {
			texts = append(texts, text)
		}
	}

	return strings.Join(texts, "\n")
}

// add appends a part, unless it is empty.
func (m *Message) add(kind PartKind, text string) {
	if text != "" {
		m.Parts = append(m.Parts, Part{Kind: kind, Text: text})
	}
}

// empty reports whether nothing was read.
func (m *Message) empty() bool { return len(m.Parts) == 0 && len(m.ToolCalls) == 0 }

// roles maps the providers' words to ours.
var roles = map[string]string{
	"human": "user", "humanmessage": "user",
	"ai": "assistant", "model": "assistant", "chatbot": "assistant",
	"aimessage": "assistant", "aimessagechunk": "assistant",
	"systemmessage": "system", "toolmessage": "tool", "functionmessage": "function",
}

// role returns our word for a provider's role.
func role(s string) string {
	lower := strings.ToLower(s)
	if r, ok := roles[lower]; ok {
		return r
	}

	return Clip(lower)
}

// readMessage reads a message of any provider. usual is its role unless it names one.
func readMessage(n node, usual string) Message {
	m := Message{Role: usual}
	n.reading.countMessage()
	if n.isText() || n.isArray() {
		m.content(n)
		return m
	}

	n = n.indexed()
	if !n.hasMembers() {
		return m
	}
	if inner, class := langchainMessage(n); inner.exists() {
		n = inner.indexed()
		m.Role = role(class)
	}
	m.readRole(n)
	m.Name = Clip(n.texts("name"))
	m.ToolCallID = n.texts("tool_call_id", "tool_use_id")

	// Some OpenAI-like APIs put the reasoning beside the content.
	m.add(PartThinking, thoughts(n))
	for _, name := range []string{"content", "parts", "blocks", "message", "text"} {
		if c := n.at(name); !c.empty() {
			m.content(c)
			break
		}
	}
	m.add(PartRefusal, n.texts("refusal"))
	m.add(PartText, n.at("audio").texts("transcript"))
	m.add(PartText, n.texts("tool_plan")) // Cohere's, before its calls
	// OpenAI has tool calls beside the content; function_call
	// is the older form, with one call.
	for c := range n.first("tool_calls", "toolCalls").each {
		m.call(c)
	}
	if f := n.at("function_call"); f.isObject() {
		m.call(f)
	}

	return m
}

// readRole takes the role that a message names, if any.
func (m *Message) readRole(n node) {
	if r := n.texts("role", "author"); r != "" {
		m.Role = role(r)
		return
	}
	// LangChain's messages name the role by their type, where
	// other APIs have the type of a part.
	kind := n.texts("type")
	if r, ok := roles[strings.ToLower(kind)]; ok {
		m.Role = r
	} else if kind == "system" || kind == "tool" || kind == "function" {
		m.Role = kind
	}
}

// langchainMessage unwraps LangChain's two ways of writing a message as JSON, and returns
// its role; nil for any other message.
func langchainMessage(n node) (inner node, role string) {
	// {type, data}, as messages_to_dict writes it; {lc, id, kwargs}, as
	// dumps does. The class is the last part of id.
	if data := n.at("data"); data.isObject() && n.at("type").isText() && !n.at("content").exists() {
		return data, n.texts("type")
	}
	if kwargs := n.at("kwargs"); kwargs.isObject() && n.at("lc").exists() {
		class := ""
		for e := range n.at("id").each {
			class = e.text()
		}
		return kwargs, class
	}

	return node{}, ""
}

// call reads a call of a tool in any of the forms: OpenAI nests it under function.
func (m *Message) call(n node) {
	f := n
	if nested := n.at("function"); nested.isObject() {
		f = nested
	}

	call := ToolCall{
		ID:        n.texts("id", "call_id", "tool_call_id", "toolUseId", "toolCallId", "ref"),
		Name:      Clip(f.texts("name", "toolName", "tool_name")),
		Arguments: f.first("arguments", "input", "args", "parameters", "tool_kwargs", "code").compact(),
	}
	if call.Name == "" && f.at("code").isText() {
		call.Name = "code_execution" // Gemini's own tool, which has no name
	}
	if call.Name != "" || call.Arguments != "" {
		m.ToolCalls = append(m.ToolCalls, call)
	}
}

// Clip shortens a text that was accepted without a bound: it becomes part of
// a list's row.
func Clip(s string) string {
	if utf8.RuneCountInString(s) <= wire.NameRunesMax {
		return s
	}

	return string([]rune(s)[:wire.NameRunesMax])
}
