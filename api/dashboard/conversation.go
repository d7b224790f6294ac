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
	Raw     string    // the response as it came, where neither Output nor Failure shows all of it
}

// Failure says what went wrong: both may be "".
type Failure struct{ Type, Message string }

// Message is one turn of it.
type Message struct {
	Role, Name string
	Parts      []Part
	Calls      []ToolCall
	Answers    string // the id of the tool call that this answers
}

// Part is a piece of a message.
type Part struct {
	Kind string // text, thinking, refusal or media
	Text string // of media: its address, or what it is

	// Image is a picture as a data: URL, which holds nothing but base64; "" for none.
	Image string
}

// ToolCall is what the model asks a tool for.
type ToolCall struct{ ID, Name, Arguments string }

// segment is a stretch of text: the value of a variable, if it names one.
type segment struct{ Text, Variable string }

const (
	shownBytesMax = 16 << 10 // of one text; the rest is in the raw request
	pageTextMax   = 64 << 10 // of all texts of a page
	marksMax      = 200      // of one text
	markedMax     = 100      // values that are looked for: the longest
	markedBytes   = 4 << 10  // of one of these, at most
	piecesMax     = 1000     // messages, parts and tool calls of a page
	pageImagesMax = 8 << 20  // of all images of a page, as they are encoded

	scrolledBytesMin = 4 << 10
)

// texts cuts what a page shows of a conversation, and finds the values of variables in it.
type texts struct {
	values []segment // of variables, the longest first
	left   int       // bytes that the page may still show
	images int       // likewise of images
	pieces int       // messages, parts and tool calls that it may still show
	hidden int       // those that it does not show
}

// newTexts reads the values of a template's variables: an object. Values below two characters would be found everywhere,
// and very many or very long ones cost more than their marks are worth.
func newTexts(variables json.RawMessage) *texts {
	t := &texts{left: pageTextMax, images: pageImagesMax, pieces: piecesMax}
	var byName map[string]json.RawMessage
	_ = json.Unmarshal(variables, &byName) // none where there is no object
	for name, raw := range byName {
		value := string(raw)
		_ = json.Unmarshal(raw, &value) // anything but a string stays JSON
		if len(value) <= markedBytes && utf8.RuneCountInString(value) >= 2 {
			t.values = append(t.values, segment{value, name})
		}
	}
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
	Long     bool // shown in a box of its own that scrolls
	JSON     bool // folded, and laid out
}

// show cuts a text and marks the variables in it.
func (t *texts) show(s string) shownText {
	kept := s[:min(len(s), shownBytesMax, t.left)]
	for len(kept) < len(s) && len(kept) > 0 && !utf8.RuneStart(s[len(kept)]) {
		kept = kept[:len(kept)-1]
	}
	t.left -= len(kept)
	out := shownText{Cut: len(s) - len(kept), Long: len(kept) > scrolledBytesMin}
	if laid := layOut(kept); laid != "" && out.Cut == 0 {
		return shownText{Segments: []segment{{Text: laid}}, JSON: true}
	}
	out.Segments = t.mark(kept)
	return out
}

// mark cuts a text where a variable's value begins and ends: at each place the earliest value, and of those the longest.
func (t *texts) mark(s string) []segment {
	var out []segment
	next := make([]int, len(t.values)) // where each value comes next; it is looked for again only once that is passed
	for i := range next {
		next[i] = -1
	}

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

// layOut indents what is a JSON object or array; "" for anything else.
func layOut(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '{' && s[0] != '[' || !json.Valid([]byte(s)) {
		return ""
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
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
	Image template.URL // "" for none
	Link  string       // to media elsewhere, which the page does not load
}

// part is a part of a message as a page shows it.
func (t *texts) part(p Part) shownPart {
	shown := shownPart{Kind: p.Kind, shownText: t.show(p.Text)}
	if len(p.Image) <= t.images {
		shown.Image = template.URL(p.Image) // who read it has looked at every byte
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

// messages shows as many as a page has room for. What has no room is counted: a message with all that is in it is one.
func (t *texts) messages(all []Message) []shownMessage {
	var out []shownMessage
	for _, m := range all {
		if !t.room() {
			continue
		}

		shown := shownMessage{Message: m}
		for _, p := range m.Parts {
			if t.room() {
				shown.Texts = append(shown.Texts, t.part(p))
			}
		}
		for _, c := range m.Calls {
			if t.room() {
				shown.Tools = append(shown.Tools, shownCall{c, t.show(c.Arguments)})
			}
		}
		out = append(out, shown)
	}
	return out
}

// room takes room for one piece, and reports whether there was any.
func (t *texts) room() bool {
	if t.pieces == 0 {
		t.hidden++
		return false
	}
	t.pieces--
	return true
}
