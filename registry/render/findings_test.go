package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// findings returns the findings of a blueprint, as a publish does.
func findings(t testing.TB, blueprint, metadata string, s shelf) []wire.Finding {
	t.Helper()
	checked, faults := render.Check(json.RawMessage(blueprint))
	if faults != nil {
		t.Fatalf("%s: %v", blueprint, faults)
	}
	expanded, err := render.Expand("top", checked, s.resolve)
	if err != nil {
		t.Fatal(err)
	}
	return expanded.Findings(json.RawMessage(metadata))
}

func TestFindingsTellLineAndColumn(t *testing.T) {
	const compute = "; let the app compute the value and give it as a variable"
	for _, c := range []struct{ format, text, want string }{
		{"f-string", "plain {a} {{}}", ""},
		{"f-string", "Hi\nyou {ticket", `2:5: has a { that is not closed; write {{ and }} for braces`},
		{"f-string", "é😀 }", `1:4: has a single brace; write {{ and }} for braces`},
		{"f-string", "a\r\nb\r\n{", `3:1: has a single brace; write {{ and }} for braces`},
		{"f-string", "{a}\n" + `{"name": 1}`,
			`2:1: has {"name"}, which is no variable's name; write {{ and }} for braces`},
		{"f-string", "{a}{b:>{c:{d:{e}}}}", `1:4: has a field within a field's format spec, which is not supported`},
		{"f-string", "{a} {b:x}", `1:5: has the format spec "x", which is not supported; write {{ and }} for braces`},
		{"jinja2", "{{ a }}{% if a %}{% endif %}", ""},
		{"jinja2", "x\n  {% for a in b %}\n{% if a %}{% endif %}\n",
			`2:3: has a {% for %} that is not closed with {% endfor %}`},
		{"jinja2", "{% if a %}\n{% else %}", `1:1: has a {% if %} that is not closed with {% endif %}`},
		{"jinja2", "a\rb\r\né {{ a", `3:3: has a {{ that is not closed with }}`},
		{"jinja2", "a {# b", `1:3: has a comment that is not closed with #}`},
		{"jinja2", "a\n {%- raw %} {% if %}", `2:2: has a raw block that is not closed with {% endraw %}`},
		{"jinja2", "{% raw %}\n\n{% endraw %}{% endif %}", `3:13: has the tag endif, which does not belong there`},
		{"jinja2", "{{ 'a\nb' ~ }}", `2:6: has "}}" where a value is expected`},
		{"jinja2", "{{ a\n | frobnicate }}", `2:4: uses the filter frobnicate, which is not supported` + compute},
		{"jinja2", "{{ 'x", `1:4: has a string that is not closed`},
		{"jinja2", "{{ a ! b }}", `1:6: has a '!' that is not part of an expression`},
		{"jinja2", "{{ a|map('gone')|list }}", `1:6: uses the filter gone, which is not supported` + compute},
		{"jinja2", "{{ a|selectattr('x', 'gone')|list }}", `1:6: uses the test gone, which is not supported` + compute},
		{"jinja2", "{{ a|map(attribute='gone')|list }}{{ a|select|list }}{{ a|selectattr('x')|list }}" +
			"{{ a|map('upper')|list }}", ""},
	} {
		blueprint, _ := json.Marshal(map[string]any{"template_format": c.format, "content": c.text})
		var got, want []string
		for _, f := range findings(t, string(blueprint), "null", nil) {
			got = append(got, f.String())
		}
		if c.want != "" {
			want = []string{"content[0].text:" + c.want}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestFindingsOfAWholeBlueprint(t *testing.T) {
	blueprint := chat(`{"role":"system","content":"{ok}"},{"role":"user","content":[{"type":"text","text":"a"},` +
		`{"type":"text","text":"{"},{"type":"image_url","image_url":{"url":"https://x/{"}}]},` +
		`{"role":"placeholder","name":"p","content":"{"},` +
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"{"},"image_variable":"v"}]},` +
		`{"role":"assistant","content":"{% if %}","template_format":"jinja2"}`)
	const single = "has a single brace; write {{ and }} for braces"
	want := []wire.Finding{
		{Path: "messages[1].content[1].text", Line: 1, Column: 1, Message: single},
		{Path: "messages[1].content[2].image_url.url", Line: 1, Column: 11, Message: single},
		{Path: "messages[4].content[0].text", Line: 1, Column: 7, Message: `has "%}" where a value is expected`},
	}
	if diff := cmp.Diff(want, findings(t, blueprint, "null", nil)); diff != "" {
		t.Error(diff)
	}
}

func TestFindingsOfJoinedSnippetsAreToldWhereTheyWereWritten(t *testing.T) {
	s := shelf{
		"open":  completion("{"),
		"close": completion("}"),
		"long":  completion("many\nlines\nof text"),
		"whole": completion("@@@open@@@"),
	}

	const braces = "write {{ and }} for braces]"
	for text, want := range map[string]string{
		"@@@open@@@name@@@close@@@": "[]",
		"@@@long@@@\nand {":         "[content[0].text:2:5: has a single brace; " + braces,
		"a @@@long@@@\n@@@long@@@ {x y}": "[content[0].text:2:12: has {x y}, " +
			"which is no variable's name; " + braces,
		"say\n @@@open@@@x y@@@close@@@ {": "[content[0].text:2:27: has a single brace; " + braces,
		"@@@long@@@@@@whole@@@": "[content[0].text:1:1: refers to snippets, " +
			"with which the text has a single brace; " + braces,
		"{a} @@@long@@@ @@@long@@@ }@@@close@@@": "[]",
	} {
		if got := fmt.Sprint(findings(t, completion(text), "null", s)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestFindingsOfWhatAProviderHasNoPlaceFor(t *testing.T) {
	model := func(provider string) string { return `{"model":{"provider":"` + provider + `","name":"m"}}` }
	function := chat(`{"role":"user","content":"x"},{"role":"function","name":"f","content":"1"}`)
	for _, c := range []struct{ blueprint, metadata, want string }{
		{function, model("anthropic"), `messages[1]`},
		{function, model("somebody"), ""},
		{function, "null", ""},
		{strings.Replace(function, `"messages":[`, `"messages":[{"role":"placeholder","name":"p"},`, 1),
			model("anthropic"), ""},
	} {
		got := ""
		for _, f := range findings(t, c.blueprint, c.metadata, nil) {
			got += f.Path
		}
		if got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.blueprint, c.metadata, got, c.want)
		}
	}
}

// agrees compares the findings of a text with the warnings of a fetch of it.
func agrees(t rapid.TB, format, text string) {
	t.Helper()
	blueprint, _ := json.Marshal(map[string]any{"type": "completion", "template_format": format, "content": text})
	checked, faults := render.Check(blueprint)
	if faults != nil {
		return // more variables than there may be
	}
	snippet := json.RawMessage(`{"type":"completion","content":[{"type":"text","text":"\n{% if s %}{s"}],` +
		`"template_format":"` + format + `"}`)
	expanded, err := render.Expand("top", checked, func(s render.Snippet) (render.ResolvedSnippet, error) {
		return render.ResolvedSnippet{Name: s.Name, Blueprint: snippet}, nil
	})
	if err != nil {
		return // a circle
	}
	p, err := render.Prepare(expanded.Blueprint, nil)
	if err != nil {
		t.Fatal(err)
	}

	found := expanded.Findings(nil)
	_, warnings, err := p.Kwargs(render.Call{
		Provider:  "openai",
		Model:     "m",
		Variables: raw("a", `"A"`, "l", `[]`),
		Keep:      true,
	})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}

	left := false
	for _, w := range warnings {
		left = left || strings.Contains(w, "was left as it is") && strings.Contains(w, "(line ")
	}

	for _, f := range found {
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
		if f.Line < 1 || f.Line > len(lines) || f.Column < 1 || f.Column > len([]rune(lines[f.Line-1]))+1 {
			t.Fatalf("%q: %v is outside of the text", text, f)
		}
		if strings.Contains(f.Message, "mistake in promptspool") {
			t.Fatalf("%q: %v", text, f)
		}
	}
	if left != (len(found) > 0) {
		t.Fatalf("%q as %s: found %v, but a fetch warns %q", text, format, found, warnings)
	}
}

var agreeWords = []string{
	"{", "}", "{{", "}}", "{a}", "{a", "{{ a }}", "{{ a", "{%", "%}", "{% if a %}", "{% endif %}",
	"{% for x in l %}", "{% endfor %}", "{% set x %}", "{% raw %}", "{% endraw %}", "{#", "#}", "|upper",
	"|gone", "map('gone')", "'", "\n", "\r\n", "\r", "é😀", " ", "x", "@@@s@@@", "@@@", "!r", ":>{a}",
}

func TestFindingsAgreeWithWhatIsRendered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(agreeWords), 0, 8).Draw(t, "words")
		agrees(t, rapid.SampledFrom([]string{"f-string", "jinja2"}).Draw(t, "format"), strings.Join(words, ""))
	})
}

func FuzzFindings(f *testing.F) {
	for _, word := range agreeWords {
		f.Add(word + "\n{a}" + word)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?") // as JSON has it
		agrees(t, "f-string", text)
		agrees(t, "jinja2", text)
	})
}
