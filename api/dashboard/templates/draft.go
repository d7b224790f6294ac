package templates

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/dashboard/markup"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// draft is a version of a template as the editor's form holds it. Members without a field
// in the form are kept in its JSON fields, so that editing loses nothing.
type draft struct {
	Name     string
	New      bool // the template does not exist yet
	Base     int  // the latest version when the form was made; 0 if there was none
	Kind     string
	Messages []draftMessage // one if it is a completion
	Tools    []draftTool
	Other    string // the blueprint's other members: a JSON object
	Provider string
	Model    string
	Settings string // the model's parameters: a JSON object
	Metadata string // the metadata's other members: a JSON object
	Tags     string // separated by commas
	OldTags  string // the tags when the form was made
	Message  string // the commit message
	Label    string // that points to the version once it is saved, or ""

	Variables string // for the preview: a JSON object
	For       string // the provider of the preview's llm_kwargs, if it is not Provider
}

// draftMessage is one message of a draft.
type draftMessage struct {
	Role   string
	Format string // f-string, jinja2, or "" for the default: f-string
	Text   string
	JSON   bool   // Text is the content as JSON, because it is not a single text
	More   string // the other members: a JSON object, or ""
}

// newDraft returns what the editor starts with for a new template.
func newDraft(name string) draft {
	return draft{
		Name:      name,
		New:       true,
		Kind:      "chat",
		Settings:  "{}",
		Variables: "{}",
		Messages:  []draftMessage{{Role: "system"}, {Role: "user"}},
	}
}

// draftFrom puts a version into the form.
func draftFrom(head wire.Template, raw wire.RawTemplate) (draft, error) {
	tags := strings.Join(head.Tags, ", ")
	d := draft{
		Name:      head.Name,
		Base:      head.Latest(),
		Tags:      tags,
		OldTags:   tags,
		Variables: "{}",
		Settings:  "{}",
	}

	if err := d.takeBlueprint(raw.Blueprint); err != nil {
		return d, err
	}
	d.takeMetadata(raw.Metadata)

	return d, nil
}

// takeBlueprint puts a version's blueprint into the form.
func (d *draft) takeBlueprint(raw json.RawMessage) error {
	var blueprint map[string]json.RawMessage
	if err := json.Unmarshal(raw, &blueprint); err != nil {
		return err
	}

	// Members with their own fields; all others go to d.Other.
	fields := []string{"type", "tools", "input_variables"}
	d.Kind = jsonText(blueprint["type"])
	if d.Kind == "chat" {
		fields = append(fields, "messages")
		var messages []map[string]json.RawMessage
		if err := json.Unmarshal(blueprint["messages"], &messages); err != nil {
			return err
		}
		for _, m := range messages {
			d.Messages = append(d.Messages, draftMessageFrom(m))
		}
	} else {
		fields = append(fields, "content", "template_format")
		d.Messages = []draftMessage{draftMessageFrom(map[string]json.RawMessage{
			"content":         blueprint["content"],
			"template_format": blueprint["template_format"],
		})}
	}

	var tools []json.RawMessage
	// The registry has checked it.
	_ = json.Unmarshal(blueprint["tools"], &tools)
	for _, tool := range tools {
		d.Tools = append(d.Tools, draftToolFrom(tool))
	}
	d.Other = without(blueprint, fields...)

	return nil
}

// takeMetadata puts a version's metadata into the form.
func (d *draft) takeMetadata(raw json.RawMessage) {
	var metadata, model map[string]json.RawMessage
	// The registry has checked it; null is none.
	_ = json.Unmarshal(raw, &metadata)
	_ = json.Unmarshal(metadata["model"], &model)

	d.Provider, d.Model = jsonText(model["provider"]), jsonText(model["name"])
	if p := model["parameters"]; p != nil {
		d.Settings = markup.Pretty(p)
	}

	// The model's other members stay where they are, among the other metadata.
	if more := without(model, "provider", "name", "parameters"); more != "" {
		metadata["model"] = json.RawMessage(more)
	} else {
		delete(metadata, "model")
	}
	d.Metadata = without(metadata)
}

func draftMessageFrom(m map[string]json.RawMessage) draftMessage {
	d := draftMessage{
		Role:   jsonText(m["role"]),
		Format: jsonText(m["template_format"]),
		More:   without(m, "role", "content", "template_format", "input_variables"),
	}

	content := m["content"]
	if content == nil || string(content) == "null" {
		return d
	}

	// A single block with only a text is edited as that text, anything else as JSON.
	var blocks []map[string]json.RawMessage
	single := json.Unmarshal(content, &blocks) == nil && len(blocks) == 1 && len(blocks[0]) == 2
	if single && jsonText(blocks[0]["type"]) == "text" {
		d.Text = jsonText(blocks[0]["text"])
	} else {
		d.Text, d.JSON = markup.Pretty(content), true
	}

	return d
}

// jsonText returns the text in a JSON string, or "" for any other JSON.
func jsonText(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)

	return s
}

