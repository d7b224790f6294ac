package gitfiles

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/registry"
	"promptspool/registry/render"
)

func TestAFileIsTheTemplateThatTheAPITakes(t *testing.T) {
	got, err := Parse("team/greet.yaml", "team/greet", []byte(`
# Comments are for those who read it.
tags: [demo, "2"]
model:
  provider: openai
  name: gpt-4o-mini
  parameters: {temperature: 0.20, max_tokens: 1_000, seed: 0x10, stop: ["\n", no, 2026-01-01]}
metadata:
  owner: ann
messages:
  - role: system
    content: You are brief.
  - role: user
    name: ~
    content:
      - {type: text, text: "{q}"}
      - {type: image_url, image_url: {url: "{u}"}}
`))
	if err != nil {
		t.Fatal(err)
	}

	equal(t, "name", got.Template.Name, "team/greet")
	equal(t, "tags", got.Template.Tags, []string{"demo", "2"})
	equal(t, "metadata", string(got.Template.Metadata), `{"model":{"provider":"openai","name":"gpt-4o-mini",`+
		`"parameters":{"temperature":0.20,"max_tokens":1000,"seed":16,"stop":["\n","no","2026-01-01"]}},"owner":"ann"}`)
	want := `{"type":"chat","messages":[
		{"role":"system","content":[{"type":"text","text":"You are brief."}],"input_variables":[]},
		{"role":"user","name":null,"content":[
			{"type":"text","text":"{q}"},{"type":"image_url","image_url":{"url":"{u}"}}],"input_variables":["q","u"]}],
		"input_variables":["q","u"]}`
	if !registry.SameJSON(got.Template.Blueprint, json.RawMessage(want)) {
		t.Errorf("blueprint %s", got.Template.Blueprint)
	}
}

func TestFaultsOfAFileAreToldWithTheirLines(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{"", "f.yaml:1: there is no prompt: give messages (of a chat) or content (of a completion)"},
		{"content: a\nmesages: []\n",
			"f.yaml:2: there is no setting \"mesages\" of a template; there are: name, tags, model, metadata, " +
				"prompt_template, type, messages, content, template_format, input_variables, tools, functions, " +
				"tool_choice, function_call"},
		{"content: a\nb: [\n", "f.yaml:2: is not YAML: did not find expected node content"},
		{"content: a\ncontent: b\n", "f.yaml:2: content was set before, in line 1"},
		{"content: a\n---\ncontent: b\n",
			"f.yaml:1: there is more than one document, or something that is not YAML after the first; keep one"},
		{"messages:\n- role: user\n  txt: a",
			"f.yaml:3: there is no setting \"txt\" of messages[0]; there are: role, content, name, template_format, " +
				"input_variables, tool_calls, tool_call_id, function_call, raw_request_display_role"},
		{"messages:\n- role: usr\n", "f.yaml:2: messages[0].role must be one of " +
			"system, user, assistant, function, tool, developer, placeholder"},
		{"content: a\nmodel:\n  parameters:\n    x: .inf\n", "f.yaml:4: model.parameters.x: " +
			".inf is not a number that JSON can hold; put it in quotes if it is a text"},
		{"content: a\nmodel:\n  parameters:\n    base_url: u\n",
			"f.yaml:4: model.parameters.base_url would redirect or authenticate the app's client; " +
				"set it where the app makes its client"},
		{"content: a\nmodel: &m\n  name: x\nmetadata:\n  a: *m\n",
			"f.yaml:5: metadata.a: an alias (*m) is not read here; write the text out, or make it a snippet"},
		{"content: a\ntags: [&t x]\nname: \" a\"\n",
			"f.yaml:3: name must not begin or end with a blank, nor contain control characters"},
		{"content: a\nprompt_template: {content: b}\n",
			"f.yaml:2: prompt_template is the whole prompt; remove the prompt's other settings"},
		{"content: a\nmodel: {name: x}\nmetadata:\n  model: {name: y}\n", "f.yaml:4: model is given twice"},
		{"content: !!binary aGk=\n", "f.yaml:1: content: the tag !!binary is not read here"},
		{"content: a\nmodel: {parameters: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}\n",
			"f.yaml:2: nests deeper than 100"},
	} {
		_, err := Parse("f.yaml", "f", []byte(tt.content))

		if got := fmt.Sprint(err); got != tt.want && !strings.HasPrefix(got, tt.want) || err == nil {
			t.Errorf("%q:\n got %s\nwant %s", tt.content, got, tt.want)
		}
	}
}

