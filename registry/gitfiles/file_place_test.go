package gitfiles

import (
	"strings"
	"testing"

	"promptspool/registry/render"
)

// foundIn returns the findings of a file, with their places in it.
func foundIn(t *testing.T, content string) string {
	t.Helper()
	f, err := Parse("f.yaml", "f", []byte(content))
	if err != nil {
		t.Fatalf("%q: %v", content, err)
	}
	expanded, err := render.Expand("f", f.Template.Blueprint, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, x := range expanded.Findings(f.Template.Metadata) {
		line, _, _ := strings.Cut(strings.Replace(f.Locate(x), " of its text,", "", 1), " has ")
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestAFindingIsToldByItsPlaceInTheFile(t *testing.T) {
	places := map[string]string{
		"content: a {b c}\n":                                   "f.yaml:1:10: content, in line 1, column 3",
		"content: 'it''s {b c}'\n":                             "f.yaml:1:10: content, in line 1, column 6",
		"content: \"a\\n\\u00e9\\\"\\x41 \\U0001F600{b c}\"\n": "f.yaml:1:10: content, in line 2, column 6",
		"content: |\n  a\n\n    {b c}\n  d\n":                  "f.yaml:4:1: content, in line 3, column 3",
		"content: |4-\n      x\n    {b c}\n":                   "f.yaml:3:1: content, in line 2, column 1",
		"content: >\n  one\n  two\n\n  three {b c}\n":          "f.yaml:1:10: content, in line 2, column 7",
		"content: |\r\n  a\r\n  é {b c}\r\n":                   "f.yaml:3:1: content, in line 2, column 3",
		"prompt_template:\n  content:\n  - text: a {b c}\n": "f.yaml:3:11: " +
			"prompt_template.content[0].text, in line 1, column 3",
		"messages:\n- role: user\n  content: a {b c}\n": "f.yaml:3:12: messages[0].content, in line 1, column 3",
		"content:\n- image_url: {url: \"https://x/{\"}\n": "f.yaml:2:20: " +
			"content[0].image_url.url, in line 1, column 11",
		"content: a {b}\n": "",

		"messages:\n- {role: user, content: a}\n- {role: function, name: f, content: a}\n" +
			"model: {provider: anthropic}\n": "f.yaml:3:1: messages[1] gives the result of \"f\", " +
			"which no message before it called; anthropic needs the call as well",
	}

	for content, want := range places {
		if got := foundIn(t, content); got != want {
			t.Errorf("%q:\n got %s\nwant %s", content, got, want)
		}
	}
}
