package templates

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
	got, err := parseTemplate("team/greet.yaml", "team/greet", []byte(`
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

	equal(t, "name", got.template.Name, "team/greet")
	equal(t, "tags", got.template.Tags, []string{"demo", "2"})
	equal(t, "metadata", string(got.template.Metadata), `{"model":{"provider":"openai","name":"gpt-4o-mini",`+
		`"parameters":{"temperature":0.20,"max_tokens":1000,"seed":16,"stop":["\n","no","2026-01-01"]}},"owner":"ann"}`)
	want := `{"type":"chat","messages":[
		{"role":"system","content":[{"type":"text","text":"You are brief."}],"input_variables":[]},
		{"role":"user","name":null,"content":[
			{"type":"text","text":"{q}"},{"type":"image_url","image_url":{"url":"{u}"}}],"input_variables":["q","u"]}],
		"input_variables":["q","u"]}`
	if !registry.SameJSON(got.template.Blueprint, json.RawMessage(want)) {
		t.Errorf("blueprint %s", got.template.Blueprint)
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
			"f.yaml:2: prompt_template is the whole of it; nothing else of the prompt can stand beside it"},
		{"content: a\nmodel: {name: x}\nmetadata:\n  model: {name: y}\n", "f.yaml:4: model is given twice"},
		{"content: !!binary aGk=\n", "f.yaml:1: content: the tag !!binary is not read here"},
		{"content: a\nmodel: {parameters: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}\n",
			"f.yaml:2: nests deeper than 100"},
	} {
		_, err := parseTemplate("f.yaml", "f", []byte(tt.content))

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
			Name:      "n",
			Tags:      rapid.SliceOf(text).Draw(t, "tags"),
			Blueprint: checked,
			Metadata:  raw(metadata),
		}
		content, err := templateText(want, false)
		if err != nil {
			t.Fatal(err)
		}

		got, err := parseTemplate("n.yaml", "n", content)
		if err != nil || !sameContent(got.template, want) ||
			len(want.Tags) > 0 && !cmp.Equal(got.template.Tags, want.Tags) {
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
		file, err := parseTemplate("f.yaml", "f", content)
		if err != nil {
			return
		}
		text, err := templateText(file.template, file.template.Name != "f")
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseTemplate("f.yaml", "f", text)
		if err != nil || !sameContent(back.template, file.template) || back.template.Name != file.template.Name {
			t.Fatalf("%q became %q, which is read as %+v, %v", content, text, back, err)
		}
	})
}

func TestALineDiffTurnsTheOneTextIntoTheOther(t *testing.T) {
	diff, added, removed := lineDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n")
	equal(t, "diff", diff, "@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n")
	equal(t, "counts", []int{added, removed}, []int{2, 1})

	line := rapid.SampledFrom([]string{"a", "b", "c", ""})
	text := rapid.Custom(func(t *rapid.T) string {
		var text strings.Builder
		for _, l := range rapid.SliceOf(line).Draw(t, "lines") {
			text.WriteString(l + "\n")
		}
		return text.String()
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		diff, _, _ := lineDiff(before, after)
		if got := patched(t, before, diff); got != after {
			t.Fatalf("%q and this diff give %q, not %q:\n%s", before, got, after, diff)
		}
	})
}

// patched applies a diff to a text, as patch does, and checks the heads of its hunks.
func patched(t *rapid.T, text, diff string) string {
	lines := splitLines(text)
	var out []string
	at, ends := 0, [2]int{} // of the hunk, in each text

	for _, l := range splitLines(diff) {
		if numbers, ok := strings.CutPrefix(l, "@@ "); ok {
			if at != ends[0] || len(out) != ends[1] {
				t.Fatalf("a hunk ends at lines %d and %d, its head says %v", at, len(out), ends)
			}
			from, to := lineRangeOf(t, numbers, 0), lineRangeOf(t, numbers, 1)
			out = append(out, lines[at:from[0]]...)
			at, ends = from[0], [2]int{from[1], to[1]}
			if len(out) != to[0] {
				t.Fatalf("a hunk begins at line %d, its head says %d", len(out), to[0])
			}
			continue
		}

		if l[0] != '+' {
			if lines[at] != l[1:] {
				t.Fatalf("line %d is %q, the diff says %q", at, lines[at], l[1:])
			}
			at++
		}
		if l[0] != '-' {
			out = append(out, l[1:])
		}
	}

	out = append(out, lines[at:]...)
	if len(out) == 0 {
		return ""
	}

	return strings.Join(out, "\n") + "\n"
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}

	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// lineRangeOf returns where the lines of one side of a hunk's head begin and end, counted
// from 0.
func lineRangeOf(t *rapid.T, head string, side int) [2]int {
	start, count := 0, 1 // a head leaves out the count of one line
	if n, err := fmt.Sscanf(strings.Fields(head)[side][1:], "%d,%d", &start, &count); n == 0 {
		t.Fatal(err)
	}
	if count > 0 {
		start--
	}

	return [2]int{start, start + count}
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
