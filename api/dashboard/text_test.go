package dashboard

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"promptspool/api/calls"
)

func TestATextIsFoldedAtALineOrAWord(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		room int
		want int // bytes
	}{
		"a short one":     {"one\ntwo", 1000, 7},
		"40 lines":        {strings.Repeat("a\n", 39) + "a", 1000, 79},
		"41 lines":        {strings.Repeat("a\n", 41), 1000, 80},
		"a long line":     {strings.Repeat("word ", 2000), 100_000, 4095},
		"a long word":     {strings.Repeat("日", 2000), 100_000, 4095},
		"a page is full":  {"one", 0, 0},
		"an empty text":   {"", 1000, 0},
		"little room":     {"日本", 4, 3},
		"a line of 3/4":   {strings.Repeat("a", 90) + "\n" + strings.Repeat("b", 90), 100, 91},
		"a line too soon": {"a\n" + strings.Repeat("b", 180), 100, 100},
	} {
		if got := fold(tt.text, tt.room); len(got) != tt.want || !strings.HasPrefix(tt.text, got) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), tt.want)
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 9000, 9000).Draw(t, "text")
		head := fold(text, rapid.IntRange(0, 9000).Draw(t, "room"))
		if !strings.HasPrefix(text, head) || !utf8.ValidString(head) || strings.Count(head, "\n") > foldedLines {
			t.Fatalf("%q of %q", head, text)
		}
	})
}

func TestEachTextOfAConversationHasAPlace(t *testing.T) {
	c := Conversation{Call: calls.Call{
		Input: []calls.Message{{Role: "tool", Parts: []calls.Part{{Text: "a"}, {Text: "b"}},
			ToolCalls: []calls.ToolCall{{Name: "f", Arguments: "{}"}}}},
		Output:  []calls.Message{{Parts: []calls.Part{{Text: "c"}}}, {Parts: []calls.Part{{Text: "d"}}}},
		Failure: &calls.Failure{Message: "e"},
	}, Sent: calls.Sent{Tools: []calls.Tool{{Definition: "t"}}}}
	for place, want := range map[string]string{
		"input.0": "a\nb\nf({})", "input.0.part.1": "b", "input.0.call.0": "{}", "output.1.part.0": "d",
		"answer": "c\n\nd", "error": "e", "tool.0": "t",
	} {
		if got, _, ok := c.find(place); !ok || got != want {
			t.Errorf("%s: %q, %v; want %q", place, got, ok, want)
		}
	}
	for _, place := range []string{
		"", "input", "input.1", "input.-1", "input.0.part", "input.0.part.2", "input.0.call.-1", "tool.1", "raw",
		"parameter.0", "output.x", "nowhere.0",
	} {
		if got, _, ok := c.find(place); ok {
			t.Errorf("%q has %q", place, got)
		}
	}
}

func TestJSONBecomesPython(t *testing.T) {
	got := pythonLiteral(`{"true":[true,false,null,-1e5],"a\/\ud83d\ude00":"it's \"null\"\n"}`)
	want := "{\n  \"true\": [\n    True,\n    False,\n    None,\n    -1e5\n  ],\n" +
		"  \"a/\U0001F600\": \"it's \\\"null\\\"\\n\"\n}"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	command := replayCurl("http://a", json.RawMessage(`{"a":"it's"}`))
	if !strings.HasSuffix(command, `-d '{"a":"it'\''s"}'`) {
		t.Error(command)
	}
}