// words are texts that YAML could mistake for something else.
var words = []string{
	"", " ", "a", "no", "null", "~", "1", "1e400", "0x10", "2026-01-01", "- a", "a: b", "# a", "{x}", "@@@s@@@",
	"\n", "a\n", "a\nb", " a\nb\n", "a\n\n\n", "\ta\n b", "a \nb", "ä\u2028\ufeffb\n", "\u0085", "\x7f\n",
	"*a", "&a", "!a", "%a", "<<", "|", ">", "'", `"`, "`",
}

func TestEveryTemplateCanBeWrittenAndReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom(words), rapid.String())
		value := rapid.OneOf(
			rapid.Map(text, func(s string) any { return s }),
			rapid.SampledFrom([]any{nil, true, 1.5, 7, []any{}, map[string]any{}, json.Number("1e400")}),
		)

		blueprint := map[string]any{"unknown": value.Draw(t, "unknown")}
		if rapid.Bool().Draw(t, "unlisted") {
			blueprint = map[string]any{}
		}

		if rapid.Bool().Draw(t, "chat") {
			blueprint["type"], blueprint["messages"] = "chat", []any{
				map[string]any{"role": "user", "content": text.Draw(t, "text")},
				map[string]any{"role": "assistant", "content": []any{
					map[string]any{"type": "text", "text": text.Draw(t, "block"), "more": value.Draw(t, "more")},
				}, "input_variables": []any{"v"}},
			}
		} else {
			blueprint["type"], blueprint["content"] = "completion", text.Draw(t, "text")
		}

		metadata := map[string]any{
			text.Draw(t, "key"): value.Draw(t, "metadata"),
			"model":             map[string]any{"parameters": map[string]any{"x": value.Draw(t, "parameter")}},
		}
		raw := func(v any) json.RawMessage {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}

		checked, faults := render.Check(raw(blueprint))
		if faults != nil {
			t.Skip(faults)
		}
		want := wire.Publish{
			PublishedName: wire.PublishedName{
				Name: "n",
				Tags: rapid.SliceOf(text).Draw(t, "tags"),
			},
			PublishedVersion: wire.PublishedVersion{
				Blueprint: checked,
				Metadata:  raw(metadata),
			},
		}
		content, err := Text(want, false)
		if err != nil {
			t.Fatal(err)
		}

		got, err := Parse("n.yaml", "n", content)
		if err != nil || !SameContent(got.Template, want) ||
			len(want.Tags) > 0 && !cmp.Equal(got.Template.Tags, want.Tags) {
			t.Errorf("%s\nwas read back as %+v, %v", content, got, err)
		}
	})
}

func FuzzParseTemplate(f *testing.F) {
	f.Add([]byte("content: a\n"))
	f.Add([]byte("tags: [a]\nmodel: {provider: openai, parameters: {a: [1, .5, 0x1f]}}\n" +
		"messages:\n- role: user\n  content: |\n    a\n\n    b\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("prompt_template: {type: chat, messages: []}\nname: a/b\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Parse("f.yaml", "f", content)
		if err != nil {
			return
		}
		text, err := Text(file.Template, file.Template.Name != "f")
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("f.yaml", "f", text)
		if err != nil || !SameContent(back.Template, file.Template) || back.Template.Name != file.Template.Name {
			t.Fatalf("%q became %q, which is read as %+v, %v", content, text, back, err)
		}
	})
}

func TestNoNameLeavesTheFolder(t *testing.T) {
	for _, name := range []string{
		"../a", "/a", "a//b", ".git/config", "a/./b", `a\b`, "c:d", "a.", strings.Repeat("x", 300),
	} {
		if file, named := defaultPath(wire.TemplateListItem{ID: 7, Name: name}); file != "template-7.yaml" || !named {
			t.Errorf("%s would be written to %s", name, file)
		}
	}
}

func equal(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
