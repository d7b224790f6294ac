package calls

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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
