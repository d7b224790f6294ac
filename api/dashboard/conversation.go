package dashboard

import (
	"cmp"
	"encoding/json"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"
)

// Conversation is a model call as people read it.
type Conversation struct {
	Input   []Message
	Output  []Message // one for each choice
	Failure *Failure  // nil if nothing went wrong
	Raw     string    // the raw response, if neither Output nor Failure shows all of it
}

// Failure is the error of a model call. Both fields may be empty.
type Failure struct{ Type, Message string }

// Message is one turn of a conversation.
type Message struct {
	Role, Name string
	Parts      []Part
	Calls      []ToolCall
	Answers    string // the id of the tool call that this message answers
}

// Part is a piece of a message.
type Part struct {
	Kind string // text, thinking, refusal or media
	Text string // of media: its address, or a description

	// Image is a picture as a data: URL, which holds nothing but base64, or "".
	Image string
}

// ToolCall is a call of a tool that the model asks for.
type ToolCall struct{ ID, Name, Arguments string }

// segment is a stretch of text: the value of a variable, if it names one.
type segment struct{ Text, Variable string }

const (
	shownBytesMax = 16 << 10 // of one text; the rest is in the raw request
	pageTextMax   = 64 << 10 // of all texts of a page
	marksMax      = 200      // in one text
	markedMax     = 100      // values that are looked for: the longest
	markedBytes   = 4 << 10  // of one such value
	piecesMax     = 1000     // messages, parts and tool calls of a page
	pageImagesMax = 8 << 20  // of all encoded images of a page

	scrolledBytesMin = 4 << 10
)

// texts cuts what a page shows of conversations to the page's bounds, and marks the values
// of variables in it.
type texts struct {
	values []segment // of variables, the longest first
	left   int       // bytes of text that the page still has room for
	images int       // bytes of images, likewise
	pieces int       // messages, parts and tool calls, likewise
	hidden int       // those that the page has no room for
}

// newTexts reads the values of a template's variables from a JSON object, if it is one.
// Values of fewer than two characters would be found everywhere, and very many or very
// long ones would cost more time than their marks are worth.
func newTexts(variables json.RawMessage) *texts {
	t := &texts{left: pageTextMax, images: pageImagesMax, pieces: piecesMax}
	var byName map[string]json.RawMessage
	_ = json.Unmarshal(variables, &byName)

	for name, raw := range byName {
		value := string(raw)
		_ = json.Unmarshal(raw, &value) // anything but a string stays JSON
		if len(value) <= markedBytes && utf8.RuneCountInString(value) >= 2 {
			t.values = append(t.values, segment{value, name})
		}
	}

	// The names settle ties, so that the same request always looks the same.
	slices.SortFunc(t.values, func(a, b segment) int {
		return cmp.Or(cmp.Compare(len(b.Text), len(a.Text)), cmp.Compare(a.Variable, b.Variable))
	})
	t.values = t.values[:min(len(t.values), markedMax)]

	return t
}

// shownText is a text as a page shows it.
type shownText struct {
	Segments []segment
	Cut      int  // bytes that are left out
	Long     bool // shown in a box that scrolls
	JSON     bool // indented, and folded
}

// show cuts a text and marks the variables in it.
func (t *texts) show(s string) shownText {
	kept := s[:min(len(s), shownBytesMax, t.left)]
	for len(kept) < len(s) && len(kept) > 0 && !utf8.RuneStart(s[len(kept)]) {
		kept = kept[:len(kept)-1] // do not cut a character in half
	}
	t.left -= len(kept)

	// A part of an object is not JSON, so only a whole text can be indented.
	out := shownText{Cut: len(s) - len(kept), Long: len(kept) > scrolledBytesMin}
	if laid := layOut(kept); laid != "" && out.Cut == 0 {
		return shownText{Segments: []segment{{Text: laid}}, JSON: true}
	}
	out.Segments = t.mark(kept)

	return out
}

// mark splits a text where values of variables begin and end: at each place it takes the
// value that comes first, and among those the longest.
func (t *texts) mark(s string) []segment {
	// Where each value occurs next. It is searched again only once the text before that place
	// is done, so each value is searched through the text once.
	next := make([]int, len(t.values))
	for i := range next {
		next[i] = -1
	}

	var out []segment
	for from := 0; from < len(s); {
		at, found := len(s), segment{}
		for i, v := range t.values {
			if next[i] < from {
				next[i] = len(s)
				if n := strings.Index(s[from:], v.Text); n >= 0 {
					next[i] = from + n
				}
			}
			if next[i] < at {
				at, found = next[i], v
			}
		}
		if found.Text == "" || len(out) > marksMax {
			return append(out, segment{Text: s[from:]})
		}

		if at > from {
			out = append(out, segment{Text: s[from:at]})
		}
		out = append(out, found)
		from = at + len(found.Text)
	}

	return out
}

// layOut indents a JSON object or array. It returns "" for anything else.
func layOut(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '{' && s[0] != '[' || !json.Valid([]byte(s)) {
		return ""
	}

	var b strings.Builder
	e := json.NewEncoder(&b)
	// The page escapes it: escaped here it would be shown with its escapes.
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(json.RawMessage(s)) != nil {
		return ""
	}

	return strings.TrimSpace(b.String())
}

// shownMessage is a message as a page shows it.
type shownMessage struct {
	Message
	Texts []shownPart
	Tools []shownCall
}

type shownPart struct {
	Kind string
	shownText
	Image template.URL // or ""
	Link  string       // to media on another host, which the page does not load
}

// part prepares a part of a message for a page.
func (t *texts) part(p Part) shownPart {
	shown := shownPart{Kind: p.Kind, shownText: t.show(p.Text)}
	if len(p.Image) <= t.images {
		shown.Image = template.URL(p.Image) // its reader has checked every byte
		t.images -= len(p.Image)
	}

	if p.Kind == "media" && (strings.HasPrefix(p.Text, "https://") || strings.HasPrefix(p.Text, "http://")) {
		shown.Link = p.Text
	}

	return shown
}

type shownCall struct {
	ToolCall
	shownText
}

// messages prepares as many messages as the page has room for, and counts the others: a
// message with everything in it counts as one.
func (t *texts) messages(all []Message) []shownMessage {
	var out []shownMessage
	for _, m := range all {
		if !t.takePiece() {
			continue
		}

		shown := shownMessage{Message: m}
		for _, p := range m.Parts {
			if t.takePiece() {
				shown.Texts = append(shown.Texts, t.part(p))
			}
		}
		for _, c := range m.Calls {
			if t.takePiece() {
				shown.Tools = append(shown.Tools, shownCall{c, t.show(c.Arguments)})
			}
		}
		out = append(out, shown)
	}

	return out
}

// takePiece takes the room of one piece, and reports whether there was any. If there was
// none, it counts the piece as hidden.
func (t *texts) takePiece() bool {
	if t.pieces == 0 {
		t.hidden++
		return false
	}
	t.pieces--

	return true
}
