package conversation

import (
	"cmp"
	"encoding/json"
	"html/template"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"promptspool/api/calls"
	"promptspool/api/dashboard/markup"
)

const (
	marksMax    = 500     // in one text
	markedMax   = 100     // values that are looked for: the longest
	markedBytes = 4 << 10 // of one such value
)

// needles are what is marked in texts.
type needles struct {
	values []needle // of variables, the longest first
	hits   []needle // words of a search, in lower case
}

// needle is a text that is looked for: the value of a variable, if it names one.
type needle struct{ Text, Variable string }

// readVariables reads the values of a template's variables from a JSON object, if it is one.
// Values of fewer than two characters would be found everywhere, and very many or very
// long ones would cost more time than their marks are worth.
func readVariables(variables json.RawMessage) (n needles) {
	var byName map[string]json.RawMessage
	_ = json.Unmarshal(variables, &byName)

	for name, raw := range byName {
		value := string(raw)
		_ = json.Unmarshal(raw, &value) // anything but a string stays JSON
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

// hitsOf returns the words of a search, which are in lower case.
func hitsOf(words []string) (hits []needle) {
	for _, word := range words {
		hits = append(hits, needle{Text: word})
	}

	return hits
}

// Excerpt returns an excerpt in which the words of a search are marked.
func Excerpt(text string, words []string) template.HTML {
	n := needles{hits: hitsOf(words)}

	return markup.Plain(text, n.marks(text))
}

const (
	seenBytes   = 48 // of an excerpt, whatever the width of its column
	beforeBytes = 32 // of a text before a hit that is shown with it
)

// Around returns the excerpt of a text around a word of a search, in lower case. It is "" if
// the text does not have it.
func Around(text, word string) string {
	low := lower(text)
	at := strings.LastIndex(low, word)
	switch {
	case at < 0:
		return ""
	case strings.Index(low, word) <= seenBytes:
		return calls.Excerpt(text)
	}

	// From the beginning of a word on, if there is one.
	from := at - beforeBytes
	from += max(strings.IndexAny(text[from:at], " \n"), 0)
	for !utf8.RuneStart(text[from]) {
		from++
	}

	return calls.Excerpt("…", text[from:])
}

// Around returns the excerpts around a word of a search: of what was sent, otherwise of what
// came back.
func (c *Call) Around(word string) (in, out string) {
	in, out = c.Texts()
	if c.Failure != nil {
		out += "\n" + c.Failure.Message
	}
	if in = Around(in, word); in != "" {
		return in, ""
	}

	return "", Around(out, word)
}

// lower returns a text in lower case, each character at the place that it has in the text.
func lower(s string) string {
	if low := strings.ToLower(s); len(low) == len(s) {
		return low
	}

	// A few letters become longer or shorter: then only those of ASCII change.
	low := []byte(s)
	for i, c := range low {
		if c >= 'A' && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}

	return string(low)
}

// marks returns where a text has what is looked for: at each place what comes first, and among
// those the words of the search, then the longest value.
func (n *needles) marks(s string) (out []markup.Mark) {
	// A value that is all of the text needs no mark: nothing stands out from the whole.
	values := slices.DeleteFunc(slices.Clone(n.values), func(v needle) bool { return v.Text == strings.TrimSpace(s) })
	all := slices.Concat(n.hits, values)
	if len(all) == 0 {
		return nil
	}
	low := s
	if len(n.hits) > 0 {
		low = lower(s)
	}

	// Where each one occurs next. It is searched again only once the text before that place
	// is done, so each is searched through the text once.
	next := make([]int, len(all))
	for i := range next {
		next[i] = -1
	}
	for from := 0; len(out) < marksMax; {
		at, found := len(s), needle{}
		for i, v := range all {
			if next[i] < from {
				next[i] = len(s)
				within := s
				if i < len(n.hits) {
					within = low
				}
				if place := strings.Index(within[from:], v.Text); place >= 0 {
					next[i] = from + place
				}
			}
			if next[i] < at {
				at, found = next[i], v
			}
		}
		if found.Text == "" {
			break
		}

		from = at + len(found.Text)
		out = append(out, markup.Mark{From: at, To: from, Variable: found.Variable})
	}

	return out
}

// countHits counts how often a text has the words of the search.
func (n *needles) countHits(s string) (count int) {
	if len(n.hits) == 0 {
		return 0
	}

	low := lower(s)
	for _, hit := range n.hits {
		count += strings.Count(low, hit.Text)
	}

	return count
}
