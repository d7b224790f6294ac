package calls

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire"
)

// choice is one of the choices of an answer while its pieces are read.
type choice struct {
	index     int64
	message   Message
	text      []byte // of the open part
	kind      PartKind
	calls     map[callKey]int // in message.ToolCalls
	arguments [][]byte        // of message.ToolCalls, until the stream ends; nil of whole ones
	finish    string
}

// callKey tells a choice's tool calls apart. Without an id it is the latest call of an index; the index
// -1 stands for all.
type callKey struct {
	index int64
	id    string
}

// write continues the open part, or opens one of another kind.
func (c *choice) write(kind PartKind, text string) {
	if text == "" {
		return
	}
	if kind != c.kind {
		c.endPart()
		c.kind = kind
	}
	c.text = append(c.text, text...)
}

// endPart adds the open part to the message.
func (c *choice) endPart() {
	c.message.add(c.kind, string(c.text))
	c.text = c.text[:0]
}

// soFar writes a text that may begin with all of the text in front of it.
func (c *choice) soFar(text string) {
	if strings.HasPrefix(text, string(c.text)) {
		c.text = c.text[:0]
	}
	c.write(PartText, text)
}

// add adds what a piece has, as if it were a message.
func (c *choice) add(m Message) {
	for _, p := range m.Parts {
		if p.Kind != PartMedia {
			c.write(p.Kind, p.Text)
			continue
		}
		c.endPart()
		c.message.Parts = append(c.message.Parts, p)
	}
	for _, call := range m.ToolCalls {
		c.message.ToolCalls = append(c.message.ToolCalls, call)
		c.arguments = append(c.arguments, nil)
	}
}

// begin adds the beginning of a part, or of a tool call. If that has arguments, they are whole.
func (c *choice) begin(index int64, m Message) {
	for _, call := range m.ToolCalls {
		at := c.toolCall(index, call.ID, call.Name, "")
		if call.Arguments != "" && call.Arguments != "{}" {
			c.arguments[at] = []byte(call.Arguments)
		}
	}
	m.ToolCalls = nil
	c.add(m)
}

// replace makes a message the whole of the choice.
func (c *choice) replace(m Message) {
	*c = choice{
		index:     c.index,
		message:   m,
		kind:      PartText,
		calls:     map[callKey]int{},
		arguments: make([][]byte, len(m.ToolCalls)),
		finish:    c.finish,
	}
	for at, call := range m.ToolCalls {
		c.remember(-1, call.ID, at)
	}
}

// done returns the message.
func (c *choice) done() Message {
	c.endPart()
	for at, arguments := range c.arguments {
		if arguments != nil {
			c.message.ToolCalls[at].Arguments = string(arguments)
		}
	}

	return c.message
}

// toolCall continues a tool call, or begins it, and returns its place among the calls.
func (c *choice) toolCall(index int64, id, name, arguments string) int {
	latest, follows := c.calls[callKey{index: index}]
	at, have := c.calls[callKey{index, id}]
	switch {
	case have && id != "":
	// An id may come after the name, and some servers give each piece a new one.
	case follows && id != "":
		at, have = latest, c.message.ToolCalls[latest].ID == "" && !c.isOther(latest, index, name, arguments) ||
			name == "" && arguments != ""
	case have:
		have = !c.isOther(at, index, name, arguments)
	}
	if !have {
		at = len(c.message.ToolCalls)
		c.message.ToolCalls = append(c.message.ToolCalls, ToolCall{})
		c.arguments = append(c.arguments, nil)
	}
	c.remember(index, id, at)

	call := &c.message.ToolCalls[at]
	if call.ID == "" {
		call.ID = id
	}
	switch {
	// Some servers repeat the name in each piece.
	case strings.HasPrefix(name, call.Name):
		call.Name = Clip(name)
	// A name may come in pieces too. Clipped each time, it does not grow with the chunks; and
	// one that is as long as it gets is not copied with each.
	case name != "" && utf8.RuneCountInString(call.Name) < wire.NameRunesMax:
		call.Name = Clip(call.Name + name)
	}
	c.arguments[at] = append(c.arguments[at], arguments...)

	return at
}

// remember notes where a tool call is.
func (c *choice) remember(index int64, id string, at int) {
	for _, key := range []callKey{{index, id}, {index, ""}, {-1, id}, {-1, ""}} {
		c.calls[key] = at
	}
}

// isOther reports whether a piece without an id that is known begins another tool call than the latest.
func (c *choice) isOther(latest int, index int64, name, arguments string) bool {
	before, begun := c.message.ToolCalls[latest].Name, c.arguments[latest]
	switch {
	case name == "" || before == "":
		return false
	case name != before:
		// Without an index, names are whole. Otherwise this may be the rest of one, in front of the arguments.
		return index < 0 || len(begun) > 0
	}

	// The same tool again: what it is called with was complete.
	return bytes.HasSuffix(begun, []byte("}")) && strings.HasPrefix(arguments, "{")
}
