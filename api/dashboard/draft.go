package dashboard

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// draft is a template's version as the editor's form holds it. What the form has no field for stands in its fields of JSON, so
// that nothing gets lost by editing.
type draft struct {
	Name     string
	New      bool // there is no such template yet
	Base     int  // the latest version when the form was made; 0 for none
	Kind     string
	Messages []draftMessage // of a completion, one
	Tools    string         // a JSON array; "" for none
	Other    string         // members of the blueprint that have no field: a JSON object
	Provider string
	Model    string
	Settings string // the model's parameters: a JSON object
	Metadata string // members of the metadata that have no field: a JSON object
	Tags     string // parted by commas
	OldTags  string // as they were
	Message  string // of the commit

	Variables string // for the preview: a JSON object
	For       string // the provider whose llm_kwargs the preview shows; "" for the one above
}

// draftMessage is one message of a draft.
type draftMessage struct {
	Role   string
	Format string // f-string, jinja2, or "" for what it is without saying: f-string
	Text   string
	JSON   bool   // Text is the content as JSON, for it is more than one text
	More   string // the other members: a JSON object; "" for none
}

// newDraft is what the editor begins with when there is nothing.
func newDraft(name string) draft {
	return draft{Name: name, New: true, Kind: "chat", Settings: "{}", Variables: "{}", Messages: []draftMessage{
		{Role: "system"}, {Role: "user"},
	}}
}

// draftOf puts a version into the form.
func draftOf(head wire.Template, raw wire.RawTemplate) (draft, error) {
	d := draft{Name: head.Name, Base: head.Latest(), Tags: strings.Join(head.Tags, ", "), Variables: "{}", Settings: "{}"}
	d.OldTags = d.Tags
	var blueprint, metadata, model map[string]json.RawMessage
	if err := json.Unmarshal(raw.Blueprint, &blueprint); err != nil {
		return d, err
	}
	_ = json.Unmarshal(raw.Metadata, &metadata) // null: none
	_ = json.Unmarshal(metadata["model"], &model)
	d.Kind = textOf(blueprint["type"])
	if d.Kind == "chat" {
		var messages []map[string]json.RawMessage
		if err := json.Unmarshal(blueprint["messages"], &messages); err != nil {
			return d, err
		}
		for _, m := range messages {
			d.Messages = append(d.Messages, draftMessageOf(m))
		}
	} else {
		d.Messages = []draftMessage{draftMessageOf(map[string]json.RawMessage{"content": blueprint["content"], "template_format": blueprint["template_format"]})}
	}
	if tools := blueprint["tools"]; tools != nil {
		d.Tools = cmp.Or(layOut(string(tools)), string(tools))
	}
	own := []string{"type", "messages", "tools", "input_variables"}
	if d.Kind != "chat" {
		own = []string{"type", "content", "template_format", "tools", "input_variables"}
	}
	d.Other = rest(blueprint, own...)
	d.Provider, d.Model = textOf(model["provider"]), textOf(model["name"])
	if p := model["parameters"]; p != nil {
		d.Settings = cmp.Or(layOut(string(p)), string(p))
	}
	if more := rest(model, "provider", "name", "parameters"); more != "" {
		metadata["model"] = json.RawMessage(more)
	} else {
		delete(metadata, "model")
	}
	d.Metadata = rest(metadata)
	return d, nil
}

func draftMessageOf(m map[string]json.RawMessage) draftMessage {
	d := draftMessage{Role: textOf(m["role"]), Format: textOf(m["template_format"]),
		More: rest(m, "role", "content", "template_format", "input_variables")}
	var blocks []map[string]json.RawMessage
	switch content := m["content"]; {
	case content == nil || string(content) == "null":
	case json.Unmarshal(content, &blocks) == nil && len(blocks) == 1 && len(blocks[0]) == 2 && textOf(blocks[0]["type"]) == "text":
		d.Text = textOf(blocks[0]["text"])
	default:
		d.Text, d.JSON = cmp.Or(layOut(string(content)), string(content)), true
	}
	return d
}

// textOf is what a JSON string says; "" for anything else.
func textOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// rest is an object without some members, laid out; "" if none are left.
func rest(o map[string]json.RawMessage, but ...string) string {
	left := maps.Clone(o)
	for _, name := range but {
		delete(left, name)
	}
	if len(left) == 0 {
		return ""
	}
	return layOut(string(encoded(left)))
}

// encoded is v as JSON.
func encoded(v any) json.RawMessage {
	raw, _ := jsonscan.Marshal(v) // of maps, texts and JSON that was checked
	return raw
}

// draftMessagesMax bounds the messages that a form may have.
const draftMessagesMax = 1000

// readDraft reads the form.
func readDraft(f url.Values) draft {
	get := func(name string) string { return strings.ReplaceAll(f.Get(name), "\r\n", "\n") } // browsers send CRLF
	base, _ := strconv.Atoi(f.Get("base"))
	d := draft{
		Name: strings.TrimSpace(get("name")), New: f.Get("new") == "true", Base: base, Kind: get("kind"),
		Tools: get("tools"), Other: get("other"), Provider: strings.TrimSpace(get("provider")), Model: strings.TrimSpace(get("model")),
		Settings: get("settings"), Metadata: get("metadata"), Tags: get("tags"), OldTags: get("oldtags"), Message: get("message"),
		Variables: get("variables"), For: get("for"),
	}
	at := func(name string, i int) string {
		if values := f[name]; i < len(values) {
			return strings.ReplaceAll(values[i], "\r\n", "\n")
		}
		return ""
	}
	for i := range min(len(f["text"]), draftMessagesMax) {
		d.Messages = append(d.Messages, draftMessage{at("role", i), at("format", i), at("text", i), at("json", i) == "true", at("more", i)})
	}
	return d
}

