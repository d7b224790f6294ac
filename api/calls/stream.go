package calls

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// A client that logs a stream as it came sends an array of its elements, or their text:
//
//	OpenAI chat       {choices:[{index, delta:{content, tool_calls:[{index, function}]},
//	                  finish_reason}], usage?}
//	OpenAI responses  {type:"response.completed", response:{...}} is the last and has everything;
//	                  one that was cut has only events, of an item each
//	Anthropic         message_start, content_block_start, content_block_delta, message_delta
//	Gemini            {candidates:[{content:{parts}, finishReason}], usageMetadata}; the last has
//	                  the final usage
//	Bedrock Converse  {contentBlockDelta:{delta:{text}}}, {messageStop:{stopReason}},
//	                  {metadata:{usage}}
//	others            see events and members
//
// It may also be a list of several answers.

// stream is the reading of a list. Texts and arguments are collected as bytes, because adding
// many pieces to a string would take quadratic time.
type stream struct {
	call    *Call
	reading *reading
	choices map[int64]*choice // of the answer that is being read
	last    *choice           // the one that was met last
	ofItems bool              // the choices are items of the responses API: pieces of one answer
	whole   bool              // the answer came in one piece
	ended   bool              // the answer has a reason to end
	endID   string            // the id of the element with that
	known   bool              // some element is of a stream, or an answer
	id      string            // the first that an answer has
	usage   *tally

	// Memory for the parts of an element.
	memory struct{ message, response, choice, delta index }
}

// readStream reads the list of a response, and reports whether it holds elements of a stream, or
// answers.
func (c *Call) readStream(list node, usage *tally) bool {
	s := stream{call: c, usage: usage, reading: cmp.Or(list.reading, &reading{}), choices: map[int64]*choice{}}
	met := s.reading.elements
	mayFail := slices.ContainsFunc(errorMarks, func(mark string) bool { return bytes.Contains(list.raw, []byte(mark)) })
	for e := range list.each {
		s.element(e, mayFail)
	}
	if !s.known {
		s.reading.elements = met // it is read once more, as something else
		return false
	}

	s.next()
	c.ResponseID = cmp.Or(Clip(s.id), c.ResponseID)
	c.Readable = len(c.Output) > 0 || c.FinishReason != ""

	return true
}

// chunkHas is what a chunk may have, by the names of its members.
type chunkHas int

const (
	hasModel   chunkHas = 1 << iota
	hasType             // an event's
	hasInner            // an object that may have a model and a usage, too
	hasChoice           // OpenAI's, or Gemini's candidate
	hasPiece            // of members
	hasWrapper          // of wrappers
)

// chunkOf looks at each name of a chunk once. Few chunks have more than one of these, and
// many are tiny: what a chunk lacks must not be looked for.
func chunkOf(n node) (has chunkHas) {
	for name := range n.names {
		switch string(name) {
		case "model", "modelVersion", "model_version", "llm_output", "llmOutput", "response_metadata":
			has |= hasModel
		case "message":
			has |= hasInner
		case "response":
			has |= hasInner | hasWrapper
		case "type":
			has |= hasType
		case "choices", "candidates":
			has |= hasChoice
		case "data", "body", "chunk", "modelOutput", "result":
			has |= hasWrapper
		case "messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "outputText", "generation",
			"completion", "outputs", "done", "token", "output":
			has |= hasPiece
		}
	}

	return has
}

// element reads one element of any provider. Nothing says whose stream this is, but an element has
// the members of one provider only.
func (s *stream) element(n node, mayFail bool) {
	has, kind := chunkOf(n), ""
	if has&hasType != 0 {
		kind = n.texts("type")
	}
	pieces, isEvent := events[kind]
	isEvent = isEvent || strings.HasPrefix(kind, "response.")
	if has&hasWrapper != 0 && !isEvent {
		n = responseOf(n)
		has, kind = chunkOf(n), n.texts("type")
		pieces, isEvent = events[kind]
	}

	switch {
	case isEvent:
		s.known = s.known || kind != "text" // which may be a part of a message
		s.take(n, kind, pieces)
	case has&hasChoice != 0 && s.chunk(n), has&hasPiece != 0 && s.takeMembers(n):
		s.known = true
	default:
		s.answer(n, kind)
	}
	if mayFail {
		s.fail(errorIn(n))
	}
	s.about(n, has, kind)
}

// about reads what an element says about the answer.
func (s *stream) about(n node, has chunkHas, kind string) {
	var message, response node
	if has&hasInner != 0 {
		message = n.at("message").indexedIn(&s.memory.message)
		response = n.at("response").indexedIn(&s.memory.response)
	}
	inner := message.or(response)
	switch {
	case s.id != "":
	case kind != "": // its id is that of an event or part
		s.id = inner.texts("id")
	default:
		s.id = idOf(n)
	}

	// Anthropic names the model in its first message, the responses API in each response.
	if !s.model(inner, chunkOf(inner)) {
		s.model(n, has)
	}
	s.usage.read(n)
}

