package calls_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"promptspool/api/calls"
)

func TestExcerpts(t *testing.T) {
	type excerpts struct {
		Name    string
		Call    json.RawMessage
		In, Out string
	}
	long := strings.Repeat("ä", 300)
	cut := excerpts{"200 characters", json.RawMessage(`{"kwargs":{"prompt":"x` + long +
		`"},"request_response":{"choices":[{"text":"` + long[:398] + ` yes"}]}}`), "x" + long[:398], long[:398]}

	for _, c := range append(cases[excerpts](t, "excerpts.json"), cut) {
		call := calls.Read(c.Call)
		if in, out := call.Excerpts(); in != c.In || out != c.Out {
			t.Errorf("%s: the excerpts are %q and %q, want %q and %q", c.Name, in, out, c.In, c.Out)
		}
	}
}

func TestAnExcerptHasNoMarksOfMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"## The **week**\n\n- **10** `orders`\n\t* less":          "The week 10 orders less",
		"> ## Said [Ann](https://x.org/a \"A\"), ![a cat](c.png)": "Said Ann, !a cat",
		"| Day | Count |\n|---|---:|\n| Mon | 3 |":                "Day Count Mon 3",
		"```go\nx := a[i] * b*c\n```\nTitle\n=====\n":             "x := a[i] * b*c Title",
		"#1 -5 [1] [x](no end":                                    "#1 -5 [1] [x](no end",
		"{\n  \"a\": [1,\r\n\t2]\n}":                              `{ "a": [1, 2] }`,
		"*It* is *not so* a * b, f(*p, *q), 2*3*4, *":             "It is not so a * b, f(*p, *q), 2*3*4, *",
		"- - # deep": "deep",
		"👍\n!":       "👍 !",
		"---":        "",
	} {
		if got := calls.Excerpt(text); got != want {
			t.Errorf("%q has the excerpt %q, want %q", text, got, want)
		}
	}
}

// FuzzExcerpt checks that the excerpt of any text is one short line of its characters, in their
// order.
func FuzzExcerpt(f *testing.F) {
	f.Add("# a **b** [c](d)\n\n- `e` \u2028 ä👍")
	f.Add(strings.Repeat("[](", 3000))

	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		got := calls.Excerpt(text)
		fields := strings.Join(strings.Fields(got), " ")
		if got != fields || !utf8.ValidString(got) || utf8.RuneCountInString(got) > calls.ExcerptRunesMax {
			t.Fatalf("%q has the excerpt %q", text, got)
		}

		rest := text
		for _, r := range strings.ReplaceAll(got, " ", "") {
			at := strings.IndexRune(rest, r)
			if at < 0 {
				t.Fatalf("%q has the excerpt %q, which is not in it", text, got)
			}
			rest = rest[at+utf8.RuneLen(r):]
		}
	})
}
