package textindex_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"promptspool/api/words"
	"promptspool/spool/archive/textindex"
)

// words are those that texts are drawn from: few, so that they meet.
var drawnWords = []string{
	"a", "the", "refund", "Refunds", "42", "user", "7", "東", "京", "都", "Zürich", "zurich", "x",
	"ß", "SS", "नमस्ते", "\u0301", "us\u00ader",
}

var drawnGaps = []string{
	" ", "-", "_", "", "--", ". ", "\n", "’", "→", "ʼ", "\u2011", "\u200b", "-\u200d", "\u2060’\ufe0f", "-\u200b-",
}

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
			prefix := rapid.Bool().Draw(t, "prefix")
			value := phrase
			if prefix {
				value += "*"
			}
			p, ok := words.ParsePhrase(value)
			if !ok {
				continue
			}
			docs := textindex.All()
			for _, term := range textindex.PhraseTerms(phrase, prefix) {
				if err := docs.Keep(pages[term.Page()], term); err != nil {
					t.Fatal(err)
				}
			}
			for i, text := range texts {
				if p.In(text) && !docs.Has(at[i]) {
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

// foldings has the terms of the text below by the number of the folding of its words.
var foldings = map[int]string{
	1: "[d438f8 548301 7f5cc8 6f86e1 3f830a 239d57 bf1703 c755ff f40632 1f820 c2a292]", // 0.1.0
	2: "[d438f8 548301 7f5cc8 6f86e1 3f830a 239d57 bf1703 c755ff f40632 1f820 c2a292]",
	3: "[d438f8 548301 7f5cc8 6f86e1 3f830a 239d57 bf1703 c755ff f40632 1f820 c2a292]",
}

func TestOtherTermsHaveAnotherNumber(t *testing.T) {
	terms := textindex.Terms("user-42 abc-defg abcd-efgh 東京東 x東")
	if got := fmt.Sprintf("%x", terms); got != foldings[words.Folding] {
		t.Errorf("a text has other terms than those of folding %d: %s. Databases have indexes of the terms of before: "+
			"give words.Folding the next number, and write them beside it here", words.Folding, got)
	}
}