// without prints an object without some of its members, or returns "" if none are left.
func without(object map[string]json.RawMessage, names ...string) string {
	left := maps.Clone(object)
	for _, name := range names {
		delete(left, name)
	}
	if len(left) == 0 {
		return ""
	}

	return markup.Indent(string(encoded(left)))
}

// encoded returns v as JSON. v must be made of maps, texts and valid JSON, which cannot
// fail to encode.
func encoded(v any) json.RawMessage {
	raw, _ := jsonscan.Marshal(v)

	return raw
}

// draftMessagesMax bounds the messages of a form.
const draftMessagesMax = 1000

// readDraft reads the form.
func readDraft(f url.Values) draft {
	get := func(name string) string { return unixLines(f.Get(name)) }
	base, _ := strconv.Atoi(f.Get("base"))
	d := draft{
		Name:     strings.TrimSpace(get("name")),
		New:      f.Get("new") == "true",
		Base:     base,
		Kind:     get("kind"),
		Other:    get("other"),
		Provider: strings.TrimSpace(get("provider")),
		Model:    strings.TrimSpace(get("model")),
		Settings: get("settings"),
		Metadata: get("metadata"),
		Tags:     get("tags"),
		OldTags:  get("oldtags"),
		Message:  get("message"),
		Label:    strings.TrimSpace(get("label")),

		Variables: get("variables"),
		For:       get("for"),
	}

	// The fields of messages and tools repeat: the i-th of each name belongs to the i-th of them.
	at := func(name string, i int) string {
		if values := f[name]; i < len(values) {
			return unixLines(values[i])
		}
		return ""
	}
	for i := range min(len(f["text"]), draftMessagesMax) {
		d.Messages = append(d.Messages, draftMessage{
			Role:   at("role", i),
			Format: at("format", i),
			Text:   at("text", i),
			JSON:   at("json", i) == "true",
			More:   at("more", i),
		})
	}
	for i := range min(len(f["tool-json"]), draftMessagesMax) {
		d.Tools = append(d.Tools, draftTool{
			Name:        strings.TrimSpace(at("tool-name", i)),
			Description: at("tool-description", i),
			Parameters:  at("tool-parameters", i),
			More:        at("tool-more", i),
			JSON:        at("tool-json", i),
		})
	}

	return d
}

// unixLines ends the lines of a text with LF. Browsers send CRLF, which would make every
// text that was saved from the form differ from the version before.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// apply carries out a button that changes the form, such as "add" or "remove-2". Buttons
// that do not exist, or that do not fit the draft, change nothing.
func (d *draft) apply(button string) {
	tool, isTool := strings.CutPrefix(button, "tool-")
	switch {
	case isTool && tool == "add" && len(d.Tools) < draftMessagesMax:
		d.Tools = append(d.Tools, draftTool{})
	case isTool && tool == "json" && len(d.Tools) < draftMessagesMax:
		d.Tools = append(d.Tools, draftTool{JSON: newTool})
	case isTool:
		d.Tools = arranged(d.Tools, tool, 0)
	case button == "add" && len(d.Messages) < draftMessagesMax:
		d.addMessage()
	case button == "chat" && d.Kind != "chat":
		d.toChat()
	case button == "completion" && d.Kind == "chat" && len(d.Messages) > 0:
		d.toCompletion()
	default:
		d.Messages = arranged(d.Messages, button, 1)
	}
}

// arranged carries out a button that moves or removes one of several parts, such as "up-1", but leaves
// at least so many.
func arranged[T any](parts []T, button string, least int) []T {
	action, at, _ := strings.Cut(button, "-")
	i, err := strconv.Atoi(at)
	exists := err == nil && i >= 0 && i < len(parts)

	switch {
	case action == "remove" && exists && len(parts) > least:
		parts = slices.Delete(parts, i, i+1)
	case action == "up" && exists && i > 0:
		parts[i-1], parts[i] = parts[i], parts[i-1]
	}

	return parts
}

// addMessage adds an empty message. People who write examples alternate the two roles.
func (d *draft) addMessage() {
	role := "user"
	if n := len(d.Messages); n > 0 && d.Messages[n-1].Role == "user" {
		role = "assistant"
	}
	d.Messages = append(d.Messages, draftMessage{Role: role})
}

// Misplaced reports whether a chat's own settings have the format of its texts. Nothing reads it there.
func (d draft) Misplaced() bool {
	var other map[string]json.RawMessage
	// Anything but an object has nothing in the wrong place.
	_ = json.Unmarshal([]byte(d.Other), &other)

	return d.Kind == "chat" && other["template_format"] != nil
}

func (d *draft) toChat() {
	d.Kind = "chat"
	for i := range d.Messages {
		d.Messages[i].Role = cmp.Or(d.Messages[i].Role, "user")
	}
}

// toCompletion joins the messages to one text. Contents that are not texts are dropped.
func (d *draft) toCompletion() {
	var texts []string
	for _, m := range d.Messages {
		if !m.JSON && m.Text != "" {
			texts = append(texts, m.Text)
		}
	}

	d.Kind = "completion"
	d.Messages = []draftMessage{{Format: d.Messages[0].Format, Text: strings.Join(texts, "\n\n")}}
}

