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
	PartMedia    PartKind = "media" // Text is a URL or names the kind; never the bytes
)

// Part is a piece of a message.
type Part struct {
	Kind PartKind
	Text string

	// Media is a PartMedia as the caller wrote it; see Image. It aliases the body.
	Media json.RawMessage
}

// ToolCall is a model's call of a tool or function.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // as the model wrote them; mostly a JSON object
}

// Text returns the message's text: its parts except media, each on its own lines.
func (m *Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		if p.Kind != PartMedia && p.Text != "" {
			texts = append(texts, p.Text)
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
	m.content(n.first("content", "parts", "message", "text"))
	m.add(PartRefusal, n.texts("refusal"))
	m.add(PartText, n.at("audio").texts("transcript"))
	m.add(PartText, n.texts("tool_plan")) // Cohere's, before its calls
	// OpenAI has tool calls beside the content; function_call
	// is the older form, with one call.
	for c := range n.at("tool_calls").each {
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

// content reads a message's content: a text, a part, or a list of them.
func (m *Message) content(n node) {
	switch {
	case n.isText():
		m.add(PartText, n.text())
	case n.isArray():
		for p := range n.each {
			m.part(p)
		}
	case n.isObject():
		m.part(n)
	}
}

// part reads one part of a content.
func (m *Message) part(n node) {
	if n.isText() {
		m.add(PartText, n.text())
		return
	}

	n = n.indexed()
	if !n.hasMembers() {
		return
	}

	// Anthropic, OpenAI's responses and Mistral name the type.
	switch n.texts("type") {
	case "tool_use", "server_tool_use", "function_call", "mcp_tool_use", "tool-call":
		m.call(n)
		return
	case "tool_result", "function_call_output":
		m.result(n)
		return
	case "thinking", "reasoning":
		m.thinking(n)
		return
	// Encrypted for the provider: there is nothing to show.
	case "redacted_thinking":
		return
	case "refusal":
		m.add(PartRefusal, n.texts("refusal"))
		return
	}

	// Gemini and Bedrock name the part by its only member.
	for _, name := range []string{"functionCall", "function_call", "toolUse"} {
		if c := n.at(name); c.isObject() {
			m.call(c)
			return
		}
	}
	for _, name := range []string{"functionResponse", "function_response", "toolResult"} {
		if r := n.at(name); r.isObject() {
			m.result(r)
			return
		}
	}
	if r := n.at("reasoningContent"); r.exists() {
		m.add(PartThinking, r.at("reasoningText").texts("text"))
		return
	}

	text := n.at("text")
	if text.isObject() { // the Assistants API writes {"text": {"value": ...}}
		text = text.at("value")
	}
	switch {
	case text.isText() && string(n.at("thought").raw) == "true": // Gemini's thoughts
		m.add(PartThinking, text.text())
	case text.isText():
		m.add(PartText, text.text())
	default:
		m.media(n)
	}
}

// call reads a call of a tool in any of the forms: OpenAI nests it under function.
func (m *Message) call(n node) {
	f := n
	if nested := n.at("function"); nested.isObject() {
		f = nested
	}

	call := ToolCall{
		ID:        n.texts("id", "call_id", "tool_call_id", "toolUseId", "toolCallId"),
		Name:      Clip(f.texts("name", "toolName")),
		Arguments: f.first("arguments", "input", "args", "parameters").compact(),
	}
	if call.Name != "" || call.Arguments != "" {
		m.ToolCalls = append(m.ToolCalls, call)
	}
}

// result reads a tool's answer.
func (m *Message) result(n node) {
	// One message may have the results of several calls; it shows the first call's id.
	if id := n.texts("tool_use_id", "toolUseId", "call_id"); m.ToolCallID == "" {
		m.ToolCallID = id
	}
	// Anthropic and Bedrock send results in a user's message.
	if m.Role == "user" || m.Role == "" {
		m.Role = "tool"
	}

	content := n.first("content", "output", "response")
	if !content.isArray() {
		m.add(PartText, content.compact())
		return
	}
	for p := range content.each {
		switch t := p.at("text"); {
		case p.isText():
			m.add(PartText, p.text())
		case t.isText():
			m.add(PartText, t.text())
		case p.at("json").exists():
			m.add(PartText, p.at("json").compact())
		default:
			m.media(p)
		}
	}
}

// thinking reads the model's thoughts: a block of Anthropic's or Mistral's, or a
// reasoning item of OpenAI's with its summary.
func (m *Message) thinking(n node) {
	for _, name := range []string{"thinking", "summary", "content", "text"} {
		v := n.at(name)
		if v.isText() {
			m.add(PartThinking, v.text())
		}
		for e := range v.each {
			m.add(PartThinking, e.texts("text"))
		}
	}
}

// media adds a part that is not text, named by its URL or its kind.
func (m *Message) media(n node) {
	m.add(PartMedia, Clip(mediaName(n)))
	m.Parts[len(m.Parts)-1].Media = n.raw
}

// mediaName returns the URL of a part that is not text, otherwise its kind.
func mediaName(n node) string {
	kind := n.texts("type")
	for _, place := range []node{
		n.at("image_url"), n.at("source"), n.at("media"), n.at("inlineData"), n.at("inline_data"),
		n.at("fileData"), n.at("file_data"), n,
	} {
		if !place.exists() {
			continue
		}
		url := place.text()
		if url == "" {
			url = place.texts("url", "fileUri", "file_uri", "image_url")
		}
		// A data: URL is the bytes themselves, which must not end up in a text.
		if strings.HasPrefix(url, "http") || strings.HasPrefix(url, "gs://") {
			return url
		}
		if t := place.texts("mimeType", "mime_type", "media_type"); t != "" {
			kind = t
		}
	}

	// Bedrock and Gemini name the kind by a member.
	for _, name := range []string{"image", "document", "video", "inlineData", "fileData", "audio"} {
		if kind == "" && n.at(name).exists() {
			kind = name
		}
	}
	if kind == "" {
		return "unknown"
	}

	return kind
}

// Clip shortens a text that was accepted without a bound: it becomes part of
// a list's row.
func Clip(s string) string {
	if utf8.RuneCountInString(s) <= wire.NameRunesMax {
		return s
	}

	return string([]rune(s)[:wire.NameRunesMax])
}
