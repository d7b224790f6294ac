package conversation

import (
	"encoding/json"
	"html/template"
	"net/url"
	"strings"
	"unicode/utf8"

	"promptspool/api/calls"
	"promptspool/api/dashboard/markup"
	"promptspool/api/words"
)

const (
	// PiecesMax bounds the messages, parts and tool calls of a page, and its parameters and tools.
	PiecesMax = 1000

	// WholeTextMax bounds a text that is laid out.
	WholeTextMax = 256 << 10

	foldedLines   = 40 // that a page shows of a longer text
	foldedBytes   = 4 << 10
	pageTextMax   = 64 << 10 // of all texts of a page; of more it shows nothing until it is asked for
	pageImagesMax = 8 << 20  // of all encoded images of a page

	scrolledBytesMin = 4 << 10

	afterFoldBytes = 32 << 10 // of pageTextMax, for what stands after what is folded
)

// Texts prepares the texts of a page: it folds them, lays them out, and marks what is looked for.
// It keeps to the page's bounds.
type Texts struct {
	At     string // the address of whole texts, which lacks only the place; "" if there is none
	AsSent bool   // nothing is laid out
	Prose  bool   // words may be Markdown

	Only      []int // the numbers of the messages of an input that are shown; nil is all of them
	FoldTools bool  // calls of tools, and what they return, are folded

	// Fold returns which messages of an input are folded as one: from the first of them until before the
	// second. Nil folds none.
	Fold func(input []calls.Message) (from, to int)

	needles
	left   int // bytes of text that the page still has space for
	images int // bytes of images
	pieces int // parameters and tools
	seen   int // how many messages, parts and tool calls there were so far
	hidden int // those that the page has no space for

	foldFrom, foldTo int // of the input, as Fold returned them
}

// NewTexts returns the texts of a page on which the values of a template's variables are marked.
func NewTexts(variables json.RawMessage) *Texts {
	return &Texts{
		needles: readVariables(variables),
		left:    pageTextMax,
		images:  pageImagesMax,
		pieces:  PiecesMax,
	}
}

// Mark makes the texts mark what a search looks for.
func (t *Texts) Mark(sought []words.Sought) { t.hits = sought }

// Bound bounds all texts of the page together, in bytes.
func (t *Texts) Bound(bytes int) { t.left = bytes }

// Address returns the address of a whole text; "" if there is none.
func (t *Texts) Address(place string) string {
	if t.At == "" {
		return ""
	}

	return t.At + "&of=" + url.QueryEscape(place)
}

// Text is a text as a page shows it.
type Text struct {
	HTML template.HTML
	As   string // "prose", "json" or "", which is plain
	Long bool   // shown in a box that scrolls

	Whole string // the address of all of it; "" if this is all
	Size  int64  // in bytes
	Lines int
	Hits  int // of the search, in what is not shown
}

// Show prepares a text at a place of a record. Where there is no address of whole texts,
// it is shown as a whole.
func (t *Texts) Show(place, s string, prose bool) Text {
	kind, laid := t.layOut(s, prose)
	head := laid
	if t.At != "" {
		head = fold(laid, t.left)
		t.left -= len(head)
	}

	shown := Text{Size: int64(len(s)), Lines: strings.Count(laid, "\n") + 1}
	shown.HTML, shown.As = t.format(kind, head)
	shown.Long = t.At == "" && len(s) > scrolledBytesMin
	if len(head) < len(laid) {
		shown.Whole = t.Address(place)
		shown.Hits = t.countHits(laid[len(head):])
	}

	return shown
}

// ShowWhole prepares a text of at most WholeTextMax bytes in full.
func (t *Texts) ShowWhole(s string, prose bool) (shown Text) {
	kind, laid := t.layOut(s, prose)
	shown.HTML, shown.As = t.format(kind, laid)

	return shown
}

// layOut returns how a text is shown, and the text, indented if it is JSON.
func (t *Texts) layOut(s string, prose bool) (kind, laid string) {
	if t.AsSent {
		return "", s
	}
	// A longer text takes too long to lay out just to show how it begins.
	if len(s) <= WholeTextMax {
		if laid, ok := markup.LayOut(s); ok {
			return "json", laid
		}
	}
	if prose && t.Prose {
		return "prose", s
	}

	return "", s
}

// format returns a text as HTML, and how that is shown.
func (t *Texts) format(kind, s string) (html template.HTML, as string) {
	marks := t.marks(s)
	switch {
	case kind == "json" && len(s) <= WholeTextMax:
		return markup.JSON(s, marks), kind
	case kind == "prose":
		if html, ok := markup.Markdown(s, marks); ok {
			return html, kind
		}
		kind = ""
	}

	return markup.Plain(s, marks), kind
}

// fold returns the beginning of a text that a page shows, if the page has so much space.
func fold(s string, space int) string {
	end := 0
	for range foldedLines {
		n := strings.IndexByte(s[end:], '\n')
		if n < 0 {
			end = len(s)
			break
		}
		end += n + 1
	}

	most := min(foldedBytes, space)
	if end <= most {
		return s[:end]
	}

	// A line or a word stays whole, if that leaves most of what there is space for.
	kept := s[:most]
	if n := max(strings.LastIndexByte(kept, '\n'), strings.LastIndexByte(kept, ' ')); n > most*3/4 {
		return kept[:n+1]
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}

	return s[:most]
}
