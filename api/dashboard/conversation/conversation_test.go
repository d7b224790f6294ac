package conversation

import (
	"encoding/json"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"promptspool/api/calls"
	"promptspool/api/words"
	"promptspool/metrics/cputimetest"
)

// pictureOf returns a picture as a call has it.
func pictureOf(url string) json.RawMessage {
	return json.RawMessage(`{"image_url":{"url":"` + url + `"}}`)
}

func TestAnImageIsABudgetOfItsPage(t *testing.T) {
	picture := "data:image/png;base64," + strings.Repeat("A", pageImagesMax/5)
	shown := calls.Part{Kind: "media", Text: "image/png", Media: pictureOf(picture)}
	parts := NewTexts(nil).Messages("input", []calls.Message{{Parts: []calls.Part{
		shown, shown, shown, shown, shown, {Kind: "media", Text: "javascript:alert(1)"},
	}}})[0].Texts

	if parts[3].Image != template.URL(picture) || parts[4].Image != "" || parts[5].Link != "" {
		t.Errorf("the page has images of %d and %d bytes, and the link %q; want four images and no link",
			len(parts[3].Image), len(parts[4].Image), parts[5].Link)
	}
}

func TestOnlyAnImageThatWasCheckedIsServedByItself(t *testing.T) {
	const red = "data:image/png;base64,iVBORw0KGgo="
	c := Call{Call: calls.Call{Output: []calls.Message{
		{Parts: []calls.Part{{Text: red}, {Kind: "media", Text: "image/png", Media: pictureOf(red)}}},
	}}}
	for place, want := range map[string]string{
		"output.0.part.1": red, "output.0.part.0": "", "output.0.part.2": "", "output.1.part.1": "",
		"input.0.part.1": "", "output.-1.part.1": "", "output.0.part.-1": "", "output.0": "", "": "",
		"output.0.part.1xyz": "", "output.0.part.01": "",
	} {
		if got := c.Picture(place); got != want {
			t.Errorf("at %q is the image %q, want %q", place, got, want)
		}
	}
}

func TestATextIsFoldedAtALineOrAWord(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		space int
		want  int // bytes
	}{
		"a short one":     {"one\ntwo", 1000, 7},
		"40 lines":        {strings.Repeat("a\n", 39) + "a", 1000, 79},
		"41 lines":        {strings.Repeat("a\n", 41), 1000, 80},
		"a long line":     {strings.Repeat("word ", 2000), 100_000, 4095},
		"a long word":     {strings.Repeat("日", 2000), 100_000, 4095},
		"a page is full":  {"one", 0, 0},
		"an empty text":   {"", 1000, 0},
		"little space":    {"日本", 4, 3},
		"a line of 3/4":   {strings.Repeat("a", 90) + "\n" + strings.Repeat("b", 90), 100, 91},
		"a line too soon": {"a\n" + strings.Repeat("b", 180), 100, 100},
	} {
		if got := fold(tt.text, tt.space); len(got) != tt.want || !strings.HasPrefix(tt.text, got) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), tt.want)
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 9000, 9000).Draw(t, "text")
		head := fold(text, rapid.IntRange(0, 9000).Draw(t, "space"))
		if !strings.HasPrefix(text, head) || !utf8.ValidString(head) || strings.Count(head, "\n") > foldedLines {
			t.Fatalf("%q of %q", head, text)
		}
	})
}

func TestWhatIsFoldedLeavesSpaceForWhatFollowsIt(t *testing.T) {
	var input []calls.Message
	for i := range 21 {
		role := []string{"user", "assistant"}[i%2]
		input = append(input, calls.Message{Role: role, Parts: []calls.Part{{Text: strings.Repeat("word ", 800)}}})
	}
	shown := func(fold func([]calls.Message) (int, int), all []calls.Message) Shown {
		texts := NewTexts(nil)
		texts.At, texts.Fold = "/text?", fold
		return texts.Call(Call{Call: calls.Call{Input: all}})
	}

	for _, tt := range []struct {
		name     string
		fold     func([]calls.Message) (int, int)
		input    []calls.Message
		from, to int
	}{
		{"a long conversation", Middle, input, 2, 17},
		{"a short one", Middle, input[:12], 0, 0},
		{"before the last one of the user", Earlier, input, 0, 20},
		{"before the answers to it", Earlier, append(input[:3:3], calls.Message{Role: "tool"}), 0, 2},
		{"only a system prompt", Earlier, []calls.Message{{Role: "system"}, {Role: "user"}}, 0, 0},
		{"no user", Earlier, []calls.Message{{Role: "system"}, {Role: "tool"}, {Role: "assistant"}}, 0, 0},
	} {
		v := shown(tt.fold, tt.input)
		if v.FoldFrom != tt.from || v.FoldTo != tt.to || v.Folded() != tt.to-tt.from {
			t.Errorf("%s: %d to %d are folded, want %d to %d", tt.name, v.FoldFrom, v.FoldTo, tt.from, tt.to)
		}
	}

	// All of them together are more than a page shows.
	v := shown(Middle, input)
	if last := v.Input[20].Texts[0]; last.Whole != "" || v.Input[16].Texts[0].HTML != "" {
		t.Errorf("the last message is cut: %+v", last)
	}
}

