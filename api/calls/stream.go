package calls

import (
	"cmp"
	"unicode/utf8"

	"promptspool/api/wire"
)

// A client that logs a stream as it came sends an array of its chunks:
//
//	OpenAI chat       {choices:[{index, delta:{content, tool_calls:[{index, function}]},
//	                  finish_reason}], usage?}
//	OpenAI responses  {type:"response.completed", response:{...}} is the last and has everything
//	Anthropic         message_start, content_block_start, content_block_delta, message_delta
//	Gemini            {candidates:[{content:{parts}, finishReason}], usageMetadata}; the last has
//	                  the final usage
//	Bedrock Converse  {contentBlockDelta:{delta:{text}}}, {messageStop:{stopReason}},
//	                  {metadata:{usage}}

// isStream reports whether an array holds chunks.
func isStream(n node) bool {
	e := n.element()
	// A list of whole messages is not a stream.
	if !e.isObject() || e.at("role").exists() && e.at("content").exists() {
		return false
	}

	switch e.texts("type") {
	case "message_start", "response.created", "content_block_start", "content_block_delta":
		return true
	}

	return e.first("choices", "candidates", "messageStart", "contentBlockDelta").exists()
}

// stream is a call's answer while its chunks are read. Texts and arguments are collected
// as bytes, because adding many pieces to a string would take quadratic time.
type stream struct {
	call    *Call
	message Message
	text    []byte // of the open part
	kind    PartKind
	calls   map[int64]int  // a chunk's tool call index to one in message.ToolCalls
	tools   map[int][]byte // arguments of message.ToolCalls, until the stream ends

	// Memory for the parts of a chunk.
	memory struct{ message, response, metadata, choice, delta index }
}

// readStream assembles a stream. Of several choices the first is read.
func (c *Call) readStream(chunks node) {
	s := stream{
		call:    c,
		message: Message{Role: "assistant"},
		kind:    PartText,
		calls:   map[int64]int{},
		tools:   map[int][]byte{},
	}
	for e := range chunks.each {
		s.chunk(e)
	}
	s.endPart()
	for at, arguments := range s.tools {
		s.message.ToolCalls[at].Arguments += string(arguments)
	}

	c.Readable = !s.message.empty() || c.FinishReason != ""
	c.answer(s.message)
}

// chunkHas is what a chunk may have, by the names of its members.
type chunkHas int

const (
	hasModel chunkHas = 1 << iota
	hasTier
	hasUsage
	hasType     // Anthropic's, and OpenAI's responses
	hasInner    // an object that may have a model and a usage, too
	hasChoice   // OpenAI's, or Gemini's candidate
	hasConverse // Bedrock's
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
		case "message", "response", "metadata":
			has |= hasInner
		case "type":
			has |= hasType
		case "choices", "candidates":
			has |= hasChoice
		case "contentBlockStart", "contentBlockDelta", "messageStop":
			has |= hasConverse
		}
	}

	return has
}

