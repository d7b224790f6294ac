package render_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// shelf holds templates by reference.
type shelf map[string]string

func (s shelf) resolve(ref render.Snippet) (render.ResolvedSnippet, error) {
	blueprint, ok := s[ref.String()]
	if !ok {
		return render.ResolvedSnippet{}, errors.New("no " + ref.String())
	}
	checked, faults := render.Check(json.RawMessage(blueprint))
	if faults != nil {
		return render.ResolvedSnippet{}, errors.New("faults")
	}
	version := 7
	if ref.Version > 0 {
		version = ref.Version
	}
	return render.ResolvedSnippet{Name: ref.Name, Version: version, Blueprint: checked}, nil
}

func completion(text string) string {
	return fmt.Sprintf(`{"content":%q}`, text)
}

func TestSnippetsAreFoundAndExpanded(t *testing.T) {
	s := shelf{
		"tone":                  completion("Be {mood}."),
		"tone@version_number:2": completion("Be calm."),
		"tone@label:prod":       completion("Be brisk, @@@sub/name@@@"),
		"sub/name":              completion("dear {who}."),
		"a@b":                   completion("at"),
		"empty":                 completion(""),
		"loud":                  `{"content":"{{ mood|upper }}","template_format":"jinja2"}`,
	}

	label := "prod"
	for _, c := range []struct {
		name, blueprint, want string
		refs                  []render.Snippet
		used                  []wire.UsedSnippet
	}{
		{"nothing to expand", completion("a @@ b @@@"),
			`{"content":[{"type":"text","text":"a @@ b @@@"}],"type":"completion","input_variables":[]}`, nil, nil},
		{"by name, with its variables", completion("@@@tone@@@ Now {go}."),
			`{"content":[{"type":"text","text":"Be {mood}. Now {go}."}],"type":"completion",` +
				`"input_variables":["go","mood"]}`,
			[]render.Snippet{{Name: "tone"}}, []wire.UsedSnippet{{Name: "tone", Version: 7}}},
		{"by version and label, within one another, each told once",
			chat(`{"role":"system","content":"@@@tone@label:prod@@@@@@tone@version_number:2@@@` +
				`@@@tone@version_number:2@@@"}`),
			`{"type":"chat","messages":[{"role":"system","content":[{"type":"text",` +
				`"text":"Be brisk, dear {who}.Be calm.Be calm."}],"input_variables":["who"]}],` +
				`"input_variables":["who"]}`,
			[]render.Snippet{{Name: "tone", Label: "prod"}, {Name: "tone", Version: 2}},
			[]wire.UsedSnippet{
				{Name: "tone", Version: 7, Label: &label}, {Name: "sub/name", Version: 7}, {Name: "tone", Version: 2},
			}},
		{"in image urls; a name with an @; an empty text", `{"content":[{"image_url":{"url":"@@@a@b@@@@@@empty@@@"}}]}`,
			`{"content":[{"image_url":{"url":"at"},"type":"image_url"}],"type":"completion","input_variables":[]}`,
			[]render.Snippet{{Name: "a@b"}, {Name: "empty"}},
			[]wire.UsedSnippet{{Name: "a@b", Version: 7}, {Name: "empty", Version: 7}}},
		{"fences that are none", completion("@@@ x@@@ @@@a\nb@@@ @@@t@version_number:0@@@ @@@t@label:@@@ @@@empty@@@"),
			`{"content":[{"type":"text",` +
				`"text":"@@@ x@@@ @@@a\nb@@@ @@@t@version_number:0@@@ @@@t@label:@@@ "}],` +
				`"type":"completion","input_variables":[]}`,
			[]render.Snippet{{Name: "empty"}}, []wire.UsedSnippet{{Name: "empty", Version: 7}}},
		{"jinja2 within jinja2", `{"content":"@@@loud@@@!","template_format":"jinja2"}`,
			`{"content":[{"type":"text","text":"{{ mood|upper }}!"}],"template_format":"jinja2",` +
				`"type":"completion","input_variables":["mood"]}`,
			[]render.Snippet{{Name: "loud"}}, []wire.UsedSnippet{{Name: "loud", Version: 7}}},
	} {
		checked, faults := render.Check(json.RawMessage(c.blueprint))
		if faults != nil {
			t.Fatal(faults)
		}
		if diff := cmp.Diff(c.refs, render.Snippets(checked)); diff != "" {
			t.Errorf("%s: references (-want +got):\n%s", c.name, diff)
		}

		expanded, err := render.Expand("top", checked, s.resolve)
		got, used := expanded.Blueprint, expanded.Used
		if err != nil || string(got) != c.want {
			t.Errorf("%s: error %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
		if diff := cmp.Diff(c.used, used); diff != "" {
			t.Errorf("%s: used (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestSnippetsThatCannotBeExpanded(t *testing.T) {
	s := shelf{
		"a": completion("@@@b@@@"), "b": completion("@@@c@@@"), "c": completion("@@@b@@@"),
		"home": completion("@@@top@@@"), "top": completion("x"),
		"chat": chat(`{"role":"user","content":"x"}`), "picture": `{"content":[{"image_url":{"url":"x"}}]}`,
		"loud": `{"content":"{{ x }}","template_format":"jinja2"}`,
		"big":  completion(strings.Repeat("x", 1<<20)),
	}

	for i := range 20 {
		s[fmt.Sprint("deep", i)] = completion(fmt.Sprintf("@@@deep%d@@@", i+1))
	}

	for text, want := range map[string]string{
		"@@@a@@@":       "the snippets go in a circle: b -> c -> b; take one of them out",
		"@@@home@@@":    "the snippets go in a circle: top -> home -> top; take one of them out",
		"@@@chat@@@":    "chat is a chat, and only a completion can be a snippet",
		"@@@picture@@@": `picture cannot be a snippet: its content[0] is "image_url", and a snippet is text`,
		"@@@loud@@@": "content[0] is in f-string, and the snippet loud in jinja2; " +
			"give both the same template_format",
		"@@@deep0@@@":                      "the snippets are nested deeper than 16",
		strings.Repeat("@@@big@@@", 5):     "the snippets in content[0] are longer than 4 MiB together",
		strings.Repeat("@@@top2@@@", 1001): "content[0] uses more than 1000 snippets",
	} {
		s["top2"] = completion("")
		checked, _ := render.Check(json.RawMessage(completion(text)))
		expanded, err := render.Expand("top", checked, s.resolve)
		if !wire.IsCode(err, wire.CodeInvalid) || !strings.Contains(wire.AsError(err).Fields[0].Reason, want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
		if string(expanded.Blueprint) != string(checked) {
			t.Errorf("%.40s: half of it was expanded", text)
		}
	}

	checked, _ := render.Check(json.RawMessage(completion("@@@gone@@@")))
	if _, err := render.Expand("top", checked, s.resolve); err == nil || err.Error() != "no gone" {
		t.Errorf("a reference that leads nowhere: %v", err)
	}
}
