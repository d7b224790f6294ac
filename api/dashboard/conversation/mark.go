package conversation

import (
	"cmp"
	"encoding/json"
	"html/template"
	"iter"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"promptspool/api/dashboard/markup"
	"promptspool/api/words"
)

const (
	marksMax    = 500     // in one text, and of each thing that is looked for
	markedMax   = 100     // values that are looked for: the longest
	markedBytes = 4 << 10 // of one such value
)

// needles are what is marked in texts.
type needles struct {
	values []needle // of variables, the longest first
	hits   []words.Sought
}

// needle is the value of a variable.
type needle struct{ Text, Variable string }

// readVariables reads the values of a template's variables from a JSON object, if it is one.
// Values of fewer than two characters would be found everywhere, and very many or very
// long ones would cost more time than their marks are worth.
func readVariables(variables json.RawMessage) (n needles) {
	var byName map[string]json.RawMessage
	_ = json.Unmarshal(variables, &byName)

	for name, raw := range byName {
		value := string(raw)
		// Anything but a string stays JSON.
		_ = json.Unmarshal(raw, &value)
		if len(value) <= markedBytes && utf8.RuneCountInString(value) >= 2 {
			n.values = append(n.values, needle{value, name})
		}
	}

	// The names settle ties, so that the same request always looks the same.
	sort.Slice(n.values, func(i, j int) bool {
		a, b := &n.values[i], &n.values[j]
		return cmp.Or(cmp.Compare(len(b.Text), len(a.Text)), cmp.Compare(a.Variable, b.Variable)) < 0
	})
	n.values = n.values[:min(len(n.values), markedMax)]

	return n
}

// Excerpt returns an excerpt in which what a search looks for is marked.
func Excerpt(text string, sought []words.Sought) template.HTML {
	n := needles{hits: sought}

	return markup.Plain(text, n.marks(text))
}

// marks returns where a text has what is looked for. A hit of the search is marked wherever it is, the
// value of a variable elsewhere: at each place the one that comes first, and then the longest.
func (n *needles) marks(s string) []markup.Mark {
	var all []markup.Mark
	for _, sought := range n.hits {
		all = append(all, marksOf(sought(s), "")...)
	}
	for _, v := range n.values {
		// A value that is all of the text needs no mark: nothing stands out from the whole.
		if v.Text != strings.TrimSpace(s) {
			all = append(all, marksOf(places(s, v.Text), v.Variable)...)
		}
	}
	slices.SortStableFunc(all, func(a, b markup.Mark) int { return a.From - b.From })

	// Marks must not overlap.
	var out []markup.Mark
	for _, m := range all {
		last := len(out) - 1
		switch isHit := m.Variable == ""; {
		case last < 0 || m.From >= out[last].To:
			if len(out) == marksMax {
				return out
			}
			out = append(out, m)
		case isHit && out[last].Variable == "":
			out[last].To = max(out[last].To, m.To)
		case isHit:
			out[last].To = m.From
			out = append(out, m)
		}
	}

	return out
}

// marksOf returns the first marks of one thing that is looked for.
func marksOf(places iter.Seq2[int, int], variable string) (marks []markup.Mark) {
	for start, end := range places {
		if len(marks) == marksMax {
			break
		}
		marks = append(marks, markup.Mark{From: start, To: end, Variable: variable})
	}

	return marks
}

// places yields where a text has a part.
func places(text, part string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for from := 0; ; {
			at := strings.Index(text[from:], part)
			if at < 0 || !yield(from+at, from+at+len(part)) {
				return
			}
			from += at + len(part)
		}
	}
}

// countHits counts how often a text has what the search looks for.
func (n *needles) countHits(s string) (count int) {
	for _, sought := range n.hits {
		for range sought(s) {
			count++
		}
	}

	return count
}
