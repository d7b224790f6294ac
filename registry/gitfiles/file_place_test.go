package gitfiles

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

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
		"content: a {b c}\n":                                   "f.yaml:1:12: content",
		"content: 'it''s {b c}'\n":                             "f.yaml:1:10: content, in line 1, column 6",
		"content: \"a\\n\\u00e9\\\"\\x41 \\U0001F600{b c}\"\n": "f.yaml:1:10: content, in line 2, column 6",
		"content: |\n  a\n\n    {b c}\n  d\n":                  "f.yaml:4:5: content",
		"content: |4-\n      x\n    {b c}\n":                   "f.yaml:3:5: content",
		"content: >\n  one\n  two\n\n  three {b c}\n":          "f.yaml:1:10: content, in line 2, column 7",
		"content: |\r\n  a\r\n  é {b c}\r\n":                   "f.yaml:3:5: content",
		"content: !!str a {b c}\n":                             "f.yaml:1:18: content",
		"content: &x a {b c}\n":                                "f.yaml:1:15: content",
		"prompt_template:\n  content:\n  - text: a {b c}\n":    "f.yaml:3:13: prompt_template.content[0].text",
		"messages:\n- role: user\n  content: a {b c}\n":        "f.yaml:3:14: messages[0].content",
		"messages: [{role: user, content: [{text: '{'}]}]\n":   "f.yaml:1:43: messages[0].content[0].text",
		"content:\n- image_url: {url: \"https://x/{\"}\n":      "f.yaml:2:31: content[0].image_url.url",
		"content: a {b}\n":                                     "",

		"content: one\n  two\n  {b c}\n": "f.yaml:1:10: content, in line 1, column 9",

		"content: \"one\\\n  \\ two\n  {b c}\"\n": "f.yaml:1:10: content, in line 1, column 9",

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

// Whatever style a text is written in, a character in it is found at its place, or not at all.
func TestACharacterOfATextIsNeverFoundElsewhere(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", " ", "\n", "'", `"`, "\\", "é", "😀", "#", ": ", "- ", "\t"})
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 0, 8).Draw(t, "before"), "") + "§" +
			strings.Join(rapid.SliceOfN(word, 0, 4).Draw(t, "after"), "")
		style := rapid.SampledFrom([]yaml.Style{
			0, yaml.LiteralStyle, yaml.FoldedStyle, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle,
		}).Draw(t, "style")
		content, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: "k"}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style},
		}})
		if err != nil {
			t.Fatal(err)
		}
		var document yaml.Node
		if err := yaml.Unmarshal(content, &document); err != nil {
			return // the library cannot read what it wrote: tabs
		}
		n := document.Content[0].Content[1]
		before, _, _ := strings.Cut(n.Value, "§")
		lines := strings.Split(before, "\n")

		line, column, exact := inScalar(content, n, len(lines), len([]rune(lines[len(lines)-1]))+1)
		if !exact {
			return
		}
		at := []rune(strings.Split(string(content), "\n")[line-1])
		if column > len(at) || at[column-1] != '§' {
			t.Fatalf("%q: found at %d:%d", content, line, column)
		}
		found++
	})
	if found == 0 {
		t.Error("no text could be searched")
	}
}
