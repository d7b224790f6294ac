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
	long := strings.Repeat("ä", 300)
	for _, c := range []struct{ name, body, in, out string }{
		{
			"the last user message, not what follows it",
			`{"kwargs":{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"First"},` +
				`{"role":"user","content":"\n  Second \r\nthird"},{"role":"assistant","content":"Well"}]},` +
				`"request_response":{"choices":[{"message":{"content":"Hello!\nAnd more."}}]}}`,
			"Second", "Hello!",
		},
		{
			"a picture has no line",
			`{"kwargs":{"messages":[{"role":"user","content":"What is this?"},{"role":"user","content":[` +
				`{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}]}]}}`,
			"What is this?", "",
		},
		{
			"without a user the last message",
			`{"kwargs":{"messages":[{"role":"system","content":"Write a poem."}]}}`,
			"Write a poem.", "",
		},
		{
			"the answer before the thought",
			`{"kwargs":{"messages":[{"role":"user","content":"Hi"}]},"request_response":{"content":[` +
				`{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Hello"}]}}`,
			"Hi", "Hello",
		},
		{
			"a call of a tool",
			`{"kwargs":{"prompt":"Rome?"},"request_response":{"choices":[{"message":{"content":null,"tool_calls":[` +
				`{"id":"c","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]}}]}}`,
			"Rome?", `weather {"city":"Rome"}`,
		},
		{
			"the error, not the answer",
			`{"kwargs":{"prompt":"x"},"request_response":{"choices":[{"message":{"content":"Half"}}]},` +
				`"error_type":"PROVIDER_TIMEOUT","error_message":"Timed out after 30 s\nat line 3"}`,
			"x", "Timed out after 30 s",
		},
		{
			"an error without a message",
			`{"kwargs":{"prompt":"x"},"request_response":{},"error_type":"PROVIDER_TIMEOUT"}`,
			"x", "PROVIDER_TIMEOUT",
		},
		{
			"a lone bracket or fence tells nothing",
			`{"kwargs":{"prompt":"---\nReview"},"request_response":{"choices":[{"text":"{\n \"a\": 1\n}"}]}}`,
			"Review", `"a": 1`,
		},
		{
			"a text without a word",
			`{"kwargs":{"prompt":"👍\n!"},"request_response":{}}`,
			"👍", "",
		},
		{
			"a blueprint",
			`{"provider":"openai","model":"m","input":{"type":"chat","messages":[{"role":"user",` +
				`"content":[{"type":"text","text":"In"}]}]},"output":{"type":"completion",` +
				`"content":[{"type":"text","text":"Out"}]}}`,
			"In", "Out",
		},
		{
			"200 bytes, cut between two characters",
			`{"kwargs":{"prompt":"x` + long + `"},"request_response":{"choices":[{"text":"` + long + `"}]}}`,
			"x" + long[:198], long[:200],
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := calls.Read(json.RawMessage(c.body))
			if in, out := call.Excerpts(); in != c.in || out != c.out {
				t.Errorf("the excerpts are %q and %q, want %q and %q", in, out, c.in, c.out)
			}
		})
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
