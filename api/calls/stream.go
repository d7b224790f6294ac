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
//	Cohere, AI SDK    {type:"content-delta"}, {type:"text-delta"} and others, see events
//	Ollama            {message or response, done}
//	DashScope         {output:{text or choices}}, with the text so far or with a piece
//	TGI, Titan, ...   {token:{text}}, {outputText}
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
	endID   string            // the id that it ended with
	known   bool              // some element is of a stream, or an answer
	id      string            // the first that an answer has
	before  *Usage            // of the answers in front of this one; nil without any

	// Memory for the parts of an element.
	memory struct{ message, response, metadata, choice, delta index }
}

// readStream reads the list of a response, and reports whether it holds elements of a stream, or
// answers.
func (c *Call) readStream(list node) bool {
	s := stream{call: c, reading: list.reading, choices: map[int64]*choice{}}
	var before int
	if list.reading != nil {
		before = list.reading.elements
	}
	for e := range list.each {
		s.element(e)
	}
	if !s.known {
		// It is read once more, as something else.
		if list.reading != nil && !list.reading.over {
			list.reading.elements = before
		}
		return false
	}

	s.next()
	if s.before != nil {
		c.Usage = *s.before
	}
	c.ResponseID = cmp.Or(Clip(s.id), c.ResponseID)
	c.Readable = len(c.Output) > 0 || c.FinishReason != ""

	return true
}

// chunkHas is what a chunk may have, by the names of its members.
type chunkHas int

const (
	hasModel chunkHas = 1 << iota
	hasTier
	hasUsage
	hasType     // an event's
	hasInner    // an object that may have a model and a usage, too
	hasChoice   // OpenAI's, or Gemini's candidate
	hasConverse // Bedrock's
	hasText     // a piece of a lone text
	hasOutput   // DashScope's, or a whole answer's
	hasDone     // Ollama's
	hasError
	hasWrapper // of wrappers
)

// chunkOf looks at each name of a chunk once. Few chunks have more than one of these, and
// many are tiny: what a chunk lacks must not be looked for.
func chunkOf(n node) (has chunkHas) {
	for name := range n.names {
		switch string(name) {
		case "model", "modelVersion", "model_version":
			has |= hasModel
		case "llm_output", "llmOutput":
			has |= hasModel | hasUsage
		case "service_tier":
			has |= hasTier
		case "usage", "usageMetadata", "usage_metadata", "meta", "response_metadata", "results",
			"prompt_token_count", "inputTextTokenCount", "prompt_eval_count", "generation_token_count", "eval_count":
			has |= hasUsage
		case "message", "metadata":
			has |= hasInner
		case "response":
			has |= hasInner | hasWrapper
		case "type", "event_type":
			has |= hasType
		case "choices", "candidates":
			has |= hasChoice
		case "messageStart", "contentBlockStart", "contentBlockDelta", "messageStop":
			has |= hasConverse
		case "outputText", "generation", "completion", "outputs", "token":
			has |= hasText
		case "output", "generated_text":
			has |= hasOutput
		case "done":
			has |= hasDone
		case "error", "Error", "errors", "promptFeedback", "prompt_feedback", "last_error", "code":
			has |= hasError
		case "data", "body", "chunk", "modelOutput":
			has |= hasWrapper
		case "result":
			has |= hasWrapper | hasError
		default:
			if bytes.HasSuffix(name, []byte("Exception")) {
				has |= hasError
			}
		}
	}

	return has
}

// element reads one element of any provider. Nothing says whose stream this is, but an element has
// the members of one provider only.
func (s *stream) element(n node) {
	has := chunkOf(n)
	var kind string
	if has&hasType != 0 {
		kind = n.texts("type", "event_type")
	}
	pieces, isEvent := events[kind]
	if has&hasWrapper != 0 && !isEvent && !strings.HasPrefix(kind, "response.") {
		n = responseOf(n)
		has, kind = chunkOf(n), n.texts("type", "event_type")
		pieces, isEvent = events[kind]
	}

	switch {
	case isEvent || strings.HasPrefix(kind, "response."):
		s.known = s.known || kind != "text" // which may be a part of a message
		s.event(n, kind, pieces)
	case has&hasConverse != 0:
		s.known = true
		s.converse(n)
	case has&hasChoice != 0 && s.chunk(n):
		s.known = true
	case has&(hasDone|hasText|hasOutput) != 0 && s.plain(n):
		s.known = true
	case has != 0:
		s.answer(n, kind)
	}

	if has&hasError != 0 || kind == "error" || kind == "message-end" || kind == "response.failed" {
		s.fail(errorIn(n))
	}
	s.about(n, has, kind)
}

