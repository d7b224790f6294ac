package provider

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// builtIn returns the config of a tool that the provider runs.
func (c *call) builtIn(t prompt.Tool) wire.Object {
	by := rawjson.Text(rawjson.Member(t.Raw, "provider"))
	// Providers name their own tools alike, but their configs differ.
	if by != "" && family(by, "") != family(c.provider, "") && family(by, "") != c.family {
		c.reject(t.At, "is the tool %q of %s, which %s does not have; take it out",
			language.Shorten(t.Kind), language.Shorten(by), c.provider)
	}

	return rawjson.Object(rawjson.Member(t.Raw, "config"))
}

// schemaOf returns the schema of a function's parameters. A function without one takes
// none.
func schemaOf(t *prompt.Tool) json.RawMessage {
	if t.Parameters == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}

	return t.Parameters
}

// declare writes a function's name, description and schema, as most providers want them.
func declare(t *prompt.Tool, schemaName string, schema json.RawMessage) json.RawMessage {
	out := rawjson.NewObject().
		Str("name", t.Name).
		Some("description", t.Description).
		Raw(schemaName, schema)
	if strict := rawjson.Member(t.Raw, "strict"); string(strict) == "true" {
		out = out.Raw("strict", strict)
	}

	return out.End()
}

// withTools adds a list of what convert makes of each tool; none without tools, which
// providers reject.
func (c *call) withTools(
	kwargs wire.Object, convert func(t prompt.Tool) json.RawMessage,
) wire.Object {
	if len(c.Tools) == 0 {
		return kwargs
	}

	return append(kwargs, rawjson.MemberOf("tools", rawjson.ArrayOf(c.Tools, convert)))
}

// functionTools adds tools, and the choice among them, in the form that several providers
// took over from OpenAI.
func (c *call) functionTools(kwargs wire.Object, forms choices) wire.Object {
	kwargs = c.withTools(kwargs, func(t prompt.Tool) json.RawMessage {
		if t.Kind != "function" {
			return c.reject(t.At, "is %q, and %s takes functions only; take it out",
				language.Shorten(t.Kind), c.provider)
		}
		function := declare(&t, "parameters", schemaOf(&t))
		return rawjson.Form(`{"type":"function","function":$}`, function)
	})

	return c.withChoice(kwargs, forms)
}

// input returns the arguments of a tool call as an object.
func (c *call) input(at string, call prompt.ToolCall) json.RawMessage {
	if strings.TrimSpace(call.Arguments) == "" {
		return json.RawMessage("{}")
	}

	// Models write arguments, so they may be anything.
	o, err := wire.ParseObject([]byte(call.Arguments))
	if err != nil {
		return c.reject(at,
			"calls %q with arguments that are not a JSON object, as %s requires",
			language.Shorten(call.Name), c.provider)
	}

	return rawjson.Encode(o)
}

// calledName returns the name of the function whose call a message answers; the message's
// own name if no message makes that call.
func (c *call) calledName(m *prompt.Message) string {
	for i := range c.Messages {
		for _, call := range c.Messages[i].Calls {
			if call.ID == m.ToolCallID {
				return call.Name
			}
		}
	}

	return m.Name
}

// choices are the forms in which a provider's client takes tool_choice, by its mode, with a place for
// the function's name; an empty form adds nothing.
type choices map[string]string

// choice writes the published tool_choice in one of the forms; nil if there is nothing to add.
func (c *call) choice(forms choices) json.RawMessage {
	if len(c.Tools) == 0 || c.Choice.Mode == "" {
		return nil
	}
	form, ok := forms[c.Choice.Mode]
	if !ok {
		return c.reject("prompt_template.tool_choice",
			"is %s, which %s does not have; use auto, none, required or a function",
			language.Shorten(c.Choice.Mode), c.provider)
	}

	return rawjson.Form(form, c.Choice.Name)
}

// withChoice adds a tool_choice in one of the forms.
func (c *call) withChoice(kwargs wire.Object, forms choices) wire.Object {
	if choice := c.choice(forms); len(choice) > 0 {
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", choice))
	}

	return kwargs
}

// turn is consecutive messages of one side, for providers whose conversations alternate.
type turn struct {
	role  string
	parts []json.RawMessage
}

// dialect is how such a provider writes what is in a message.
type dialect struct {
	block  func(*prompt.Message, *prompt.Block) json.RawMessage
	call   func(_ prompt.ToolCall, input json.RawMessage) json.RawMessage
	result func(*prompt.Message) json.RawMessage // of a tool
}

