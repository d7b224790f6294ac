package textindex_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"promptspool/spool/archive/textindex"
)

func TestAPhraseIsFoundAsPeopleReadIt(t *testing.T) {
	for _, c := range []struct {
		phrase, text, found string
	}{
		{"refund", "A Refund, please.", "Refund"},
		{"fund", "A Refund, please.", ""},
		{"fund*", "A Refund of funds.", "funds"},
		{"30 days", "within 30\n**days**.", "30\n**days"},
		{"30 days", "30 more days", ""},
		{"Zürich", "in ZURICH now", "ZURICH"},
		{"zurich", "in Zu\u0308rich now", "Zu\u0308rich"},
		{"straße", "STRASSE", ""},
		{"user-42", "of user_42.", "user_42"},
		{"user-42", "of user 42.", ""},
		{"user 42", "of user-42.", "user-42"},
		{"42", "of user-42.", "42"},
		{"3.14", "pi is 3.14159", ""},
		{"3.14", "pi is 3.14!", "3.14"},
		{"7f2c1a", "id=7F2C1A", "7F2C1A"},
		{"東京", "私は東京都に住む", "東京"},
		{"京東", "私は東京都に住む", ""},
		{"京", "私は東京都に住む", "京"},
		{"東 京", "東京", "東京"},
		{"iPhone 手机", "新iphone手机", "iphone手机"},
		{"привет", "Привет, мир", "Привет"},
		{"नमस्ते", "कहो नमस्ते", "नमस्ते"},
		{"a b c", "a b a b c", "a b c"},
		{"οδός", "ΟΔΟΣ", "ΟΔΟΣ"},
		{"don't", "Don’t", ""},
		{"don't", "DON'T", "DON'T"},
	} {
		text, prefix := strings.CutSuffix(c.phrase, "*")
		p, ok := textindex.NewPhrase(text, prefix)
		if !ok {
			t.Fatalf("%q has no words", c.phrase)
		}
		start, end, _ := p.Find(c.text, 0)
		if got := c.text[start:end]; got != c.found {
			t.Errorf("%q in %q: %q, want %q", c.phrase, c.text, got, c.found)
		}
	}
	if _, ok := textindex.NewPhrase(" - !", false); ok {
		t.Error("a phrase without words is one")
	}
}

// words are those that texts are drawn from: few, so that they meet.
var drawnWords = []string{
	"a", "the", "refund", "Refunds", "42", "user", "7", "東", "京", "都", "Zürich", "zurich", "x",
	"ß", "नमस्ते", "\u0301",
}

var drawnGaps = []string{" ", "-", "_", "", "--", ". ", "\n", "’", "→"}

func drawText(t *rapid.T, label string, most int) string {
	var b strings.Builder
	for i := range rapid.IntRange(0, most).Draw(t, label+" words") {
		b.WriteString(rapid.SampledFrom(drawnWords).Draw(t, fmt.Sprint(label, i)))
		b.WriteString(rapid.SampledFrom(drawnGaps).Draw(t, fmt.Sprint(label, i, "gap")))
	}
	return b.String()
}

func TestAnIndexLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts []string
		places := rapid.SliceOfNDistinct(rapid.IntRange(0, textindex.DocsMax-1), 1, 12, rapid.ID).Draw(t, "places")
		at := make([]int, 0, len(places)) // in order
		for doc := range textindex.DocsMax {
			for _, p := range places {
				if p == doc {
					at = append(at, doc)
				}
			}
		}
		var b textindex.Builder
		for i, doc := range at {
			texts = append(texts, drawText(t, fmt.Sprint("text", i), 12))
			// Some documents are in the index by the page of another one.
			b.Add(doc, textindex.Terms(texts[i]))
		}
		pages := encoded(&b)

		// Documents go, come and move, as they do when a block is packed again.
		for round := range rapid.IntRange(0, 2).Draw(t, "rounds") {
			to := make([]int, textindex.DocsMax)
			for i := range to {
				to[i] = -1
			}
			var left []string
			var now []int
			var fresh []int
			next := 0
			for i := range texts {
				next = min(next+rapid.IntRange(1, 300).Draw(t, "step"), textindex.DocsMax-len(texts)+i)
				switch rapid.IntRange(0, 3).Draw(t, fmt.Sprint("fate", round, i)) {
				case 0: // it goes
				case 1: // its text changes
					left, now = append(left, drawText(t, fmt.Sprint("new", round, i), 12)), append(now, next)
					fresh = append(fresh, len(left)-1)
				default:
					to[at[i]] = next
					left, now = append(left, texts[i]), append(now, next)
				}
			}
			for page := range pages {
				if err := b.Take(page, pages[page], func(doc int) int { return to[doc] }); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range fresh {
				b.Add(now[i], textindex.Terms(left[i]))
			}
			texts, at, pages = left, now, encoded(&b)
		}

		for i := range 4 {
			phrase := drawText(t, fmt.Sprint("phrase", i), 3)
			p, ok := textindex.NewPhrase(phrase, rapid.Bool().Draw(t, "prefix"))
			if !ok {
				continue
			}
			docs := textindex.All()
			for _, term := range p.Terms() {
				if err := docs.Keep(pages[term.Page()], term); err != nil {
					t.Fatal(err)
				}
			}
			for i, text := range texts {
				if _, _, holds := p.Find(text, 0); holds && !docs.Has(at[i]) {
					t.Fatalf("document %d %q has %q, and the index does not know", at[i], text, phrase)
				}
			}
		}
	})
}

func encoded(b *textindex.Builder) (pages [textindex.Pages][]byte) {
	for i := range pages {
		pages[i] = b.Encode(i)
	}
	return pages
}