// about reads what an element says about the answer.
func (s *stream) about(n node, has chunkHas, kind string) {
	var message, response, metadata node
	if has&hasInner != 0 {
		message = n.at("message").indexedIn(&s.memory.message)
		response = n.at("response").indexedIn(&s.memory.response)
		metadata = n.at("metadata").indexedIn(&s.memory.metadata)
	}
	switch inner := message.or(response); {
	// Other events have ids of their own.
	case s.id == "" && kind != "":
		s.id = inner.texts("id")
	case s.id == "":
		s.id = n.texts("id", "responseId", "response_id")
	}
	// Anthropic names the model in its first message, the responses API in each response.
	if inner := message.or(response); !s.model(inner, chunkOf(inner)) {
		s.model(n, has)
	}
	if has&hasTier != 0 {
		s.call.Tier = cmp.Or(tier(n.texts("service_tier")), s.call.Tier)
	}
	s.usage(n, has)
	s.usage(message, chunkOf(message))
	s.usage(response, chunkOf(response))
	s.usage(metadata, chunkOf(metadata))
	if kind == "message-end" { // Cohere's
		delta := n.at("delta").indexedIn(&s.memory.delta)
		s.usage(delta, chunkOf(delta))
	}
}

// model takes the model from a chunk or its inner object, and reports whether there is one.
func (s *stream) model(n node, has chunkHas) bool {
	if has&hasModel == 0 {
		return false
	}
	m := readModel(n, node{})
	s.call.Model = cmp.Or(m, s.call.Model)

	return m != ""
}

// usage takes each count from the last chunk, or inner object, that has it.
func (s *stream) usage(n node, has chunkHas) {
	if has&hasUsage == 0 {
		return
	}

	u, into := readUsage(n), &s.call.Usage
	for _, c := range []struct{ to, from **int64 }{
		{&into.Input, &u.Input},
		{&into.Output, &u.Output},
		{&into.Cached, &u.Cached},
		{&into.CacheWrite, &u.CacheWrite},
		{&into.CacheWriteHour, &u.CacheWriteHour},
		{&into.Reasoning, &u.Reasoning},
		{&into.AudioInput, &u.AudioInput},
		{&into.AudioOutput, &u.AudioOutput},
	} {
		if *c.from != nil {
			*c.to = *c.from
		}
	}
	// The parts and the whole may come from different chunks.
	into.check()
}