func TestEachTextOfAConversationHasAPlace(t *testing.T) {
	c := Call{Call: calls.Call{
		Input: []calls.Message{{Role: "tool", Parts: []calls.Part{{Text: "a"}, {Text: "b"}},
			ToolCalls: []calls.ToolCall{{Name: "f", Arguments: "{}"}}}},
		Output:  []calls.Message{{Parts: []calls.Part{{Text: "c"}}}, {Parts: []calls.Part{{Text: "d"}}}},
		Failure: &calls.Failure{Message: "e"},
	}, Sent: calls.Sent{Tools: []calls.Tool{{Definition: "t"}}}}
	for place, want := range map[string]string{
		"input.0": "a\nb\nf({})", "input.0.part.1": "b", "input.0.call.0": "{}", "output.1.part.0": "d",
		"answer": "c\n\nd", "error": "e", "tool.0": "t",
	} {
		if got, _, ok := c.Find(place); !ok || got != want {
			t.Errorf("%s: %q, %v; want %q", place, got, ok, want)
		}
	}
	for _, place := range []string{
		"", "input", "input.1", "input.-1", "input.0.part", "input.0.part.2", "input.0.call.-1", "tool.1", "raw",
		"parameter.0", "output.x", "nowhere.0",
	} {
		if got, _, ok := c.Find(place); ok {
			t.Errorf("%q has %q", place, got)
		}
	}
}

// manyVariables returns an object of n variables with values of this length.
func manyVariables(n, length int) json.RawMessage {
	values := map[string]string{}
	for i := range n {
		values["v"+strconv.Itoa(i)] = strings.Repeat("v", length-7) + strconv.Itoa(1_000_000+i)
	}
	raw, _ := json.Marshal(values)

	return raw
}

func TestVariablesAreMarkedInProportionToTheText(t *testing.T) {
	marked := func(variables json.RawMessage, texts []string) (n int) {
		s := NewTexts(variables)
		for _, text := range texts {
			n += len(s.marks(text))
		}
		return n
	}

	if n := len(NewTexts(manyVariables(1000, 10)).values); n != 100 {
		t.Errorf("%d of 1000 values are searched for, want 100", n)
	}
	long := strings.Repeat("v", (4<<10)-7) + "1000000"
	if n := marked(manyVariables(1, 4<<10), []string{"See " + long}); n != 1 {
		t.Errorf("a value of 4 KiB has %d marks, want 1", n)
	}
	if n := marked(manyVariables(1, 4<<10), []string{long + "\n"}); n != 0 {
		t.Errorf("a value that is all of the text has %d marks", n)
	}
	if n := marked(manyVariables(1, 4<<10+1), []string{strings.Repeat("v", (4<<10)-6) + "1000000"}); n != 0 {
		t.Errorf("a value of more than 4 KiB has %d marks", n)
	}

	// Each value is found at every place of each text, or at none but the first.
	variables := manyVariables(100_000, 10)
	texts := make([]string, 4)
	for i := range texts {
		texts[i] = strings.Repeat("vvv1000000.", 200) + strings.Repeat("vvv10000", 2000)[:13_800]
	}
	n := 0
	took := cputimetest.Of(func() { n = marked(variables, texts) })
	if n == 0 || took > 5*time.Second { // a slow search took 13 s without the race detector
		t.Errorf("%d marks after %v of processor time", n, took)
	}
}

// What a search looks for is marked exactly where it is, whatever variables have the same text.
func TestAMarkIsExactlyWhereTheSearchHasAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"refund", "Re\u0301fund", "policy", "İx", "ﬁ", "東", "京", " ", "-", ", "})
		text := strings.Join(rapid.SliceOfN(part, 0, 20).Draw(t, "text"), "")
		n := readVariables(json.RawMessage(`{"a": "refund", "b": "policy, refund", "c": "und"}`))
		var isHit = make([]bool, len(text))
		for range rapid.IntRange(0, 3).Draw(t, "hits") {
			sought := words.Seek(rapid.SampledFrom([]string{"matches", "contains"}).Draw(t, "operator"),
				rapid.SampledFrom([]string{"refund", "refund policy", "pol*", "東 京", "fund", "X"}).Draw(t, "value"))
			n.hits = append(n.hits, sought)
			for start, end := range sought(text) {
				for i := range text[start:end] {
					isHit[start+i] = true
				}
			}
		}

		at := 0
		marked := make([]bool, len(text))
		for _, m := range n.marks(text) {
			if m.From < at || m.To <= m.From {
				t.Fatalf("%q has marks %v", text, n.marks(text))
			}
			at = m.To
			for i := range text[m.From:m.To] {
				marked[m.From+i] = m.Variable == ""
			}
		}
		if !slices.Equal(marked, isHit) {
			t.Fatalf("%q has marks %v", text, n.marks(text))
		}
	})
}