// model takes the model from a chunk or its inner object, and reports whether there is one.
func (s *stream) model(n node, has chunkHas) bool {
	if has&hasModel == 0 {
		return false
	}
	m := answeredModel(n)
	if m != "" {
		s.call.Model, s.call.Asked = m, false
	}

	return m != ""
}

// fail takes the first error of a stream. The rest of it may have the usage.
func (s *stream) fail(f *Failure) {
	if f != nil && s.call.Failure == nil {
		s.known, s.call.Failure = true, f
	}
}

// choice returns the choice with an index.
func (s *stream) choice(index int64) *choice {
	if s.last != nil && s.last.index == index {
		return s.last
	}

	c := s.choices[index]
	if c == nil {
		if len(s.choices) > 0 {
			s.reading.countMessage()
		}
		c = &choice{index: index, message: Message{Role: "assistant"}, kind: PartText, calls: map[callKey]int{}}
		s.choices[index] = c
	}
	s.last = c

	return c
}

// clear forgets the pieces of an answer.
func (s *stream) clear() {
	clear(s.choices)
	s.last, s.ofItems = nil, false
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

// end notes why a choice ended.
func (s *stream) end(c *choice, n node, reason string) {
	if reason == "" || reason == "null" { // DashScope's, of all but the last
		return
	}
	c.finish = cmp.Or(c.finish, Clip(reason))
	s.ended, s.endID = true, idOf(n)
}

// chunk reads the choices of OpenAI's chat or completion, or Gemini's candidates. It reports whether n
// is a piece of an answer.
func (s *stream) chunk(n node) bool {
	choices := n.first("choices", "candidates")
	if !choices.isArray() {
		return false
	}

	// They count as one element with their chunk.
	for c := jsonscan.Enter(choices.raw, 0); c.Next(); {
		start := c.At
		c.At = jsonscan.SkipValue(choices.raw, start)
		choice := choices.part(start, c.At).indexedIn(&s.memory.choice)
		if choice.at("message").isObject() && !choice.at("delta").isObject() {
			return false
		}

		// A piece with another id, after the end of an answer, is of the next one.
		if content := choice.at("delta").or(choice).first("content", "tool_calls"); s.ended && !content.empty() {
			if id := idOf(n); id != "" && s.endID != "" && id != s.endID {
				s.next()
			}
		}
		if choice.hasMembers() {
			to := s.choice(choice.number("index"))
			s.openai(to, choice)
			// Gemini's, whose tool calls are never split.
			if content := choice.at("content"); content.exists() {
				to.add(readMessage(content, "assistant"))
			}
			s.end(to, n, choice.first("finish_reason", "finishReason").compact())
		}
	}

	return true
}

// openai reads a piece of a choice of OpenAI's chat or completion, and of all compatible APIs.
func (s *stream) openai(c *choice, n node) {
	c.write(PartText, n.texts("text")) // a completion's
	delta := n.at("delta").indexedIn(&s.memory.delta)
	if !delta.hasMembers() {
		return
	}

	c.write(PartThinking, thoughts(delta))
	if content := delta.at("content"); content.isText() {
		c.write(PartText, content.text())
	} else if content.exists() {
		c.add(readMessage(content, "assistant"))
	}
	c.write(PartRefusal, delta.texts("refusal"))
	c.write(PartText, delta.at("audio").texts("transcript"))
	for call := range delta.at("tool_calls").each {
		f := call.at("function")
		c.toolCall(indexOf(call), call.texts("id"), f.texts("name"), f.at("arguments").compact())
	}
	// The older form has a single call and no index.
	if f := delta.at("function_call"); f.isObject() {
		c.toolCall(0, "", f.texts("name"), f.texts("arguments"))
	}
}

// answer reads a whole answer. It has all of the pieces in front of it, if there are any, unless it
// follows another one.
func (s *stream) answer(n node, kind string) {
	// A list of messages is a conversation, unless they are answers of Anthropic's.
	if !n.isObject() || isMessage(n) && (kind != "message" || !n.first("stop_reason", "usage").exists()) {
		return
	}
	one := Call{}
	if !one.readResponse(n) || len(one.Output) == 0 && one.FinishReason == "" {
		return
	}

	if s.whole {
		s.next()
	}
	s.clear()
	s.known, s.whole = true, true
	s.end(s.choice(0), n, one.FinishReason)
	for i, m := range one.Output {
		s.choice(int64(i)).replace(m)
	}
}