// said returns the side that a message is on, and its parts. The result of a tool is
// something that the user says.
func (c *call) said(m *prompt.Message, d dialect) (string, []json.RawMessage) {
	if m.Role == "tool" {
		return "user", []json.RawMessage{d.result(m)}
	}

	parts := eachBlock(m, d.block)
	for _, call := range m.Calls {
		parts = append(parts, d.call(call, c.input(m.At, call)))
	}

	return m.Role, parts
}

// turns joins what is said in the messages. Consecutive messages of one role become one
// turn.
//
// System messages are left out: see system. Empty messages, which these providers do
// not take, are left out with a warning.
func (c *call) turns(d dialect) []turn {
	var list []turn
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role == "placeholder" || isSystem(m) {
			continue
		}
		role, parts := c.said(m, d)

		if m.Name != "" && m.Role != "tool" {
			c.warnName(m)
		}
		if len(parts) == 0 {
			c.warn("%s was left out: it is empty, and %s takes no empty message.",
				prompt.Place(m.At), c.provider)
			continue
		}
		// These providers reject two messages of one role in a row.
		if n := len(list); n > 0 && list[n-1].role == role {
			list[n-1].parts = append(list[n-1].parts, parts...)
			continue
		}
		list = append(list, turn{role, parts})
	}

	if len(list) == 0 {
		c.warn("There is no message of the role user; %s needs one, so add it before the call.", c.provider)
	}

	return list
}

// turnsJSON writes turns as [{role, name: parts}].
func turnsJSON(list []turn, name string) json.RawMessage {
	return rawjson.ArrayOf(list, func(t turn) json.RawMessage {
		return rawjson.NewObject().Str("role", t.role).Raw(name, rawjson.Array(t.parts)).End()
	})
}

func isSystem(m *prompt.Message) bool { return m.Role == "system" || m.Role == "developer" }

// system lists what convert makes of the texts of all messages of the roles system and
// developer that are not empty.
func (c *call) system(convert func(text string) json.RawMessage) []json.RawMessage {
	var parts []json.RawMessage
	for i := range c.Messages {
		m := &c.Messages[i]
		if !isSystem(m) {
			continue
		}
		if s := c.messageText(m); strings.TrimSpace(s) != "" {
			parts = append(parts, convert(s))
		}
	}

	return parts
}

// eachBlock lists what convert makes of each block of a message, leaving out those that
// nothing was filled into, or that it turns into nothing.
func eachBlock(
	m *prompt.Message, convert func(*prompt.Message, *prompt.Block) json.RawMessage,
) (blocks []json.RawMessage) {
	for i := range m.Content {
		// A part without its images would be rejected by the provider.
		if m.Content[i].IsUnfilled() {
			continue
		}
		if raw := convert(m, &m.Content[i]); raw != nil {
			blocks = append(blocks, raw)
		}
	}

	return blocks
}

// eachMessage lists what convert makes of each message. A completion becomes a message of
// the user.
func (c *call) eachMessage(
	convert func(m *prompt.Message) json.RawMessage,
) []json.RawMessage {
	list := c.Messages
	if !c.Chat {
		// These APIs have chat only.
		list = []prompt.Message{{At: "prompt_template", Role: "user", Content: c.Content}}
	}

	messages := make([]json.RawMessage, 0, len(list))
	for i := range list {
		m := &list[i]
		// Nothing was filled in.
		if m.Role == "placeholder" {
			continue
		}
		messages = append(messages, convert(m))
	}

	return messages
}

// chunks writes the content of a message: a string if it is one text or nothing,
// otherwise a list with what convert makes of each block.
func (c *call) chunks(
	m *prompt.Message,
	convert func(m *prompt.Message, b *prompt.Block) json.RawMessage,
) json.RawMessage {
	if len(m.Content) == 0 {
		return rawjson.Quote("")
	}
	if len(m.Content) == 1 && m.Content[0].Kind == "text" {
		return rawjson.Quote(m.Content[0].Text)
	}

	list := eachBlock(m, func(m *prompt.Message, b *prompt.Block) json.RawMessage {
		if b.Kind == "text" {
			return textPart(b.Text)
		}
		return convert(m, b)
	})

	return rawjson.Array(list)
}

