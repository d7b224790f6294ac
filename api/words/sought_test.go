package words_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"promptspool/api/words"
)

func TestThePlaceOfAPartIsThatOfTheText(t *testing.T) {
	for _, c := range []struct{ operator, value, text, found string }{
		{"contains", "FUND", "Refund a refund", "fund,fund"},
		{"contains", "ⱥb", "İİ ȺB Ⱥb", "ȺB,Ⱥb"},
		{"contains", "k", "K is Kelvin", "K,K"},
		{"contains", "fi", "ﬁne", ""},
		{"ends_with", "B", "İb Ⱥb", "b"},
		{"ends_with", "x", "x y", ""},
		{"starts_with", "İ", "İx", "İ"},
		{"starts_with", "x", "İx", ""},
		{"is", "İx", "İX", "İX"},
		{"is", "x", "x x", ""},
		{"matches", "a b a", "a b a b a", "a b a,a b a"},
		{"matches", "?", "a?", ""},
		{"contains", "", "a", ""},
	} {
		var found []string
		if s := words.Seek(c.operator, c.value); s != nil {
			for start, end := range s(c.text) {
				found = append(found, c.text[start:end])
			}
		}
		if got := strings.Join(found, ","); got != c.found {
			t.Errorf("%s %q in %q: %q, want %q", c.operator, c.value, c.text, got, c.found)
		}
	}
}

func TestASnippetIsCutAtWords(t *testing.T) {
	for _, c := range []struct{ text, match, want string }{
		{"one two\n\n three  four", "two", "one [two] three four"},
		{"one two three four five six", "four", "…two three [four] five six"},
		{"日本日本日本日本日本日本日本日本X日本日本日本日本日本日本日本", "X", "…日本日本日本日本日本日本[X]日本日本日本日本日本日本…"},
		{strings.Repeat(" \t", 50) + "x" + strings.Repeat("\n", 100) + "y", "x", "…[x]…"},
	} {
		start := strings.Index(c.text, c.match)
		before, match, after := words.Around(c.text, start, start+len(c.match), 12)
		if got := before + "[" + match + "]" + after; got != c.want {
			t.Errorf("of %q: %q, want %q", c.text, got, c.want)
		}
	}
}

// A part is found exactly where lower case has it, and a snippet around it is valid.
func FuzzPart(f *testing.F) {
	for _, c := range [][2]string{
		{"İstanbul ﬁne e\u0301", "ﬁ"}, {"ȺȺ K", "ⱥ k"}, {"a\xffb", "b"}, {"\u0301\u0301", "\u0301"}, {"ΣΑΣ", "σ"},
		{"co\u00adop’s", "’S"},
	} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if value == "" || !utf8.ValidString(value) {
			t.Skip()
		}
		low, n := strings.ToLower(value), 0
		for start, end := range words.Seek("contains", value)(text) {
			n++
			if got := text[start:end]; strings.ToLower(got) != low {
				t.Fatalf("%q of %q is found as %q", value, text, got)
			}
			before, match, after := words.Around(text, start, end, 10)
			for _, part := range []string{before, match, after} {
				if utf8.ValidString(text) && !utf8.ValidString(part) || utf8.RuneCountInString(part) > 21 {
					t.Fatalf("around %q of %q is %q", value, text, part)
				}
			}
		}
		if want := strings.Count(strings.ToLower(text), low); n != want {
			t.Fatalf("%q is found %d times in %q, want %d", value, n, text, want)
		}
	})
}
