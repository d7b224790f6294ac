package calls

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire"
)

// choice is one of the choices of an answer while its pieces are read. Texts and arguments are collected
// as bytes, because adding many pieces to a string would take quadratic time.
type choice struct {
	message   Message
	text      []byte // of the open part
	kind      PartKind
	calls     map[callKey]int // in message.ToolCalls
	arguments [][]byte        // of message.ToolCalls, until the stream ends
	finish    string
}

// callKey tells a choice's tool calls apart. Without an id it is the latest call of an index; the index
// -1 stands for all.
type callKey struct {
	index int64
	id    string
}

func newChoice() *choice {
	return &choice{message: Message{Role: "assistant"}, kind: PartText, calls: map[callKey]int{}}
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

// add adds what a piece has, as if it were a message.
func (c *choice) add(m Message) {
	for _, p := range m.Parts {
		// Files and results are whole.
		if p.Kind != PartMedia && p.Kind != PartResult {
			c.write(p.Kind, p.Text)
			continue
		}
		c.endPart()
		c.message.Parts = append(c.message.Parts, p)
	}
	for _, call := range m.ToolCalls {
		c.addCall(-1, call)
	}
}

// addCall adds a tool call, and returns its place among the calls.
func (c *choice) addCall(index int64, call ToolCall) int {
	at := len(c.message.ToolCalls)
	c.message.ToolCalls = append(c.message.ToolCalls, call)
	c.arguments = append(c.arguments, []byte(call.Arguments))
	c.remember(index, call.ID, at)

	return at
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
	finish := c.finish
	*c = *newChoice()
	c.message.Role, c.message.Parts, c.finish = m.Role, m.Parts, finish
	c.add(Message{ToolCalls: m.ToolCalls})
}

// done returns the message.
func (c *choice) done() Message {
	c.endPart()
	for at, arguments := range c.arguments {
		c.message.ToolCalls[at].Arguments = string(arguments)
	}

	return c.message
}

// callPiece reads a piece of a tool call of OpenAI's, and of the function in it.
func (c *choice) callPiece(n, function node) {
	c.toolCall(indexOf(n), n.texts("id"), function.texts("name"), function.at("arguments").compact())
}

// toolCall continues a tool call, or begins it, and returns its place among the calls.
func (c *choice) toolCall(index int64, id, name, arguments string) int {
	at, have := c.calls[callKey{index, id}]
	if !have {
		at, have = c.calls[callKey{index: index}]
	}
	if !have || c.isOther(at, index, id, name, arguments) {
		at = c.addCall(index, ToolCall{ID: id})
	}
	c.remember(index, id, at)

	call := &c.message.ToolCalls[at]
	call.ID = cmp.Or(call.ID, id)
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

// isOther reports whether a piece begins another tool call than the latest with its id, or of its index.
func (c *choice) isOther(latest int, index int64, id, name, arguments string) bool {
	call, begun := c.message.ToolCalls[latest], c.arguments[latest]
	switch {
	case id != "" && id == call.ID:
		return false
	// Some servers give each piece a new id.
	case id != "" && call.ID != "":
		return name != "" || arguments == ""
	case name == "" || call.Name == "":
		return false
	// Without an index, names are whole. Otherwise this may be the rest of one, in front of the arguments.
	case name != call.Name:
		return index < 0 || len(begun) > 0
	}

	// The same tool again: what it is called with was complete.
	return bytes.HasSuffix(begun, []byte("}")) && strings.HasPrefix(arguments, "{")
}
