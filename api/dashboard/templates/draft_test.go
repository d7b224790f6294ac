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
	for _, t := range d.Tools {
		f.Add("tool-name", t.Name)
		f.Add("tool-description", t.Description)
		f.Add("tool-parameters", t.Parameters)
		f.Add("tool-more", t.More)
		f.Add("tool-json", t.JSON)
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
			`"tools":[{"type":"function","function":{"name":"f","description":"a <b>","strict":true,` +
			`"parameters":{"type":"object","properties":{"n":{"enum":[12345678901234567890]}}}}},` +
			`{"type":"function","function":{"name":"g","description":null}},` +
			`{"type":"web_search","filters":{"a":[1]}},{"type":"function","function":{"name":"h"},"x":1}],"messages":[
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
	d.Settings, d.Metadata, d.Messages[0].More = "[1]", "nonsense", "null"
	d.Tools = []draftTool{{Parameters: "{\n  x}", More: "[]"}, {JSON: "{]"}}

	_, err := d.publish()
	var fields []string
	for _, f := range wire.AsError(err).Fields {
		fields = append(fields, f.Field)
	}

	want := []string{"Message 1, more", "Tool 1, more", "Tool 1, parameters", "Tool 2", "Other metadata", "Settings"}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("%v names the fields %q, want %q", err, fields, want)
	}
	for field, want := range map[string]string{
		"prompt_version.prompt_template.tools[0].function.name": "Tool 1 name",
		"prompt_template.messages[1].role":                      "Message 2 role",
		"release_labels[0]":                                     "Label",
		"metadata.model":                                        "metadata.model",
	} {
		if got := plainField(field); got != want {
			t.Errorf("%s is shown as %q, want %q", field, got, want)
		}
	}
	if !strings.Contains(err.Error(), "in line 2, column 3") {
		t.Errorf("%v does not name the place", err)
	}
}

func TestToolsAreAddedMovedAndRemoved(t *testing.T) {
	d := newDraft("n")
	for _, button := range []string{
		"tool-add", "tool-json", "tool-add", "tool-up-1", "tool-up-0", "tool-remove-2", "tool-remove-9", "tool-x",
	} {
		d.apply(button)
	}
	if want := []draftTool{{JSON: newTool}, {}}; !reflect.DeepEqual(d.Tools, want) {
		t.Fatalf("the tools are %+v", d.Tools)
	}

	d.Tools[0].JSON = ` {"type": "web_search"}`
	d.Tools[1] = draftTool{Name: "f"}
	p, err := d.publish()
	want := `[{"type":"web_search"},{"type":"function","function":{"name":"f"}}]`
	var b struct{ Tools json.RawMessage }
	if json.Unmarshal(p.Blueprint, &b) != nil || !same(b.Tools, json.RawMessage(want)) {
		t.Errorf("published are %s, %v", b.Tools, err)
	}
}

func TestASlipInAToolsSchemaIsNamedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"anyOf": [true, {"$ref": "#/a"}]}},
			"required": ["a"], "enum": [1], "additionalProperties": false, "x-own": {"type": 1}}`, ""},
		{"{\n  \"type\": \"objekt\"}", `line 2, column 11: "objekt" is not one of the types string, number, integer, ` +
			"boolean, object, array, null"},
		{`{"properties": {"a": {"items": {"not": []}}}}`,
			`line 1, column 40: must be a schema, such as {"type": "string"}`},
		{`{"type": [1]}`, "line 1, column 11: must be a type or a list of types"},
		{`{"required": "a"}`, "line 1, column 14: must be a list of strings"},
		{`{"required": [1]}`, "line 1, column 15: must be a string"},
		{`{"enum": {}}`, "line 1, column 10: must be a list of values"},
		{`{"properties": ["a"]}`, "line 1, column 16: must be an object with a schema for each name"},
		{`{"anyOf": {}}`, "line 1, column 11: must be a list of schemas"},
		{`{"not": "string"}`, `line 1, column 9: must be a schema, such as {"type": "string"}`},
		{`{"description": ["ü"], "title":1}`,
			"line 1, column 17: must be a string; line 1, column 32: must be a string"},
		{`{"type": `, ""}, // is no JSON, which is said elsewhere
	} {
		d := draft{Tools: []draftTool{{JSON: newTool}, {Parameters: c.schema}}}
		var got []string
		for _, f := range d.schemaFindings() {
			place, ok := strings.CutPrefix(f.Place, "Tool 2, parameters, ")
			if !ok || f.Field != "parameters-1" {
				t.Errorf("%s: the finding is %+v", c.schema, f)
			}
			got = append(got, place+": "+f.Message)
		}
		if all := strings.Join(got, "; "); all != c.want {
			t.Errorf("%s: found is %s, want %s", c.schema, all, c.want)
		}
	}
}

func FuzzADraftIsReadOrRefused(f *testing.F) {
	f.Add("chat", "user", "hi {x}", `{"a":1}`, `{"model":{}}`, "add")
	f.Add("completion", "", "[", "null", `{"model":1}`, "remove-0")

	f.Fuzz(func(t *testing.T, kind, role, text, more, metadata, do string) {
		d := readDraft(url.Values{
			"name": {"n"}, "kind": {kind}, "role": {role}, "text": {text}, "json": {"true"}, "more": {more},
			"metadata": {metadata}, "other": {more},
			"tool-name": {text, text}, "tool-parameters": {more, more}, "tool-more": {metadata, metadata},
			"tool-json": {more, ""},
		})
		d.apply(do)
		if p, err := d.publish(); err == nil && !json.Valid(p.Blueprint) {
			t.Errorf("the draft publishes invalid JSON: %s", p.Blueprint)
		}
	})
}

// A format beside the messages is read by nothing, which the editor says.
func TestAFormatInTheWrongPlaceIsNoticed(t *testing.T) {
	d := newDraft("x")
	if d.Other = `{"template_format": "jinja2", "tool_choice": "auto"}`; !d.Misplaced() {
		t.Error("it is not noticed")
	}
	if d.Kind = "completion"; d.Misplaced() { // which has its format there
		t.Error("of a completion it is noticed")
	}
}
