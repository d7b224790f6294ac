package dashboard

import (
	"encoding/json"
	"html/template"
	"net/url"
	"strings"
	"unicode/utf8"

	"promptspool/api/dashboard/markup"
)

const (
	foldedLines   = 40       // that a page shows of a longer text
	foldedBytes   = 4 << 10  // likewise
	pageTextMax   = 64 << 10 // of all texts of a page; of more it shows nothing until it is asked for
	wholeTextMax  = 256 << 10
	piecesMax     = 1000    // messages, parts and tool calls of a page; and parameters and tools
	pageImagesMax = 8 << 20 // of all encoded images of a page

	scrolledBytesMin = 4 << 10
)

// texts prepares the texts of a page: it folds them, lays them out, and marks what is looked for.
// It keeps to the page's bounds.
type texts struct {
	needles
	at     string // the address of whole texts, which lacks only the place; "" if there is none
	asSent bool   // nothing is laid out
	prose  bool   // words may be Markdown

	left   int // bytes of text that the page still has room for
	images int // bytes of images, likewise
	pieces int // parameters and tools, likewise

	from   int // the first of all messages, parts and tool calls that stands on the page
	seen   int // how many of them there were so far
	hidden int // those that stand behind the page
}

// newTexts returns the texts of a page on which the values of a template's variables are marked.
func newTexts(variables json.RawMessage) *texts {
	return &texts{
		needles: readVariables(variables),
		left:    pageTextMax,
		images:  pageImagesMax,
		pieces:  piecesMax,
	}
}

// address returns the address of a whole text; "" if there is none.
func (t *texts) address(place string) string {
	if t.at == "" {
		return ""
	}

	return t.at + "&of=" + url.QueryEscape(place)
}

// shownText is a text as a page shows it.
type shownText struct {
	HTML template.HTML
	As   string // "prose", "json" or "", which is plain
	Long bool   // shown in a box that scrolls

	Whole string // the address of all of it; "" if this is all
	Size  int64  // in bytes
	Lines int
	Hits  int // of the search, in what is not shown
}

// show prepares a text that stands at a place of a record. Where there is no address of whole
// texts, it is shown as a whole.
func (t *texts) show(place, s string, prose bool) shownText {
	kind, laid := t.layOut(s, prose)
	head := laid
	if t.at != "" {
		head = fold(laid, t.left)
		t.left -= len(head)
	}

	shown := shownText{Size: int64(len(s)), Lines: strings.Count(laid, "\n") + 1}
	shown.HTML, shown.As = t.format(kind, head)
	shown.Long = t.at == "" && len(s) > scrolledBytesMin
	if len(head) < len(laid) {
		shown.Whole = t.address(place)
		shown.Hits = t.countHits(laid[len(head):])
	}

	return shown
}

// showWhole prepares a text of at most wholeTextMax bytes in full.
func (t *texts) showWhole(s string, prose bool) (shown shownText) {
	kind, laid := t.layOut(s, prose)
	shown.HTML, shown.As = t.format(kind, laid)

	return shown
}

// layOut returns how a text is shown, and the text, indented if it is JSON.
func (t *texts) layOut(s string, prose bool) (kind, laid string) {
	if t.asSent {
		return "", s
	}
	// What is longer takes too long to lay out just to show how it begins.
	if len(s) <= wholeTextMax {
		if laid, ok := markup.LayOut(s); ok {
			return "json", laid
		}
	}
	if prose && t.prose {
		return "prose", s
	}

	return "", s
}

// format returns a text as HTML, and how that is shown.
func (t *texts) format(kind, s string) (html template.HTML, as string) {
	marks := t.marks(s)
	switch {
	case kind == "json" && len(s) <= wholeTextMax:
		return markup.JSON(s, marks), kind
	case kind == "prose":
		if html, ok := markup.Markdown(s, marks); ok {
			return html, kind
		}
		kind = ""
	}

	return markup.Plain(s, marks), kind
}

// fold returns the beginning of a text that a page shows, if the page has so much room.
func fold(s string, room int) string {
	end := 0
	for range foldedLines {
		n := strings.IndexByte(s[end:], '\n')
		if n < 0 {
			end = len(s)
			break
		}
		end += n + 1
	}

	most := min(foldedBytes, room)
	if end <= most {
		return s[:end]
	}

	// A line or a word stays whole, if that leaves most of what there is room for.
	kept := s[:most]
	if n := max(strings.LastIndexByte(kept, '\n'), strings.LastIndexByte(kept, ' ')); n > most*3/4 {
		return kept[:n+1]
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}

	return s[:most]
}
