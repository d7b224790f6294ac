package calls

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"regexp"
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

// fileName returns the last part of a file's address; "" if it has none.
func (p *Part) fileName() string {
	_, address, _ := strings.Cut(p.Text, "://")
	address, _, _ = strings.Cut(address, "?")

	return address[strings.LastIndexByte(address, '/')+1:]
}

// Text returns the message's text: its parts, each on its own lines. Of media that is the name.
func (m *Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		text := p.Text
		if p.Kind == PartMedia {
			text = cmp.Or(p.Name, p.fileName())
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
	"system": "system", "tool": "tool", "function": "function",
	"human": "user", "humanmessage": "user",
	"ai": "assistant", "model": "assistant", "chatbot": "assistant",
	"aimessage": "assistant", "aimessagechunk": "assistant",
	"systemmessage": "system", "toolmessage": "tool", "functionmessage": "function",
}

// role returns our word for a provider's role.
func role(s string) string {
	lower := strings.ToLower(s)
	return cmp.Or(roles[lower], Clip(lower))
}

// readMessage reads a message of any provider. usual is its role unless it names one.
func readMessage(n node, usual string) Message {
	m := Message{Role: usual}
	n.reading.countMessage()
	n = n.indexed()
	if !n.hasMembers() {
		m.content(n)
		return m
	}

	n = m.langchain(n).indexed()
	// LangChain's messages name the role by their type, where other APIs have the type of a part.
	m.Role = cmp.Or(role(n.texts("role", "author")), roles[strings.ToLower(n.texts("type"))], m.Role)
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
	// Cohere's, before its calls.
	m.add(PartText, n.texts("tool_plan"))
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

// langchain returns what is within LangChain's two ways of writing a message as JSON, and takes its role:
// {type, data}, as messages_to_dict writes it, and {lc, id, kwargs}, as dumps does.
func (m *Message) langchain(n node) node {
	if data := n.at("data"); data.isObject() && n.at("type").isText() && !n.at("content").exists() {
		m.Role = role(n.texts("type"))
		return data
	}

	kwargs := n.at("kwargs")
	if !kwargs.isObject() || !n.at("lc").exists() {
		return n
	}
	// The class is the last one.
	for e := range n.at("id").each {
		m.Role = role(e.text())
	}

	return kwargs
}

// call reads a call of a tool in any of the forms: OpenAI nests it under function.
func (m *Message) call(n node) {
	f := n.first("function", "custom").or(n)
	call := ToolCall{
		ID:        n.texts("id", "call_id", "tool_call_id", "toolUseId", "toolCallId", "ref"),
		Name:      Clip(f.texts("name", "toolName", "tool_name")),
		Arguments: f.first("arguments", "input", "args", "parameters", "tool_kwargs", "code").compact(),
	}
	if call.Name == "" && f.at("code").isText() {
		// Gemini's own tool, which has no name.
		call.Name = "code_execution"
	}
	if call.Name != "" || call.Arguments != "" {
		m.ToolCalls = append(m.ToolCalls, call)
	}
}

// Clip shortens a text that was accepted without a bound: it becomes part of
// a list's row.
func Clip(s string) string { return wire.Clip(s, wire.NameRunesMax) }

// imageBytesMax bounds an encoded image that is worth showing.
const imageBytesMax = 2 << 20

// imageKinds are the kinds of images that browsers show and that cannot contain a script.
var imageKinds = []string{"png", "jpeg", "jpg", "gif", "webp"}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)

// filePlaces are the members in which providers put a file, its bytes, its address, or what describes it.
var filePlaces = set(`image_url source media inlineData inline_data fileData file_data file document_url audio_url
	video_url input_audio resource image document video audio s3Location url uri fileUri file_uri file_url data
	content bytes b64_json blob`)

// file describes the file of a part that is not text.
type file struct {
	url   string // "" if it has no address
	mime  string // its type, such as application/pdf; "" if it names none
	name  string
	id    string
	bytes node // its text, unless that is the address
	held  bool // it is one: it has bytes, a type or a source
}

// fileOf reads the places of a part. The first that says something counts.
func fileOf(n node) (f file) {
	f.read(n, 0)
	f.held = f.held || f.mime != "" || f.bytes.isBytes()
	// Where there is only an id, a reader can name the file by that.
	f.name = cmp.Or(f.name, f.id)

	return f
}

// filePlacesMax is how many places are one within another: Bedrock has image, source and s3Location.
const filePlacesMax = 3

// read reads one place. Bytes are long: they are not copied.
func (f *file) read(place node, level int) {
	f.mime = cmp.Or(f.mime, place.texts("mimeType", "mime_type", "media_type", "mediaType", "contentType",
		"document_mimetype", "image_mimetype"))
	// A blueprint's media have it as their type.
	if t := place.texts("type"); f.mime == "" && strings.Contains(t, "/") {
		f.mime = t
	}
	f.name = cmp.Or(f.name, place.texts("filename", "title", "name", "displayName", "display_name", "file_name",
		"path"))
	f.id = cmp.Or(f.id, place.texts("file_id", "fileId"))
	f.held = f.held || place.at("source").isObject()

	for name := range place.names {
		if !filePlaces[string(name)] {
			continue
		}
		switch member := place.at(string(name)); {
		case addressed.Match(member.raw):
			f.url = cmp.Or(f.url, member.text())
		case member.isText() && !f.bytes.isBytes():
			f.bytes = member
		case member.isObject() && level < filePlacesMax:
			f.read(member.indexed(), level+1)
		}
	}
}

// addressed is the beginning of a file's address. A data: URL is the bytes themselves, which must not end
// up in a text.
var addressed = regexp.MustCompile(`^"(http|gs://|s3://)`)

// data returns the file's type and its bytes in base64.
func (f *file) data() (mime, data string) {
	mime, data = f.mime, f.bytes.text()
	if rest, ok := strings.CutPrefix(data, "data:"); ok {
		mime, data, _ = strings.Cut(rest, ";base64,")
	}

	return mime, data
}

// text returns what is in a file of text, "" for any other.
func (f *file) text() string {
	// Others may be long, and would be copied.
	if !strings.HasPrefix(f.mime, "text/") && !bytes.HasPrefix(f.bytes.raw, []byte(`"data:text/`)) {
		return ""
	}
	_, data := f.data()
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil || !utf8.Valid(text) {
		return ""
	}

	return string(text)
}

// file adds the file f of a part, by its URL, its type or its kind. One of text is its name and its text.
func (m *Message) file(n node, f file, texts PartKind) {
	if text := f.text(); text != "" {
		m.add(texts, f.name)
		m.add(texts, text)
		return
	}

	kind := n.texts("modality", "type", "block_type")
	for _, name := range []string{"image", "document", "video", "audio", "inlineData", "fileData"} {
		// Bedrock and Gemini name the kind by a member.
		if kind == "" && n.at(name).exists() {
			kind = name
		}
	}

	m.Parts = append(m.Parts, Part{
		Kind:  PartMedia,
		Text:  Clip(cmp.Or(f.url, f.mime, kind, "file")),
		Name:  Clip(f.name),
		Media: n.raw,
	})
}

// Image returns the picture that a part holds, as a data: URL of a PNG, JPEG, GIF or
// WebP. It knows the form of each provider's API. It returns "" for anything else,
// including a picture by its address and one that is too large.
func (p *Part) Image() string {
	if len(p.Media) == 0 || len(p.Media) > imageBytesMax {
		return ""
	}

	n := nodeOf(p.Media).indexed()
	f := fileOf(n)
	// Only a data: URL, or base64, has the bytes. A picture by its address is not shown:
	// looking at a page must not fetch from elsewhere.
	f.mime = cmp.Or(f.mime, "image/"+n.at("image").texts("format"))

	return dataURL(f.data())
}

// dataURL returns "" unless the image is of a kind that is shown. The URL ends up in a
// page, so nothing but base64 may follow the kind.
func dataURL(kind, data string) string {
	for _, k := range imageKinds {
		if strings.EqualFold(kind, "image/"+k) && base64Text.MatchString(data) {
			return "data:image/" + k + ";base64," + data
		}
	}

	return ""
}
