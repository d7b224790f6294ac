package templates

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// typed returns a draft as the form that a browser sends.
func typed(d draft) url.Values {
	f := url.Values{
		"name":      {d.Name},
		"new":       {strconv.FormatBool(d.New)},
		"base":      {strconv.Itoa(d.Base)},
		"kind":      {d.Kind},
		"tools":     {d.Tools},
		"other":     {d.Other},
		"provider":  {d.Provider},
		"model":     {d.Model},
		"settings":  {d.Settings},
		"metadata":  {d.Metadata},
		"tags":      {d.Tags},
		"oldtags":   {d.OldTags},
		"message":   {d.Message},
		"variables": {d.Variables},
		"for":       {d.For},
	}
	for _, m := range d.Messages {
		f.Add("role", m.Role)
		f.Add("format", m.Format)
		f.Add("text", m.Text)
		f.Add("json", strconv.FormatBool(m.JSON))
		f.Add("more", m.More)
	}

	return f
}

func TestWhatTheEditorHasNoFieldForOutlivesIt(t *testing.T) {
	for name, c := range map[string]struct{ blueprint, metadata string }{
		"a chat": {`{"type":"chat","messages":[` +
			`{"role":"system","content":[{"type":"text","text":"a\n b <&> {x}"}]},` +
			`{"role":"user","template_format":"jinja2","content":[{"type":"text","text":"{{ y }}"}]}]}`,
			`{"model":{"provider":"openai","name":"gpt-4o","api_type":"responses",` +
				`"parameters":{"temperature":0.40,"seed":12345678901234567890}},"owner":"ann"}`},
		"tools, calls and images": {`{"type":"chat","tool_choice":"auto",` +
			`"tools":[{"type":"function","function":{"name":"f"}}],"messages":[
			{"role":"assistant","tool_calls":[` +
			`{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"ok"}]},
			{"role":"placeholder","name":"history"},` +
			`{"role":"user","content":[{"type":"text","text":"see"},` +
			`{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]}]}`, `null`},
		"a completion": {`{"type":"completion","content":[{"type":"text","text":"Say {x}"}],` +
			`"template_format":"f-string","extra":1}`, `null`},
		"an image's text": {`{"type":"completion","content":[{"type":"text","text":"x","cache":true}]}`, `{"a":[1]}`},
	} {
		raw := wire.RawTemplate{
			Blueprint: json.RawMessage(c.blueprint),
			Metadata:  json.RawMessage(c.metadata),
		}
		d, err := draftFrom(wire.Template{Name: "n", Tags: []string{"a, b", "c"}}, raw)
		if err != nil {
			t.Fatal(name, err)
		}

		back := readDraft(typed(d))
		p, err := back.publish()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		if p.Metadata == nil {
			p.Metadata = json.RawMessage("null")
		}
		if !same(p.Blueprint, raw.Blueprint) || !same(p.Metadata, raw.Metadata) ||
			p.Tags != nil || *p.Base != 0 {
			t.Errorf("%s became\n%s\n%s, tags %q", name, p.Blueprint, p.Metadata, p.Tags)
		}
	}
}

// same reports whether two texts are the same JSON.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func TestTheEditorNamesFieldsThatAreNoJSON(t *testing.T) {
	d := newDraft("n")
	d.Settings, d.Tools, d.Metadata, d.Messages[0].More = "[1]", "{}", "nonsense", "null"

	_, err := d.publish()
	var fields []string
	for _, f := range wire.AsError(err).Fields {
		fields = append(fields, f.Field)
	}

	want := []string{"Message 1, more", "Tools", "Other metadata", "Settings"}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("%v names the fields %q, want %q", err, fields, want)
	}
}

func FuzzADraftIsReadOrRefused(f *testing.F) {
	f.Add("chat", "user", "hi {x}", `{"a":1}`, `{"model":{}}`, "add")
	f.Add("completion", "", "[", "null", `{"model":1}`, "remove-0")

	f.Fuzz(func(t *testing.T, kind, role, text, more, metadata, do string) {
		d := readDraft(url.Values{
			"name": {"n"}, "kind": {kind}, "role": {role}, "text": {text}, "json": {"true"}, "more": {more},
			"metadata": {metadata}, "tools": {more}, "other": {more},
		})
		d.apply(do)
		if p, err := d.publish(); err == nil && !json.Valid(p.Blueprint) {
			t.Errorf("the draft publishes invalid JSON: %s", p.Blueprint)
		}
	})
}

// A format beside the messages is read by nothing. The editor says so, and moves it.
func TestAFormatInTheWrongPlaceIsMovedToTheMessages(t *testing.T) {
	d := newDraft("x")
	d.Other = `{"template_format": "jinja2", "tool_choice": "auto"}`
	d.Messages[0].Format = "f-string"
	if !d.misplaced() {
		t.Error("it is not noticed")
	}
	d.apply("format")
	if d.Messages[0].Format != "f-string" || d.Messages[1].Format != "jinja2" || d.misplaced() {
		t.Errorf("the messages are %+v, the other settings %s", d.Messages, d.Other)
	}
	if want := `{"tool_choice":"auto"}`; strings.Join(strings.Fields(d.Other), "") != want {
		t.Errorf("left is %s, want %s", d.Other, want)
	}

	// A completion has its format there.
	d.Kind, d.Other = "completion", `{"template_format": "jinja2"}`
	if d.apply("format"); d.misplaced() || d.Other == "" {
		t.Errorf("of a completion it is moved: %q", d.Other)
	}
}
