package calls

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
	// A list of whole messages is no stream.
	if !e.isObject() || e.at("role").exists() && e.at("content").exists() {
		return false
	}

	switch e.texts("type") {
	case "message_start", "response.created", "content_block_start", "content_block_delta":
		return true
	}

	return e.first("choices", "candidates", "messageStart", "contentBlockDelta").exists()
}

// stream is a call's answer while its chunks are read. Texts and arguments are gathered
// as bytes, because adding many pieces to a string would take quadratic time.
type stream struct {
	call    *Call
	message Message
	text    []byte // of the open part
	kind    PartKind
	calls   map[int64]int  // a chunk's tool call index to one in message.ToolCalls
	tools   map[int][]byte // arguments of message.ToolCalls, until the stream ends
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
	chunks.each(s.chunk)
	s.endPart()
	for at, arguments := range s.tools {
		s.message.ToolCalls[at].Arguments += string(arguments)
	}

	c.Readable = !s.message.empty() || c.FinishReason != ""
	c.answer(s.message)
}

// chunk reads one chunk of any provider.
func (s *stream) chunk(n node) {
	if !n.isObject() {
		return
	}

	// Anthropic names the model in its first message, the responses API in each response.
	if m := readModel(n.first("message", "response"), node{}); m != "" {
		s.call.Model = m
	} else if m := readModel(n, node{}); m != "" {
		s.call.Model = m
	}
	// Before whole, which may end the reading of this chunk.
	s.usage(n)
	if s.whole(n) {
		return
	}

	// Nothing says whose stream this is, but a chunk has the members of one provider only.
	s.openai(n.at("choices").element())
	s.gemini(n.at("candidates").element())
	s.anthropic(n)
	s.converse(n)
}

// whole reads a chunk of OpenAI's responses that has the answer so far, and reports
// whether it is one. The first two kinds come before there is an answer.
func (s *stream) whole(n node) bool {
	r, kind := n.at("response"), n.texts("type")
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

// usage takes each count from the last chunk that has it.
func (s *stream) usage(n node) {
	for _, place := range []node{n, n.at("message"), n.at("response"), n.at("metadata")} {
		u, into := readUsage(place), &s.call.Usage
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
	}
	// The parts and the whole may come from different chunks.
	s.call.Usage.check()

	if t := tier(n.texts("service_tier")); t != "" {
		s.call.Tier = t
	}
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
	// A name may come in pieces too. Clipped each time, it does not grow with the chunks.
	c.Name = Clip(c.Name + name)
	s.tools[at] = append(s.tools[at], arguments...)
}

// openai reads a choice of OpenAI's chat or completion.
func (s *stream) openai(choice node) {
	s.call.finish(choice.texts("finish_reason"))
	if text := choice.texts("text"); text != "" { // a completion's
		s.write(PartText, text)
	}

	delta := choice.at("delta")
	if text := delta.texts("reasoning_content", "reasoning"); text != "" {
		s.write(PartThinking, text)
	}
	if text := delta.texts("content"); text != "" {
		s.write(PartText, text)
	}
	if text := delta.texts("refusal"); text != "" {
		s.write(PartRefusal, text)
	}

	delta.at("tool_calls").each(func(c node) {
		f := c.at("function")
		s.toolCall(c.index("index"), c.texts("id"), f.texts("name"), f.texts("arguments"))
	})
	// The older form has a single call and no index.
	if f := delta.at("function_call"); f.isObject() {
		s.toolCall(0, "", f.texts("name"), f.texts("arguments"))
	}
}

// gemini reads a candidate of Gemini's, whose tool calls are never split.
func (s *stream) gemini(candidate node) {
	s.call.finish(candidate.first("finishReason", "finish_reason").compact())
	m := readMessage(candidate.at("content"), "assistant")
	for _, p := range m.Parts {
		s.write(p.Kind, p.Text)
	}
	s.message.ToolCalls = append(s.message.ToolCalls, m.ToolCalls...)
}

// anthropic reads a chunk of Anthropic's messages.
func (s *stream) anthropic(n node) {
	index := n.index("index")
	switch n.texts("type") {
	case "content_block_start":
		block := n.at("content_block")
		if t := block.texts("type"); t == "tool_use" || t == "server_tool_use" {
			s.toolCall(index, block.texts("id"), block.texts("name"), "")
		} else {
			// A new block of text is a part of its own, even
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
			s.toolCall(start.index("contentBlockIndex"), use.texts("toolUseId"), use.texts("name"), "")
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
			s.toolCall(d.index("contentBlockIndex"), "", "", use.texts("input"))
		}
	}

	s.call.finish(n.at("messageStop").texts("stopReason"))
}