// chunk reads one chunk of any provider. Nothing says whose stream this is, but a chunk has
// the members of one provider only.
func (s *stream) chunk(n node) {
	has := chunkOf(n)

	var kind string
	if has&hasType != 0 {
		kind = n.texts("type")
	}
	var message, response, metadata node
	if has&hasInner != 0 {
		message = n.at("message").indexedIn(&s.memory.message)
		response = n.at("response").indexedIn(&s.memory.response)
		metadata = n.at("metadata").indexedIn(&s.memory.metadata)
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
	if s.whole(response, kind) {
		return
	}

	if has&hasChoice != 0 {
		s.openai(n.at("choices").element().indexedIn(&s.memory.choice))
		s.gemini(n.at("candidates").element().indexedIn(&s.memory.choice))
	}
	if has&hasType != 0 {
		s.anthropic(n, kind)
	}
	if has&hasConverse != 0 {
		s.converse(n)
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

// whole reads a chunk of OpenAI's responses that has the answer so far, and reports
// whether it is one. The first two kinds come before there is an answer.
func (s *stream) whole(r node, kind string) bool {
	early := kind == "response.created" || kind == "response.in_progress"
	if !r.at("output").isArray() || len(s.call.Output) > 0 || early {
		return false
	}

	// The whole answer replaces its pieces, and their numbers mean nothing in it.
	s.call.responses(r)
	if len(s.call.Output) > 0 {
		s.message = s.call.Output[0]
		s.call.Output = nil
		clear(s.calls)
		clear(s.tools)
	}

	return true
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

// write continues the open part, or opens one of another kind.
func (s *stream) write(kind PartKind, text string) {
	if kind != s.kind {
		s.endPart()
		s.kind = kind
	}
	s.text = append(s.text, text...)
}

// endPart adds the open part to the message.
func (s *stream) endPart() {
	s.message.add(s.kind, string(s.text))
	s.text = s.text[:0]
}

// toolCall continues the call at index, or begins it.
func (s *stream) toolCall(index int64, id, name, arguments string) {
	at, have := s.calls[index]
	if !have {
		at = len(s.message.ToolCalls)
		s.calls[index] = at
		s.message.ToolCalls = append(s.message.ToolCalls, ToolCall{ID: id})
	}
	c := &s.message.ToolCalls[at]
	// A name may come in pieces too. Clipped each time, it does not grow with the chunks; and
	// one that is as long as it gets is not copied with each.
	if name != "" && utf8.RuneCountInString(c.Name) < wire.NameRunesMax {
		c.Name = Clip(c.Name + name)
	}
	s.tools[at] = append(s.tools[at], arguments...)
}

// openai reads a choice of OpenAI's chat or completion.
func (s *stream) openai(choice node) {
	if !choice.hasMembers() {
		return
	}

	s.call.finish(choice.texts("finish_reason"))
	if text := choice.texts("text"); text != "" { // a completion's
		s.write(PartText, text)
	}

	delta := choice.at("delta").indexedIn(&s.memory.delta)
	if !delta.hasMembers() {
		return
	}
	if text := delta.texts("reasoning_content", "reasoning"); text != "" {
		s.write(PartThinking, text)
	}
	if text := delta.texts("content"); text != "" {
		s.write(PartText, text)
	}
	if text := delta.texts("refusal"); text != "" {
		s.write(PartRefusal, text)
	}

	for c := range delta.at("tool_calls").each {
		f := c.at("function")
		s.toolCall(c.number("index"), c.texts("id"), f.texts("name"), f.texts("arguments"))
	}
	// The older form has a single call and no index.
	if f := delta.at("function_call"); f.isObject() {
		s.toolCall(0, "", f.texts("name"), f.texts("arguments"))
	}
}

// gemini reads a candidate of Gemini's, whose tool calls are never split.
func (s *stream) gemini(candidate node) {
	if !candidate.hasMembers() {
		return
	}

	s.call.finish(candidate.first("finishReason", "finish_reason").compact())
	m := readMessage(candidate.at("content"), "assistant")
	for _, p := range m.Parts {
		s.write(p.Kind, p.Text)
	}
	s.message.ToolCalls = append(s.message.ToolCalls, m.ToolCalls...)
}

// anthropic reads a chunk of Anthropic's messages.
func (s *stream) anthropic(n node, kind string) {
	index := n.number("index")
	switch kind {
	case "content_block_start":
		block := n.at("content_block")
		if t := block.texts("type"); t == "tool_use" || t == "server_tool_use" {
			s.toolCall(index, block.texts("id"), block.texts("name"), "")
		} else {
			// A new block of text is its own part, even
			// after another one of the same kind.
			s.endPart()
			s.delta(index, block)
		}
	case "content_block_delta":
		s.delta(index, n.at("delta"))
	case "message_delta":
		s.call.finish(n.at("delta").texts("stop_reason"))
	}
}

// delta reads a piece of Anthropic's block at index.
func (s *stream) delta(index int64, d node) {
	if text := d.texts("text"); text != "" {
		s.write(PartText, text)
	}
	if text := d.texts("thinking"); text != "" {
		s.write(PartThinking, text)
	}
	if arguments := d.texts("partial_json"); arguments != "" {
		s.toolCall(index, "", "", arguments)
	}
}

// converse reads a chunk of Bedrock's Converse.
func (s *stream) converse(n node) {
	if start := n.at("contentBlockStart"); start.isObject() {
		if use := start.at("start", "toolUse"); use.isObject() {
			s.toolCall(start.number("contentBlockIndex"), use.texts("toolUseId"), use.texts("name"), "")
		}
	}

	if d := n.at("contentBlockDelta"); d.isObject() {
		delta := d.at("delta")
		if text := delta.texts("text"); text != "" {
			s.write(PartText, text)
		}
		if text := delta.at("reasoningContent").texts("text"); text != "" {
			s.write(PartThinking, text)
		}
		if use := delta.at("toolUse"); use.isObject() {
			s.toolCall(d.number("contentBlockIndex"), "", "", use.texts("input"))
		}
	}

	s.call.finish(n.at("messageStop").texts("stopReason"))
}
