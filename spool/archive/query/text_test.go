package query_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/textindex"
)

// talk is a call, of which a filter may ask the model and the texts.
type talk struct{ model, input, output string }

func (c talk) subject(t *rapid.T) *query.Subject {
	body, err := json.Marshal(map[string]any{
		"kwargs": map[string]any{"messages": []any{map[string]any{"role": "user", "content": c.input}}},
		"request_response": map[string]any{
			"choices": []any{map[string]any{"message": map[string]any{"content": c.output}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	return &query.Subject{Row: &wire.Row{Engine: c.model}, Body: func() ([]byte, error) { return body, nil }}
}

var (
	talkGaps = []string{
		" ", " ", ". ", "-", "_", "", "\n", "’", "ʼ", "\u2011", "\u200b", "-\u200d", "\ufeff ", "-\u200b-", "—",
	}
	talkWords = []string{
		"refund", "Refunds", "REFUND", "ref", "a", "30", "days", "Zürich", "zurich", "東", "京", "K\u212a",
		"Straße", "STRASSE", "ẞ", "re\u00adfund", "3\ufe0f0", "ı",
	}
)

func drawTalk(t *rapid.T, label string, most int) string {
	var b strings.Builder
	for i := range rapid.IntRange(1, most).Draw(t, label+" words") {
		if i > 0 {
			b.WriteString(rapid.SampledFrom(talkGaps).Draw(t, label+" gap"))
		}
		b.WriteString(rapid.SampledFrom(talkWords).Draw(t, label+" word"))
	}

	return b.String()
}

// drawTextFilter draws a filter of texts and of another field.
func drawTextFilter(t *rapid.T, depth int) wire.Filter {
	if depth > 0 && rapid.Bool().Draw(t, "group") {
		f := wire.Filter{Logic: rapid.SampledFrom([]string{"AND", "OR"}).Draw(t, "logic")}
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			f.Filters = append(f.Filters, drawTextFilter(t, depth-1))
		}
		return f
	}
	f := wire.Filter{
		Field: rapid.SampledFrom([]string{"text", "input_text", "output_text", "model"}).Draw(t, "field"),
		Operator: rapid.SampledFrom([]string{
			"matches", "matches", "not_matches", "contains", "starts_with", "not_starts_with", "ends_with", "is",
		}).Draw(t, "operator"),
	}
	value := drawTalk(t, "value", 3)
	switch {
	case f.Field == "model":
		f.Operator, value = "is", "m"
	case rapid.Bool().Draw(t, "open") && strings.HasSuffix(f.Operator, "matches"):
		value += "*"
	case rapid.Bool().Draw(t, "cut"): // within a word
		value = strings.ToValidUTF8(value[:len(value)-1], "")
	}
	if f.Value, _ = json.Marshal(value); value == "" {
		f.Value = []byte(`"a"`)
	}

	return f
}

// plainly is what a filter means, by the shortest code.
func plainly(f wire.Filter, c talk) bool {
	if f.Filters != nil {
		or := f.Logic == "OR"
		return slices.ContainsFunc(f.Filters, func(part wire.Filter) bool { return plainly(part, c) == or }) == or
	}
	operator, not := strings.CutPrefix(f.Operator, "not_")
	var value string
	_ = json.Unmarshal(f.Value, &value)
	low := strings.ToLower(value)
	compare := map[string]func(text string) bool{
		"is":          func(text string) bool { return text == value },
		"contains":    func(text string) bool { return strings.Contains(strings.ToLower(text), low) },
		"starts_with": func(text string) bool { return strings.HasPrefix(strings.ToLower(text), low) },
		"ends_with":   func(text string) bool { return strings.HasSuffix(strings.ToLower(text), low) },
		"matches": func(text string) bool {
			p, _ := words.ParsePhrase(value)
			return p.In(text)
		},
	}[operator]
	texts := map[string][]string{
		"text": {c.input, c.output}, "input_text": {c.input}, "output_text": {c.output}, "model": {c.model},
	}[f.Field]

	return slices.ContainsFunc(texts, compare) != not
}

// A filter of texts finds what it means, and what an index lets pass of it has all that it finds.
func TestTextsAreFoundAndAnIndexLosesNone(t *testing.T) {
	narrowed := 0
	rapid.Check(t, func(t *rapid.T) {
		var calls []talk
		var index textindex.Builder
		for i := range rapid.IntRange(1, 6).Draw(t, "calls") {
			c := talk{"m", drawTalk(t, "input", 6), drawTalk(t, "output", 6)}
			if rapid.Bool().Draw(t, "another") {
				c.model = "n"
			}
			calls = append(calls, c)
			index.Add(i, textindex.Terms(c.input, c.output))
		}
		var pages [textindex.Pages][]byte
		for i := range pages {
			pages[i] = index.Encode(i)
		}

		f := drawTextFilter(t, 3)
		q, err := query.CompileMatch(&f)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[textindex.Term]bool{}
		docs := q.Candidates(func(term textindex.Term, d *textindex.Docs) {
			asked[term] = true
			if err := d.Keep(pages[term.Page()], term); err != nil {
				t.Fatal(err)
			}
		})
		for i, c := range calls {
			found := q.Match(c.subject(t))
			if want := plainly(f, c); found != want {
				t.Fatalf("%v of %q: %v, want %v", f, c, found, want)
			}
			if found && !docs.Has(i) {
				t.Fatalf("%v finds %q, which the index does not let pass", f, c)
			}
			if !docs.Has(i) {
				narrowed++
			}
		}
		all := q.Terms()
		for term := range asked {
			if !slices.Contains(all, term) {
				t.Fatalf("%v asks for a term that Terms does not have", f)
			}
		}
	})
	if narrowed == 0 {
		t.Error("the index let everything pass")
	}
}

// letters are characters of each kind that a text may have.
var letters = []rune(
	"abAB2 ß\u1e9esKık東京กé\u0301\u0345\u20e3" + // of words
		" .\n—→©" + "-_'’ʼ´‐\u2011–−＿\u05be" + // gaps and connectors
		"\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0f\u034f\u3164", // invisible ones
)

// A text for which an operator holds has all terms that are looked up for it.
func TestWhatIsFoundHasTheTerms(t *testing.T) {
	looked := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(letters), 1, 12, -1).Draw(t, "text")
		cases := []func(string) string{strings.ToLower, strings.ToUpper, strings.Clone}
		inCase := rapid.SampledFrom(cases).Draw(t, "case")
		end := rapid.SampledFrom([]string{"", "", "*"}).Draw(t, "end")

		call, terms := talk{input: text}.subject(t), textindex.Terms(text)
		runes := []rune(text)
		for from := range runes {
			for to := range runes[from:] {
				part, _ := json.Marshal(inCase(string(runes[from:from+to+1])) + end)
				for _, operator := range []string{"matches", "contains", "starts_with", "ends_with", "is"} {
					q, err := query.CompileMatch(condition("text", "", operator, string(part)))
					if err != nil || !q.Match(call) {
						continue // matches must have a word
					}
					for _, term := range q.Terms() {
						looked++
						if !slices.Contains(terms, term) {
							t.Fatalf("%q %s %s: a term is looked up that it lacks", text, operator, part)
						}
					}
				}
			}
		}
	})
	if looked == 0 {
		t.Error("nothing was looked up")
	}
}

// The operators that compare in lower case look up words of an index, which folds more than that.
func TestLowerCaseChangesNoWord(t *testing.T) {
	for c := rune(0); c <= unicode.MaxRune; c++ {
		low := strings.ToLower(string(c))
		if low == string(c) {
			continue
		}
		one := textindex.PhraseTerms("x"+string(c)+"y", false)
		two := textindex.PhraseTerms("x"+low+"y", false)
		if !slices.Equal(one, two) {
			t.Errorf("%U is another word than %q", c, low)
		}
	}
}

func TestWhatCanBeAskedOfAText(t *testing.T) {
	for _, c := range []struct{ field, operator, value, says string }{
		{"input_text", "matches", `" -*"`, "must have a word"},
		{"text", "matches", `["a"]`, "must be a string"},
		{"model", "matches", `"a"`, "must be one of these"},
		{"output", "not_matches", `"a"`, "must be one of these"},
	} {
		f := condition(c.field, "", c.operator, c.value)
		if c.field == "output" {
			f.NestedKey = "k"
		}
		_, err := query.Compile(wire.Search{FilterGroup: f})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s %s: %v", c.field, c.operator, c.value, err)
		}
	}
	for _, value := range []string{"refund", "30 days*", "東京"} {
		raw := fmt.Sprintf("%q", value)
		if _, err := query.Compile(wire.Search{FilterGroup: condition("text", "", "matches", raw)}); err != nil {
			t.Error(err)
		}
	}
}