// object reads a JSON field that must hold an object. An empty field is an empty object; a
// fault is added to faults.
func (d *draft) object(field, text string, faults *[]wire.FieldError) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if strings.TrimSpace(text) == "" {
		return out
	}

	if err := json.Unmarshal([]byte(text), &out); err != nil || out == nil {
		reason := jsonReason(text, "an object, such as {\"name\": 1}", err)
		*faults = append(*faults, wire.FieldError{Field: field, Reason: reason})

		return map[string]json.RawMessage{}
	}

	return out
}

func jsonReason(text, wanted string, err error) string {
	reason := "must be " + wanted
	if err == nil {
		return reason
	}
	reason += ": " + strings.TrimPrefix(err.Error(), "json: ")

	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line, column := jsonscan.Position([]byte(text), max(0, int(syntax.Offset)-1))
		reason += fmt.Sprintf(", in line %d, column %d", line, column)
	}

	return reason
}

// publish returns what the draft publishes. A wire.CodeInvalid error names the fields that
// are not the JSON they must be, or what the API rejects.
func (d *draft) publish() (wire.Publish, error) {
	var faults []wire.FieldError
	blueprint := d.blueprint(&faults)
	metadata := d.metadata(&faults)
	if faults != nil {
		return wire.Publish{}, wire.Invalid(faults...)
	}

	body := map[string]any{
		"prompt_name":     d.Name,
		"prompt_template": blueprint,
		"commit_message":  d.Message,
	}
	if metadata != nil {
		body["metadata"] = metadata
	}

	// Unchanged tags are left out, or the form would undo changes made to them meanwhile.
	if d.Tags != d.OldTags {
		body["tags"] = splitTags(d.Tags)
	}
	if d.Label != "" {
		body["release_labels"] = []string{d.Label}
	}

	// The form is subject to the rules of the API.
	object, err := wire.ParseObject(encoded(body))
	if err != nil {
		return wire.Publish{}, err
	}
	p, err := wire.DecodeOldPublish(object)
	p.Base = &d.Base

	return p, err
}

// blueprint returns the blueprint that the form describes.
func (d *draft) blueprint(faults *[]wire.FieldError) map[string]json.RawMessage {
	blueprint := d.object("Other settings", d.Other, faults)

	var messages []json.RawMessage
	for i, m := range d.Messages {
		message := d.message(i, m, faults)
		messages = append(messages, encoded(message))
		if d.Kind != "chat" {
			// A completion has the members of its one message.
			maps.Copy(blueprint, message)
		}
	}

	blueprint["type"] = encoded(d.Kind)
	if d.Kind == "chat" {
		blueprint["messages"] = encoded(messages)
	}

	if len(d.Tools) > 0 {
		blueprint["tools"] = encoded(d.tools(faults))
	}

	return blueprint
}

// message returns message i as a blueprint holds it.
func (d *draft) message(i int, m draftMessage, faults *[]wire.FieldError) map[string]json.RawMessage {
	name := "Message " + strconv.Itoa(i+1)
	message := d.object(name+", more", m.More, faults)
	if d.Kind == "chat" {
		message["role"] = encoded(m.Role)
	}
	if m.Format != "" {
		message["template_format"] = encoded(m.Format)
	}

	// Messages of these roles may have tool calls or a name in place of a content.
	optional := m.Role == "assistant" || m.Role == "function" || m.Role == "placeholder"
	switch {
	case m.JSON && !json.Valid([]byte(m.Text)):
		*faults = append(*faults, wire.FieldError{Field: name, Reason: "must be JSON: a list of blocks"})
	case m.JSON:
		message["content"] = json.RawMessage(m.Text)
	case m.Text != "" || !optional:
		message["content"] = encoded([]map[string]string{{"type": "text", "text": m.Text}})
	}

	return message
}

// metadata returns the metadata with the fields about the model, or nil if it is empty.
func (d *draft) metadata(faults *[]wire.FieldError) map[string]json.RawMessage {
	metadata := d.object("Other metadata", d.Metadata, faults)

	// The model's other members, to which those with fields are added.
	model := map[string]json.RawMessage{}
	if more, ok := metadata["model"]; ok {
		model = d.object("Other metadata, model", string(more), faults)
	}
	if settings := d.object("Settings", d.Settings, faults); len(settings) > 0 {
		model["parameters"] = json.RawMessage(d.Settings)
	}
	if d.Provider != "" {
		model["provider"] = encoded(d.Provider)
	}
	if d.Model != "" {
		model["name"] = encoded(d.Model)
	}

	if len(model) > 0 {
		metadata["model"] = encoded(model)
	}
	if len(metadata) == 0 {
		return nil
	}

	return metadata
}

// splitTags reads tags that are separated by commas. No tags are an empty list, not nil,
// which would leave a template's tags as they are.
func splitTags(text string) []string {
	tags := []string{}
	for tag := range strings.SplitSeq(text, ",") {
		tag = strings.TrimSpace(tag)
		if tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}

	return tags
}