// fail takes the first error of a stream. The rest of it may have the usage.
func (s *stream) fail(f *Failure) {
	if f == nil {
		return
	}
	s.known = true
	if s.call.Failure == nil {
		s.call.Failure = f
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

// begin begins another answer, if there is one in front of it.
func (s *stream) begin() {
	if len(s.choices) > 0 {
		s.next()
	}
}

// next ends the answer that is being read.
func (s *stream) next() {
	all := make([]*choice, 0, len(s.choices))
	for _, index := range slices.Sorted(maps.Keys(s.choices)) {
		all = append(all, s.choices[index])
	}
	one := Message{Role: "assistant"}
	for _, c := range all {
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
	if len(all) > 0 {
		u := s.call.Usage
		if s.before != nil {
			u = s.before.plus(&u)
		}
		s.before, s.call.Usage = &u, Usage{}
	}
	s.clear()
	s.whole, s.ended, s.endID = false, false, ""
}

// clear forgets the pieces of an answer.
func (s *stream) clear() {
	clear(s.choices)
	s.last, s.ofItems = nil, false
}

// plus returns the usage of two answers. One that does not say how much went in or out makes both
// unknown.
func (u *Usage) plus(v *Usage) Usage {
	both := func(a, b *int64) *int64 {
		if b == nil {
			return nil
		}
		return sum(a, b)
	}
	part := func(a, b *int64) *int64 {
		if a == nil {
			return b
		}
		return sum(a, b)
	}

	return Usage{
		Input:          both(u.Input, v.Input),
		Output:         both(u.Output, v.Output),
		Cached:         part(u.Cached, v.Cached),
		CacheWrite:     part(u.CacheWrite, v.CacheWrite),
		CacheWriteHour: part(u.CacheWriteHour, v.CacheWriteHour),
		Reasoning:      part(u.Reasoning, v.Reasoning),
		AudioInput:     part(u.AudioInput, v.AudioInput),
		AudioOutput:    part(u.AudioOutput, v.AudioOutput),
	}
}

// end notes why a choice ended.
func (s *stream) end(c *choice, n node, reason string) {
	if reason == "" || reason == "null" { // DashScope's, of all but the last
		return
	}
	c.finish = cmp.Or(c.finish, Clip(reason))
	s.ended, s.endID = true, n.texts("id", "responseId", "response_id")
}

// isOther reports whether an element with content is of another answer than the one that ended.
func (s *stream) isOther(n node) bool {
	if !s.ended {
		return false
	}
	id := n.texts("id", "responseId", "response_id")

	return id != "" && s.endID != "" && id != s.endID
}

// chunk reads the choices of OpenAI's chat or completion, or Gemini's candidates. It reports whether n
// is a piece of an answer.
func (s *stream) chunk(n node) bool {
	choices := n.first("choices", "candidates")
	isGemini := n.at("candidates").exists()
	if !choices.isArray() {
		return false
	}

	// They count as one element with their chunk.
	for c := jsonscan.Enter(choices.raw, 0); c.Next(); {
		start := c.At
		c.At = jsonscan.SkipValue(choices.raw, start)
		choice := choices.part(start, c.At).indexedIn(&s.memory.choice)
		switch {
		case !choice.hasMembers():
		case isGemini:
			s.gemini(n, choice)
		case choice.at("message").isObject() && !choice.at("delta").isObject():
			return false
		default:
			s.openai(n, choice)
		}
	}

	return true
}

// openai reads a choice of OpenAI's chat or completion, and of all compatible APIs.
func (s *stream) openai(n, choice node) {
	delta := choice.at("delta").indexedIn(&s.memory.delta)
	content := delta.at("content")
	if len(content.raw) > 2 && s.isOther(n) {
		s.next()
	}
	c := s.choice(choice.number("index"))
	if e := choice.at("error"); e.exists() {
		s.fail(errorAt(e))
	}
	s.end(c, n, choice.texts("finish_reason"))
	c.write(PartText, choice.texts("text")) // a completion's
	if !delta.hasMembers() {
		return
	}

	c.write(PartThinking, thoughts(delta))
	if content.isText() {
		c.write(PartText, content.text())
	} else if content.exists() {
		c.take(readMessage(content, "assistant"))
	}
	c.write(PartRefusal, delta.texts("refusal"))
	c.write(PartText, delta.at("audio").texts("transcript"))
	for call := range delta.at("tool_calls").each {
		f := call.at("function")
		c.toolCall(indexOf(call), call.texts("id"), f.texts("name"), f.first("arguments").compact())
	}
	// The older form has a single call and no index.
	if f := delta.at("function_call"); f.isObject() {
		c.toolCall(0, "", f.texts("name"), f.texts("arguments"))
	}
}

// indexOf returns the index of a piece, -1 if it has none.
func indexOf(n node) int64 {
	if i := n.at("index").count(); i != nil {
		return *i
	}

	return -1
}

// gemini reads a candidate of Gemini's, whose tool calls are never split.
func (s *stream) gemini(n, candidate node) {
	content := candidate.at("content")
	if content.exists() && s.isOther(n) {
		s.next()
	}
	c := s.choice(candidate.number("index"))
	c.take(readMessage(content, "assistant"))
	s.end(c, n, candidate.first("finishReason", "finish_reason").compact())
}

// plain reads a piece of a stream that has a lone text or message in each element, and reports whether
// it is one.
func (s *stream) plain(n node) bool {
	m := Message{Role: "assistant"}
	output, ends := n.at("output"), n
	isPiece, soFar := true, false
	switch message, token := n.at("message"), n.at("token"); {
	case n.at("done").exists() && message.isObject():
		m = readMessage(message, "assistant")
	case n.at("done").exists() && n.at("response").isText():
		m.add(PartThinking, n.texts("thinking"))
		m.add(PartText, n.texts("response"))
	case token.at("text").isText():
		if string(token.at("special").raw) != "true" {
			m.add(PartText, token.texts("text"))
		}
		ends = n.at("details")
	case output.at("text").isText():
		m.add(PartText, output.texts("text"))
		ends, soFar = output, true
	case output.at("choices").isArray():
		ends, soFar = output.at("choices").element(), true
		m = readMessage(ends.at("message"), "assistant")
	default:
		piece := n.first("outputText", "generation", "completion").or(n.at("outputs").element().at("text"))
		m.add(PartText, piece.text())
		isPiece = piece.isText()
		ends = n.at("outputs").element().or(n)
	}
	if !isPiece {
		return false
	}

	// None of these has an id: after the end, another answer begins.
	if s.ended && !m.empty() {
		s.next()
	}
	c := s.choice(0)
	if soFar {
		c.soFar(&m)
	}
	c.take(m)
	s.end(c, n, ends.texts("done_reason", "stop_reason", "completionReason", "finish_reason"))

	return true
}

// answer reads a whole answer. It has all of the pieces in front of it, if there are any, unless it
// follows another one.
func (s *stream) answer(n node, kind string) {
	// A list of messages is a conversation, unless they are answers of Anthropic's.
	if isMessage(n) && (kind != "message" || !n.first("stop_reason", "usage").exists()) {
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

// converse reads an event of Bedrock's Converse.
func (s *stream) converse(n node) {
	if n.at("messageStart").exists() {
		s.begin()
	}
	c := s.choice(0)
	start, piece := n.at("contentBlockStart"), n.at("contentBlockDelta")
	if use := start.at("start", "toolUse"); use.isObject() {
		c.toolCall(start.number("contentBlockIndex"), use.texts("toolUseId"), use.texts("name"), "")
	}

	if delta := piece.at("delta"); delta.isObject() {
		c.write(PartText, delta.texts("text"))
		c.write(PartThinking, delta.at("reasoningContent").texts("text"))
		if use := delta.at("toolUse"); use.isObject() {
			c.toolCall(piece.number("contentBlockIndex"), "", "", use.texts("input"))
		}
	}

	s.end(c, n, n.at("messageStop").texts("stopReason"))
}
