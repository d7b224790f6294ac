package docs

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
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
	Excerpt []Piece
}

// Piece is a part of an excerpt.
type Piece struct {
	Text   string
	Marked bool // it is one of the words
}

// passage is the text below one heading.
type passage struct {
	page            *Page
	heading, anchor string
	text            string
	lower           string // all of it in lower case, to search in
}

// passages are those of all pages, in their order. They are read on the first search.
var passages = sync.OnceValue(func() (all []passage) {
	for _, section := range Sections() {
		for _, p := range section.Pages {
			all = append(all, passagesOf(p)...)
		}
	}

	return all
})

// Search returns the pages that have most of the words, the best first.
func Search(query string) []Hit {
	words := searchWords(query)
	if len(words) == 0 {
		return nil
	}

	type found struct {
		words, score int
		best         passage
		bestScore    int
	}
	var pages []found
	for page, own := range byPage(passages()) {
		title := strings.ToLower(page.Title + " " + page.Name)
		f := found{bestScore: -1}
		for _, word := range words {
			inTitle := find(title, word) >= 0
			if inTitle {
				f.score += 100
			}
			if inTitle || slices.ContainsFunc(own, func(p passage) bool { return p.count(word) > 0 }) {
				f.words++
			}
		}

		// The section to begin reading at is the one with most of the words.
		for _, p := range own {
			if score := p.score(words, query); score > f.bestScore {
				f.best, f.bestScore = p, score
			}
		}
		f.score += f.bestScore
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

// searchWords returns the words of a query as they are searched for: in lower case and without
// their endings, so that "upgrading" finds "upgrade".
func searchWords(query string) (words []string) {
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		for _, ending := range []string{"ing", "es", "ed", "s", "e"} {
			if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) >= 4 {
				word = stem
				break
			}
		}

		// Of a question only its longer words tell pages apart.
		if len(word) > 2 && !slices.Contains(words, word) && len(words) < wordsMax {
			words = append(words, word)
		}
	}

	// There may be short ones alone, such as "up".
	if short := strings.TrimSpace(strings.ToLower(query)); words == nil && short != "" {
		return []string{short}
	}

	return words
}

// byPage calls fn with each page and its passages.
func byPage(all []passage) func(fn func(*Page, []passage) bool) {
	return func(fn func(*Page, []passage) bool) {
		for len(all) > 0 {
			page := all[0].page
			n := slices.IndexFunc(all, func(p passage) bool { return p.page != page })
			if n < 0 {
				n = len(all)
			}
			if !fn(page, all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// count returns how often a word begins in the passage, at most five times.
func (p *passage) count(word string) (n int) {
	text := p.lower
	for n < 5 {
		at := find(text, word)
		if at < 0 {
			break
		}
		text = text[at+len(word):]
		n++
	}

	return n
}

// find returns where a word begins that begins like word, or -1: "port" is not in "support".
func find(text, word string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return -1
		}
		at += from
		if at == 0 || !isLetter(text[at-1]) || !isLetter(word[0]) {
			return at
		}
		from = at + 1
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80 }

// score is high for a section whose heading has the words, and which has all of them.
func (p *passage) score(words []string, query string) (score int) {
	heading := strings.ToLower(p.heading)
	if phrase := strings.ToLower(query); strings.Contains(heading, phrase) || strings.Contains(p.lower, phrase) {
		score += 50
	}
	for _, word := range words {
		if find(heading, word) >= 0 {
			score += 50
		}
		if n := p.count(word); n > 0 {
			score += 20 + n
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
func (p *passage) excerpt(words []string) (pieces []Piece) {
	at := 0
	byLength := slices.SortedStableFunc(slices.Values(words), func(a, b string) int { return len(b) - len(a) })
	for _, word := range byLength {
		if at = max(find(p.lower, word), 0); at > 0 {
			break
		}
	}

	// It begins and ends between words, which also keeps characters whole.
	from, to := 0, len(p.lower)
	if at > excerptBefore {
		from = at - excerptBefore + 1 + strings.IndexByte(p.lower[at-excerptBefore:at]+" ", ' ')
		pieces = append(pieces, Piece{Text: "… "})
	}
	if end := at + excerptAfter; end < to {
		to = at + strings.LastIndexByte(p.lower[at:end], ' ')
		if to <= at {
			to = len(p.lower)
		}
	}

	for from < to {
		first, length := to, 0
		for _, word := range words {
			if i := find(p.lower[from:to], word); i >= 0 && from+i < first {
				first, length = from+i, len(word)
			}
		}
		if first > from {
			pieces = append(pieces, Piece{Text: p.text[from:first]})
		}
		if length > 0 {
			pieces = append(pieces, Piece{Text: p.text[first : first+length], Marked: true})
		}
		from = first + length
	}

	return pieces
}

// passagesOf cuts a page at its headings.
func passagesOf(p *Page) (all []passage) {
	source := []byte(p.Source)
	at := passage{page: p}
	var text strings.Builder
	end := func() {
		at.text = strings.Join(strings.Fields(text.String()), " ")
		at.lower = strings.ToLower(at.text)

		// Places in one must be places in the other.
		if len(at.lower) != len(at.text) {
			at.text = at.lower
		}
		all = append(all, at)
		text.Reset()
	}

	for block := parse(source).FirstChild(); block != nil; block = block.NextSibling() {
		switch h, ok := block.(*ast.Heading); {
		case !ok:
			addWords(&text, block, source)
		case h.Level > 1:
			end()
			at = passage{page: p, heading: strings.ReplaceAll(plain(h, source), "`", ""), anchor: idOf(h)}
		}
	}
	end()

	return all
}

// addWords adds the text of a block, with a space after each cell and item.
func addWords(to *strings.Builder, block ast.Node, source []byte) {
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.HTMLBlock:
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			if entering {
				to.Write(n.Lines().Value(source))
			}
		case *ast.Text:
			if entering {
				to.Write(n.Segment.Value(source))
			}
			if n.SoftLineBreak() {
				to.WriteByte(' ')
			}
		case *ast.Paragraph, *ast.TextBlock, *extension.TableCell, *ast.Image:
			if !entering {
				to.WriteByte(' ')
			}
		}

		return ast.WalkContinue, nil
	})
}
