package calls

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// A client that logs a stream as it came sends a list of its elements, or their text. Each element adds
// pieces to an answer; where they are is in the tables of stream_events.go. Besides, an element may name the
// answer's id and model, and have an error or counts of tokens.
//
// Nothing tells whose stream it is, but an element has the members of one provider only. The first may be any: a
// ping, null, the second event of a stream. A list may also hold whole answers.

// stream is the reading of a list.
type stream struct {
	call    *Call
	reading *reading
	usage   *tally
	known   bool   // some element is of a stream, or an answer
	id      string // the first that an answer has

	// Of the answer that is being read:
	choices map[int64]*choice
	ofItems bool   // the choices are items of OpenAI's responses: pieces of one message
	named   bool   // an element has said which model answers
	whole   bool   // it came in one piece
	ended   bool   // it has a reason to end
	endID   string // the id of the element with that

	// Memory for the parts of an element.
	memory struct{ choice, inner index }
}

// readStream reads the list of a response, and reports whether it holds elements of a stream, or
// answers.
func (c *Call) readStream(list node, usage *tally) bool {
	s := stream{call: c, usage: usage, reading: cmp.Or(list.reading, &reading{}), choices: map[int64]*choice{}}
	met := s.reading.elements
	mayFail := mayFail(list)
	for e := range list.each {
		s.element(e, mayFail)
	}
	if !s.known {
		// It is read once more, as something else.
		s.reading.elements = met
		return false
	}

	s.next()
	c.ResponseID = cmp.Or(Clip(s.id), c.ResponseID)
	c.Readable = c.isRead()

	return true
}

// element reads one element of any provider.
func (s *stream) element(n node, mayFail bool) {
	kind, pieces, isEvent := eventOf(n)
	if !isEvent && n.hasAny(wrappers) {
		n = responseOf(n, wrappersMax)
		kind, pieces, isEvent = eventOf(n)
	}

	switch {
	case isEvent:
		// A text may be a part of a message.
		s.known = s.known || kind != "text"
		s.ofItems = s.ofItems || strings.HasPrefix(kind, "response.")
		s.take(n, nil, pieces)
	case s.chunk(n), s.members(n):
		s.known = true
	// A list of messages is a conversation, unless they are answers of Anthropic's.
	case n.hasAny(answerNames) && (!isMessage(n) || kind == "message" && n.first("stop_reason", "usage").exists()):
		s.answer(n)
	}
	if s.ended && s.endID == "" {
		s.endID = idOf(n)
	}

	// The rest of a stream with an error may have the usage.
	if mayFail && s.call.Failure == nil {
		s.call.Failure = errorIn(n)
		s.known = s.known || s.call.Failure != nil
	}
	s.about(n, kind)
}

// aboutAnswers are members of elements that name an answer's id or model. Most elements of most streams have none.
var aboutAnswers = placesOf("id responseId response_id model modelVersion model_version message response",
	"llm_output llmOutput response_metadata")

// about reads what an element says about the answer.
func (s *stream) about(n node, kind string) {
	s.usage.read(n)
	if !n.hasAny(aboutAnswers) {
		return
	}

	message := n.at("message")
	switch {
	case s.id != "":
	// Its id is that of an event or a part.
	case kind != "":
		s.id = message.or(n.at("response")).texts("id")
	default:
		s.id = idOf(n)
	}

	// Anthropic names the model in its first message, and others in each element.
	if s.named {
		return
	}
	if m := cmp.Or(answeredModel(message), answeredModel(n)); m != "" {
		s.call.Model, s.call.Asked, s.named = m, false, true
	}
}

// chunk reads the choices of OpenAI's chat or completion, or Gemini's candidates. It reports whether n
// is a piece of an answer.
func (s *stream) chunk(n node) bool {
	choices := n.first("choices", "candidates")
	if !choices.isArray() {
		return false
	}
	// A piece with another id, after the end of an answer, is of the next one.
	if s.ended && s.endID != "" {
		if id := idOf(n); id != "" && id != s.endID {
			s.next()
		}
	}

	// They count as one element with their chunk.
	for c := jsonscan.Enter(choices.raw, 0); c.Next(); {
		start := c.At
		c.At = jsonscan.SkipValue(choices.raw, start)
		choice := choices.part(start, c.At).indexedIn(&s.memory.choice)
		if choice.at("message").isObject() && !choice.at("delta").isObject() {
			return false
		}
		if choice.hasMembers() {
			s.take(choice, s.choice(choice.number("index")), choicePieces)
		}
	}

	return true
}

// members reads an element that only its members tell, and reports whether it has a piece.
func (s *stream) members(n node) bool {
	for name := range n.names {
		if pieces := memberPieces[string(name)]; pieces != nil && s.take(n, nil, pieces) {
			return true
		}
	}

	return false
}

// answer reads a whole answer. It has all of the pieces in front of it, if there are any, unless it
// follows another one.
func (s *stream) answer(n node) {
	one := Call{}
	if !n.isObject() || !one.readResponse(n) || !one.isRead() {
		return
	}

	if s.whole {
		s.next()
	}
	// An answer that failed may lack what came of it.
	if len(one.Output) > 0 {
		s.clear()
	}
	for i, m := range one.Output {
		s.choice(int64(i)).replace(m)
	}
	s.known, s.whole = true, true
	s.end(s.choice(0), one.FinishReason)
}

// choice returns the choice with an index.
func (s *stream) choice(index int64) *choice {
	c := s.choices[index]
	if c == nil {
		if len(s.choices) > 0 {
			s.reading.countMessage()
		}
		c = newChoice()
		s.choices[index] = c
	}

	return c
}

// end notes why a choice ended.
func (s *stream) end(c *choice, reason string) {
	// DashScope's, of all but the last.
	if reason != "" && reason != "null" {
		c.finish = cmp.Or(c.finish, Clip(reason))
		s.ended = true
	}
}

// clear forgets the pieces of an answer.
func (s *stream) clear() {
	clear(s.choices)
	s.ofItems = false
}

// next ends the answer that is being read, if there is one.
func (s *stream) next() {
	if len(s.choices) == 0 {
		return
	}

	one := Message{Role: "assistant"}
	for _, index := range slices.Sorted(maps.Keys(s.choices)) {
		c := s.choices[index]
		s.call.finish(c.finish)
		if m := c.done(); s.ofItems {
			one.Parts = append(one.Parts, m.Parts...)
			one.ToolCalls = append(one.ToolCalls, m.ToolCalls...)
		} else {
			s.call.answer(m)
		}
	}
	s.call.answer(one)

	// Each answer has its own usage, of which an element has the counts so far.
	s.usage.next(s.call.Model)
	s.clear()
	s.whole, s.ended, s.endID = false, false, ""
}

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
