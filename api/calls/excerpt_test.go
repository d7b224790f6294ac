package calls_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"promptspool/api/calls"
)

func TestExcerpts(t *testing.T) {
	type excerpts struct {
		Name    string
		Call    json.RawMessage
		In, Out string
	}
	long := strings.Repeat("ä", 300)
	cut := excerpts{"200 bytes, cut between two characters", json.RawMessage(`{"kwargs":{"prompt":"x` + long +
		`"},"request_response":{"choices":[{"text":"` + long + `"}]}}`), "x" + long[:198], long[:200]}

	for _, c := range append(cases[excerpts](t, "excerpts.json"), cut) {
		call := calls.Read(c.Call)
		if in, out := call.Excerpts(); in != c.In || out != c.Out {
			t.Errorf("%s: the excerpts are %q and %q, want %q and %q", c.Name, in, out, c.In, c.Out)
		}
	}
}

// Whatever a text is, its excerpt is a bounded part of one of its lines.
func TestAnExcerptIsPartOfALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab ä\n\r\t{`👍\u2028"))).Draw(t, "text")
		text = strings.Repeat(text, rapid.IntRange(1, 60).Draw(t, "times"))
		prompt, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}

		call := calls.Read(json.RawMessage(`{"kwargs":{"prompt":` + string(prompt) + `}}`))
		in, _ := call.Excerpts()
		switch {
		case len(in) > calls.ExcerptBytesMax || !utf8.ValidString(in) || strings.ContainsAny(in, "\n\r"):
			t.Fatalf("%q of %d bytes", in, len(in))
		case !strings.Contains(text, in) || in != strings.TrimSpace(in):
			t.Fatalf("%q is no line of %q", in, text)
		case in == "" && strings.TrimSpace(text) != "":
			t.Fatalf("%q has no excerpt", text)
		}
	})
}
