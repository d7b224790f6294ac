package docs

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
)

// Bounds of a search: people do not type more words, or read more pages.
const (
	wordsMax = 8
	hitsMax  = 20
)

// Hit is a page that a search found.
type Hit struct {
	Page    *Page
	Heading string // of the section that fits best; "" for the page's beginning
	Anchor  string // the section's id
	Excerpt string
}

// passage is the text below one heading.
type passage struct {
	page            *Page
	heading, anchor string
	text            string
	plain           string // all of it, to search in
}

// passages are those of each page, in their order. They are read on the first search.
var passages = sync.OnceValue(func() (all [][]passage) {
	for _, section := range Sections() {
		for _, p := range section.Pages {
			all = append(all, passagesOf(p))
		}
	}

	return all
})

// searched returns a text as it is searched: in lower case, with blanks for its signs, and one in front
// of it. So a blank and a word find what begins like the word: "port" is not in "support".
func searched(text string) string {
	b := []byte(" " + text)
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		case (c < 'a' || c > 'z') && (c < '0' || c > '9') && c < 0x80:
			b[i] = ' '
		}
	}

	return string(b)
}

// Search returns the pages that have most of the words, the best first.
func Search(query string) []Hit {
	words := searchWords(query)
	if len(words) == 0 {
		return nil
	}

	type found struct {
		words, score int
		best         *passage
	}
	var pages []found
	for _, own := range passages() {
		// The section to begin reading at is the one with most of the words.
		f := found{score: -1}
		for i := range own {
			if score := own[i].score(words, query); score > f.score {
				f.best, f.score = &own[i], score
			}
		}

		title := searched(own[0].page.Title + " " + own[0].page.Name)
		for _, word := range words {
			inTitle := strings.Contains(title, word)
			if inTitle {
				f.score += 100
			}
			if inTitle || slices.ContainsFunc(own, func(p passage) bool { return strings.Contains(p.plain, word) }) {
				f.words++
			}
		}
		pages = append(pages, f)
	}

	slices.SortStableFunc(pages, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(b.score, a.score))
	})

	var hits []Hit
	for _, f := range pages[:min(len(pages), hitsMax)] {
		// Pages with fewer of the words than others have are about something else.
		if f.words == 0 || f.words < pages[0].words {
			break
		}
		hits = append(hits, Hit{f.best.page, f.best.heading, f.best.anchor, f.best.excerpt(words)})
	}

	return hits
}

// searchWords returns the words of a query as they are searched for: each with a blank in front of it, and
// without its ending, so that "upgrading" finds "upgrade".
func searchWords(query string) (words []string) {
	for field := range strings.FieldsSeq(query) {
		word := strings.TrimSpace(searched(field))
		for _, ending := range []string{"ing", "es", "ed", "s", "e"} {
			if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) >= 4 {
				word = stem
				break
			}
		}

		// Of a question only its longer words tell pages apart.
		if len(word) > 2 && !slices.Contains(words, " "+word) && len(words) < wordsMax {
			words = append(words, " "+word)
		}
	}

	// There may be short ones alone, such as "up".
	if short := strings.TrimSpace(searched(query)); words == nil && short != "" {
		return []string{" " + short}
	}

	return words
}

// score is high for a section whose heading has the words, and which has all of them.
func (p *passage) score(words []string, query string) (score int) {
	heading := searched(p.heading)
	if strings.Contains(heading+p.plain, searched(query)) {
		score += 50
	}
	for _, word := range words {
		if strings.Contains(heading, word) {
			score += 50
		}
		if n := strings.Count(p.plain, word); n > 0 {
			score += 20 + min(n, 5)
		}
	}

	return score
}

// Bytes of an excerpt around its first word.
const (
	excerptBefore = 60
	excerptAfter  = 160
)

// excerpt returns the surroundings of the longest of the words that the passage has.
func (p *passage) excerpt(words []string) string {
	at := 0
	byLength := slices.SortedStableFunc(slices.Values(words), func(a, b string) int { return len(b) - len(a) })
	for _, word := range byLength {
		at = max(strings.Index(p.plain, word), 0)
		if at > 0 {
			break
		}
	}

	// It begins and ends between words, which also keeps characters whole.
	from, to, before := 0, len(p.text), ""
	if at > excerptBefore {
		from, before = strings.LastIndexByte(p.text[:at-excerptBefore], ' ')+1, "… "
	}
	if end := at + excerptAfter; end < to {
		if rest := strings.IndexByte(p.text[end:], ' '); rest >= 0 {
			to = end + rest
		}
	}

	return before + p.text[from:to]
}

// passagesOf cuts a page at its headings.
func passagesOf(p *Page) (all []passage) {
	source := []byte(p.Source)
	at := passage{page: p}
	var text strings.Builder
	end := func() {
		at.text = strings.ReplaceAll(strings.Join(strings.Fields(text.String()), " "), "`", "")
		at.plain = searched(at.text)
		all = append(all, at)
		text.Reset()
	}

	for block := parse(source).FirstChild(); block != nil; block = block.NextSibling() {
		switch h, ok := block.(*ast.Heading); {
		case !ok:
			text.WriteString(plain(block, source) + " ")
		case h.Level > 1:
			end()
			at = passage{page: p, heading: strings.ReplaceAll(plain(h, source), "`", ""), anchor: idOf(h)}
		}
	}
	end()

	return all
}
