package calls

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire"
)

// Message is one turn of a model call, in whatever form the provider's API writes it.
type Message struct {
	Role       string // system, developer, user, assistant, tool, function, or what the caller wrote; "" if nothing says it
	Name       string
	Parts      []Part
	ToolCalls  []ToolCall
	ToolCallID string // of a tool's answer: the call that it answers
}

// PartKind says what a part of a message is.
type PartKind string

// The kinds of parts.
const (
	PartText     PartKind = "text"
	PartThinking PartKind = "thinking" // what the model wrote before its answer
	PartRefusal  PartKind = "refusal"
	PartMedia    PartKind = "media" // Text is a URL, or says what it is; never the bytes
)

// Part is a piece of a message.
type Part struct {
	Kind PartKind
	Text string
	// Media is a PartMedia as the caller wrote it; see Image. It aliases the body.
	Media json.RawMessage
}

// ToolCall is a call of a tool or function that the model asks for.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // mostly a JSON object; as the model wrote it
}

// Text is the message's text: its parts but media, each on a line of its own.
func (m *Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		if p.Kind != PartMedia && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// add appends a part that says something.
func (m *Message) add(kind PartKind, text string) {
	if text != "" {
		m.Parts = append(m.Parts, Part{Kind: kind, Text: text})
	}
}

// empty says whether nothing was read.
func (m *Message) empty() bool { return len(m.Parts) == 0 && len(m.ToolCalls) == 0 }

// roles are the providers' words for the same role.
var roles = map[string]string{
	"human": "user", "ai": "assistant", "model": "assistant", "chatbot": "assistant", "aimessagechunk": "assistant",
	"humanmessage": "user", "aimessage": "assistant", "systemmessage": "system", "toolmessage": "tool", "functionmessage": "function",
}

func role(s string) string {
	lower := strings.ToLower(s)
	if r, ok := roles[lower]; ok {
		return r
	}
	return Clip(lower)
}

// readMessage reads a message of any provider. role is what it is unless it says so itself.
func readMessage(n node, usual string) Message {
	if n.isText() || n.isArray() {
		m := Message{Role: usual}
		m.content(n)
		return m
	}
	m := Message{Role: usual}
	if inner, class := langchainMessage(n); inner != nil {
		n = inner
		m.Role = role(class)
	}
	m.Name = Clip(n.texts("name"))
	if r := n.texts("role", "author"); r != "" {
		m.Role = role(r)
	} else if r, ok := roles[strings.ToLower(n.texts("type"))]; ok {
		m.Role = r
	} else if t := n.texts("type"); t == "system" || t == "tool" || t == "function" {
		m.Role = t
	}
	m.ToolCallID = n.texts("tool_call_id", "tool_use_id")
	// Reasoning that some OpenAI-like APIs put beside the content.
	m.add(PartThinking, n.texts("reasoning_content", "reasoning", "thinking"))
	m.content(n.first("content", "parts", "message", "text"))
	m.add(PartRefusal, n.texts("refusal"))
	m.add(PartText, n.at("audio").texts("transcript"))
	m.add(PartText, n.texts("tool_plan")) // Cohere's, before its calls
	n.at("tool_calls").each(func(c node) { m.call(c) })
	if f := n.at("function_call"); f.isObject() {
		m.call(f)
	}
	return m
}

// langchainMessage unwraps LangChain's two ways of writing a message as JSON, and says its role; nil if it is none.
func langchainMessage(n node) (inner node, role string) {
	if data := n.at("data"); data.isObject() && n.at("type").isText() && n.at("content") == nil {
		return data, n.texts("type")
	}
	if kwargs := n.at("kwargs"); kwargs.isObject() && n.at("lc") != nil {
		class := ""
		n.at("id").each(func(e node) { class = e.text() })
		return kwargs, class
	}
	return nil, ""
}

// content reads what stands as a message's content: a text, a part, or a list of them.
func (m *Message) content(n node) {
	switch {
	case n.isText():
		m.add(PartText, n.text())
	case n.isArray():
		n.each(func(p node) { m.part(p) })
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
	case "redacted_thinking":
		return
	case "refusal":
		m.add(PartRefusal, n.texts("refusal"))
		return
	}
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
	if r := n.at("reasoningContent"); r != nil {
		m.add(PartThinking, r.at("reasoningText").texts("text"))
		return
	}
	text := n.at("text")
	if text.isObject() { // the Assistants API writes {"text": {"value": ...}}
		text = text.at("value")
	}
	switch {
	case text.isText() && string(n.at("thought")) == "true": // Gemini's thoughts
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
		ID:        n.texts("id", "call_id", "tool_call_id", "toolUseId"),
		Name:      Clip(f.texts("name")),
		Arguments: f.first("arguments", "input", "args", "parameters").compact(),
	}
	if call.Name != "" || call.Arguments != "" {
		m.ToolCalls = append(m.ToolCalls, call)
	}
}

// result reads a tool's answer.
func (m *Message) result(n node) {
	if id := n.texts("tool_use_id", "toolUseId", "call_id"); m.ToolCallID == "" {
		m.ToolCallID = id
	}
	if m.Role == "user" || m.Role == "" {
		m.Role = "tool"
	}
	content := n.first("content", "output", "response")
	switch {
	case content.isArray():
		content.each(func(p node) {
			switch t := p.at("text"); {
			case p.isText():
				m.add(PartText, p.text())
			case t.isText():
				m.add(PartText, t.text())
			case p.at("json") != nil:
				m.add(PartText, p.at("json").compact())
			default:
				m.media(p)
			}
		})
	default:
		m.add(PartText, content.compact())
	}
}

// thinking reads what the model thought: Anthropic's block, Mistral's, or a reasoning item of OpenAI's with its summary.
func (m *Message) thinking(n node) {
	for _, name := range []string{"thinking", "summary", "content", "text"} {
		v := n.at(name)
		if v.isText() {
			m.add(PartThinking, v.text())
		}
		v.each(func(e node) { m.add(PartThinking, e.texts("text")) })
	}
}

// media notes that there is something else than text, by its URL or by what it is.
func (m *Message) media(n node) {
	defer func() { m.Parts[len(m.Parts)-1].Media = json.RawMessage(n) }()
	what := n.texts("type")
	for _, place := range []node{n.at("image_url"), n.at("source"), n.at("media"), n.at("inlineData"), n.at("inline_data"),
		n.at("fileData"), n.at("file_data"), n} {
		url := place.text()
		if url == "" {
			url = place.texts("url", "fileUri", "file_uri", "image_url")
		}
		if strings.HasPrefix(url, "http") || strings.HasPrefix(url, "gs://") {
			m.add(PartMedia, Clip(url))
			return
		}
		if t := place.texts("mimeType", "mime_type", "media_type"); t != "" {
			what = t
		}
	}
	for _, name := range []string{"image", "document", "video", "inlineData", "fileData", "audio"} { // Bedrock and Gemini name it so
		if what == "" && n.at(name) != nil {
			what = name
		}
	}
	if what == "" {
		what = "unknown"
	}
	m.add(PartMedia, Clip(what))
}

// clip cuts a text that no bound was checked for when it was accepted: it goes into every row of a list.
func Clip(s string) string {
	if utf8.RuneCountInString(s) <= wire.NameRunesMax {
		return s
	}
	return string([]rune(s)[:wire.NameRunesMax])
}
