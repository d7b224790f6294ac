package dashboard

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

// Conversation is a model call as people read it.
type Conversation struct {
	Input   []Message
	Output  []Message // one for each choice
	Failure *Failure  // nil if nothing went wrong
	Raw     string    // the raw response, if neither Output nor Failure shows all of it
	TooLong bool      // Raw has too many pieces to be taken apart

	Parameters []Parameter // sent beside the messages, in their order
	Tools      []Tool      // that the model could call
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

// Parameter is an argument of a call. Its value is text, or JSON.
type Parameter struct{ Name, Value string }

// Tool is a tool that was sent with a call. Definition is its JSON.
type Tool struct{ Name, Description, Definition string }

// speaks reports whether the message is somebody's words, which may be Markdown, and not what a
// tool returned.
func (m *Message) speaks() bool { return m.Role != "tool" && m.Role != "function" }

// text returns all that the message says, for the clipboard.
func (m *Message) text() string {
	var all []string
	for _, p := range m.Parts {
		all = append(all, p.Text)
	}
	for _, c := range m.Calls {
		all = append(all, c.Name+"("+c.Arguments+")")
	}

	return strings.Join(all, "\n")
}

// place names a text of a conversation in an address, such as input.3.part.0.
func place(parts ...any) string {
	var names []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			names = append(names, p)
		case int:
			names = append(names, strconv.Itoa(p))
		}
	}

	return strings.Join(names, ".")
}

// find returns the text at a place, and whether it may be Markdown.
func (c *Conversation) find(place string) (text string, prose, ok bool) {
	name, rest, _ := strings.Cut(place, ".")
	number, rest, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	isAt := func(length int) bool { return err == nil && i >= 0 && i < length }

	switch {
	case place == "answer":
		var all []string
		for _, m := range c.Output {
			all = append(all, m.text())
		}
		return strings.Join(all, "\n\n"), true, len(all) > 0
	case place == "error" && c.Failure != nil:
		return c.Failure.Message, false, true
	case place == "raw":
		return c.Raw, false, c.Raw != ""
	case name == "input" && isAt(len(c.Input)):
		return c.Input[i].find(rest)
	case name == "output" && isAt(len(c.Output)):
		return c.Output[i].find(rest)
	case name == "parameter" && isAt(len(c.Parameters)):
		return c.Parameters[i].Value, false, true
	case name == "tool" && isAt(len(c.Tools)):
		return c.Tools[i].Definition, false, true
	}

	return "", false, false
}

// find returns the text at a place in a message.
func (m *Message) find(place string) (text string, prose, ok bool) {
	kind, number, _ := strings.Cut(place, ".")
	i, err := strconv.Atoi(number)
	switch {
	case place == "":
		return m.text(), m.speaks(), true
	case err != nil || i < 0:
	case kind == "part" && i < len(m.Parts):
		return m.Parts[i].Text, m.speaks(), true
	case kind == "call" && i < len(m.Calls):
		return m.Calls[i].Arguments, false, true
	}

	return "", false, false
}

// picture returns the image at a place, as its Part has it, or "".
func (c *Conversation) picture(place string) string {
	var i, j int
	for direction, all := range map[string][]Message{"input": c.Input, "output": c.Output} {
		form := direction + ".%d.part.%d"
		n, _ := fmt.Sscanf(place, form, &i, &j)
		// Sscanf accepts whatever follows.
		if n != 2 || fmt.Sprintf(form, i, j) != place {
			continue
		}
		if i >= 0 && i < len(all) && j >= 0 && j < len(all[i].Parts) {
			return all[i].Parts[j].Image
		}
	}

	return ""
}

// shownMessage is a message as a page shows it.
type shownMessage struct {
	Message
	Texts []shownPart
	Tools []shownCall
	Copy  string // the address of its whole text; "" if it has none
}

type shownPart struct {
	Kind string
	shownText
	Image   template.URL // or ""
	Picture string       // the address of the image by itself; "" if it has none
	Link    string       // to media on another host, which the page does not load
}

// part prepares a part of a message for a page.
func (t *texts) part(at string, p Part, prose bool) shownPart {
	shown := shownPart{Kind: p.Kind}
	// What stands for media is short, and stands in a line.
	if p.Kind == "media" {
		shown.HTML = template.HTML(template.HTMLEscapeString(p.Text))
	} else {
		shown.shownText = t.show(at, p.Text, prose)
	}

	if p.Image != "" {
		shown.Picture = t.address(at)
	}
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

// messages prepares the messages that stand on the page, and counts those behind it: a message with
// everything in it counts as one.
func (t *texts) messages(direction string, all []Message) []shownMessage {
	var out []shownMessage
	for i, m := range all {
		first := t.seen
		t.seen += 1 + len(m.Parts) + len(m.Calls)
		switch {
		case t.seen <= t.from:
			continue
		case first >= t.from+piecesMax:
			t.hidden++
			continue
		}

		// Where a page begins within a message, its role is said again.
		shown := shownMessage{Message: m, Copy: t.address(place(direction, i))}
		for j, p := range m.Parts {
			if t.onPage(first + 1 + j) {
				shown.Texts = append(shown.Texts, t.part(place(direction, i, "part", j), p, m.speaks()))
			}
		}
		for j, c := range m.Calls {
			if t.onPage(first + 1 + len(m.Parts) + j) {
				at := place(direction, i, "call", j)
				shown.Tools = append(shown.Tools, shownCall{c, t.show(at, c.Arguments, false)})
			}
		}
		out = append(out, shown)
	}

	return out
}

// onPage reports whether a piece of a message stands on the page. One behind it is counted.
func (t *texts) onPage(piece int) bool {
	if piece >= t.from+piecesMax {
		t.hidden++
		return false
	}

	return piece >= t.from
}

// takePiece takes the room of a parameter or a tool, and reports whether there was any.
func (t *texts) takePiece() bool {
	t.pieces--

	return t.pieces >= 0
}