// namelessMessage writes a message with a content, nil for none, in OpenAI's form. None has a name but, with
// namesTools, the result of a tool.
func (c *call) namelessMessage(
	m *prompt.Message, content json.RawMessage, namesTools bool,
) json.RawMessage {
	role := m.Role
	if isSystem(m) {
		role = "system"
	}

	out := rawjson.NewObject().Str("role", role).SomeRaw("content", content)
	switch {
	case role == "tool" && namesTools:
		out = out.Str("tool_call_id", m.ToolCallID).Some("name", c.calledName(m))
	case role == "tool":
		out = out.Str("tool_call_id", m.ToolCallID)
	case m.Name != "":
		c.warnName(m)
	}

	return out.SomeRaw("tool_calls", openAICalls(m.Calls)).End()
}

// isUsersFile reports whether a block is a file in a message of the user, and else rejects it.
func (c *call) isUsersFile(m *prompt.Message, b *prompt.Block) bool {
	switch {
	case b.Kind != "image_url" && b.Kind != "media":
		c.cannotHold(b, "a message; take it out")
	case m.Role != "user":
		c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.Role)
	default:
		return true
	}
	return false
}

// bareText writes a text as a part without a type.
func bareText(text string) json.RawMessage { return rawjson.Form(`{"text":$}`, text) }

// textPart writes a text in the form that most providers use.
func textPart(text string) json.RawMessage { return rawjson.Form(`{"type":"text","text":$}`, text) }

// file is what an image_url, media or output block shows: a url, or the data itself.
type file struct {
	mime   string // type/subtype; "" if unknown
	data   string // base64; "" if it is given by url
	url    string
	title  string          // a name for it
	detail json.RawMessage // of an image; nil if not given
}

// defaultImage is the type of data that nothing says more about: its block shows an
// image.
const defaultImage = "image/jpeg"

// fileOf reads a block of type image_url or media. A data: url gives its data.
func fileOf(b *prompt.Block) file {
	inner := rawjson.Of(b.Raw, b.Kind)
	f := file{
		url:   b.Text,
		mime:  rawjson.Text(rawjson.Member(inner, "type")),
		title: rawjson.Text(rawjson.Member(inner, "title")),
	}
	if detail := rawjson.Member(inner, "detail"); !rawjson.IsNull(detail) {
		f.detail = detail
	}
	f.title = cmp.Or(f.title, "file")

	// The url may hold bare base64, if the block says so.
	if rawjson.Text(rawjson.Member(inner, "format")) == "base64" && !strings.HasPrefix(f.url, "data:") {
		f.data, f.url = f.url, ""
	}
	if rest, ok := strings.CutPrefix(f.url, "data:"); ok {
		if head, data, ok := strings.Cut(rest, ";base64,"); ok {
			f.data, f.url = data, ""
			f.mime, _, _ = strings.Cut(head, ";")
		}
	}
	f.mime = cmp.Or(f.mime, mimeOf(f.url))

	return f
}

// mimes are the types of the files that models read, by file extension.
var mimes = map[string]string{
	".jpg":  "image/jpeg",
	".jpeg": "image/jpeg",
	".png":  "image/png",
	".gif":  "image/gif",
	".webp": "image/webp",
	".pdf":  "application/pdf",
	".mp3":  "audio/mpeg",
	".wav":  "audio/wav",
	".mp4":  "video/mp4",
}

// mimeOf guesses from the extension of a url's path; "" if that says nothing.
func mimeOf(url string) string {
	// A signed url has its signature after the path.
	url, _, _ = strings.Cut(url, "?")
	url, _, _ = strings.Cut(url, "#")
	return mimes[strings.ToLower(path.Ext(url))]
}

// is reports whether the file is an image, audio, or video. A file of unknown type is an
// image, as its block says.
func (f *file) is(kind string) bool {
	if f.mime == "" {
		return kind == "image"
	}
	major, _, _ := strings.Cut(f.mime, "/")

	return major == kind
}

// format returns the subtype as clients spell it: png, jpeg, mp3.
func (f *file) format() string {
	_, minor, _ := strings.Cut(f.mime, "/")
	switch minor = strings.TrimPrefix(minor, "x-"); minor {
	case "mpeg":
		return "mp3"
	case "jpg":
		return "jpeg"
	}

	return minor
}

// dataType returns the type of the data, which some clients require.
func (f *file) dataType() string {
	return cmp.Or(f.mime, defaultImage)
}

// asURL returns a url for the file; a data: url if it is given as data.
func (f *file) asURL() string {
	if f.data == "" {
		return f.url
	}

	return "data:" + f.dataType() + ";base64," + f.data
}

// describe names the file in an error.
func (f *file) describe() string {
	kind := cmp.Or(f.mime, "a file of unknown type")
	if f.data == "" {
		return language.Shorten(kind) + " by url"
	}

	return language.Shorten(kind) + " as data"
}