// change carries out what a button of the form asks for.
func (d *draft) change(do string) {
	what, at, _ := strings.Cut(do, "-")
	i, err := strconv.Atoi(at)
	inside := err == nil && i >= 0 && i < len(d.Messages)
	switch {
	case what == "add" && len(d.Messages) < draftMessagesMax:
		role := "user"
		if n := len(d.Messages); n > 0 && d.Messages[n-1].Role == "user" {
			role = "assistant"
		}
		d.Messages = append(d.Messages, draftMessage{Role: role})
	case what == "remove" && inside && len(d.Messages) > 1:
		d.Messages = slices.Delete(d.Messages, i, i+1)
	case what == "up" && inside && i > 0:
		d.Messages[i-1], d.Messages[i] = d.Messages[i], d.Messages[i-1]
	case what == "chat" && d.Kind != "chat":
		d.Kind = "chat"
		for i := range d.Messages {
			d.Messages[i].Role = cmp.Or(d.Messages[i].Role, "user")
		}
	case what == "completion" && d.Kind == "chat" && len(d.Messages) > 0:
		var texts []string
		for _, m := range d.Messages {
			if !m.JSON && m.Text != "" {
				texts = append(texts, m.Text)
			}
		}
		d.Kind, d.Messages = "completion", []draftMessage{{Format: d.Messages[0].Format, Text: strings.Join(texts, "\n\n")}}
	}
}

// object reads a field of JSON that must be an object; an empty one is none.
func (d *draft) object(field, text string, faults *[]wire.FieldError) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if strings.TrimSpace(text) == "" {
		return out
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil || out == nil {
		*faults = append(*faults, wire.FieldError{Field: field, Reason: jsonReason("an object, as {\"name\": 1}", err)})
		return map[string]json.RawMessage{}
	}
	return out
}

func jsonReason(what string, err error) string {
	if err == nil {
		return "must be " + what
	}
	return "must be " + what + ": " + strings.TrimPrefix(err.Error(), "json: ")
}

// publish is what the draft publishes. wire.CodeInvalid names the fields that are no JSON, or what else is wrong before the registry
// looks at it.
func (d *draft) publish() (wire.Publish, error) {
	var faults []wire.FieldError
	blueprint := d.object("Other settings", d.Other, &faults)
	var messages []json.RawMessage
	for i, m := range d.Messages {
		o := d.object("Message "+strconv.Itoa(i+1)+", more", m.More, &faults)
		if d.Kind == "chat" {
			o["role"] = encoded(m.Role)
		}
		if m.Format != "" {
			o["template_format"] = encoded(m.Format)
		}
		switch optional := m.Role == "assistant" || m.Role == "function" || m.Role == "placeholder"; {
		case m.JSON && !json.Valid([]byte(m.Text)):
			faults = append(faults, wire.FieldError{Field: "Message " + strconv.Itoa(i+1), Reason: "must be JSON: a list of blocks"})
		case m.JSON:
			o["content"] = json.RawMessage(m.Text)
		case m.Text != "" || !optional:
			o["content"] = encoded([]map[string]string{{"type": "text", "text": m.Text}})
		}
		messages = append(messages, encoded(o))
		if d.Kind != "chat" {
			maps.Copy(blueprint, o)
		}
	}
	if blueprint["type"] = encoded(d.Kind); d.Kind == "chat" {
		blueprint["messages"] = encoded(messages)
	}
	if tools := strings.TrimSpace(d.Tools); tools != "" {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(tools), &list); err != nil {
			faults = append(faults, wire.FieldError{Field: "Tools", Reason: jsonReason("a list, as [{\"type\": \"function\", ...}]", err)})
		}
		blueprint["tools"] = json.RawMessage(tools)
	}
	metadata := d.metadata(&faults)
	if faults != nil {
		return wire.Publish{}, wire.Invalid(faults...)
	}
	body := map[string]any{"prompt_name": d.Name, "prompt_template": blueprint, "commit_message": d.Message}
	if metadata != nil {
		body["metadata"] = metadata
	}
	if d.Tags != d.OldTags {
		body["tags"] = tagsOf(d.Tags)
	}
	object, err := wire.ParseObject(encoded(body))
	if err != nil {
		return wire.Publish{}, err
	}
	p, err := wire.DecodeOldPublish(object)
	p.Base = &d.Base
	return p, err
}

// metadata puts the fields about the model into the metadata; nil if there is nothing.
func (d *draft) metadata(faults *[]wire.FieldError) map[string]json.RawMessage {
	metadata := d.object("Other metadata", d.Metadata, faults)
	model := map[string]json.RawMessage{}
	if more, ok := metadata["model"]; ok { // what of the model has no field
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

func tagsOf(text string) []string {
	tags := []string{}
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}
