package calls

// A client that logs a stream as it came sends an array of its chunks:
//
//	OpenAI chat       {choices:[{index, delta:{content, tool_calls:[{index, function}]}, finish_reason}], usage?}
//	OpenAI responses  {type:"response.completed", response:{...}} is the last and has all
//	Anthropic         message_start, content_block_start, content_block_delta, message_delta
//	Gemini            {candidates:[{content:{parts}, finishReason}], usageMetadata}; the last has the final usage
//	Bedrock Converse  {contentBlockDelta:{delta:{text}}}, {messageStop:{stopReason}}, {metadata:{usage}}

// isStream says whether an array is of chunks.
func isStream(n node) bool {
	e := n.element()
	if !e.isObject() || e.at("role") != nil && e.at("content") != nil {
		return false
	}
	switch e.texts("type") {
	case "message_start", "response.created", "content_block_start", "content_block_delta":
		return true
	}
	return e.first("choices", "candidates", "messageStart", "contentBlockDelta") != nil
}

// stream is a call's answer while its chunks are read.
type stream struct {
	call    *Call
	message Message
	text    []byte // of the part that is open
	kind    PartKind
	calls   map[int64]int  // of a chunk's tool call index, in message.ToolCalls
	tools   map[int][]byte // arguments of message.ToolCalls, until the stream ends
}

// readStream puts a stream together. Of several choices the first is read.
func (c *Call) readStream(chunks node) {
	s := stream{call: c, message: Message{Role: "assistant"}, kind: PartText, calls: map[int64]int{}, tools: map[int][]byte{}}
	chunks.each(s.chunk)

	s.end()
	for at, arguments := range s.tools {
		s.message.ToolCalls[at].Arguments += string(arguments)
	}

	c.Readable = !s.message.empty() || c.FinishReason != ""
	c.answer(s.message)
}

func (s *stream) chunk(n node) {
	if !n.isObject() {
		return
	}
	if m := readModel(n.first("message", "response"), nil); m != "" {
		s.call.Model = m
	} else if m := readModel(n, nil); m != "" {
		s.call.Model = m
	}
	s.usage(n)
	if r := n.at("response"); r.at("output").isArray() && len(s.call.Output) == 0 && n.texts("type") != "response.created" && n.texts("type") != "response.in_progress" {
		s.call.responses(r)
		if len(s.call.Output) > 0 {
			// The whole answer takes the place of its pieces, and their numbers mean nothing in it.
			s.message = s.call.Output[0]
			s.call.Output = nil
			clear(s.calls)
			clear(s.tools)
		}
		return
	}
	s.openai(n.at("choices").element())
	s.gemini(n.at("candidates").element())
	s.anthropic(n)
	s.converse(n)
}

// usage takes each count from the last chunk that has it.
func (s *stream) usage(n node) {
	for _, place := range []node{n, n.at("message"), n.at("response"), n.at("metadata")} {
		u := readUsage(place)
		for _, c := range []struct{ to, from **int64 }{
			{&s.call.Usage.Input, &u.Input}, {&s.call.Usage.Output, &u.Output}, {&s.call.Usage.Cached, &u.Cached},
			{&s.call.Usage.CacheWrite, &u.CacheWrite}, {&s.call.Usage.CacheWriteHour, &u.CacheWriteHour},
			{&s.call.Usage.Reasoning, &u.Reasoning}, {&s.call.Usage.AudioInput, &u.AudioInput}, {&s.call.Usage.AudioOutput, &u.AudioOutput},
		} {
			if *c.from != nil {
				*c.to = *c.from
			}
		}
	}
	s.call.Usage.check()
	if t := tier(n.texts("service_tier")); t != "" {
		s.call.Tier = t
	}
}

// write goes on with the open part, or opens one of another kind.
func (s *stream) write(kind PartKind, text string) {
	if kind != s.kind {
		s.end()
		s.kind = kind
	}
	s.text = append(s.text, text...)
}

func (s *stream) end() {
	s.message.add(s.kind, string(s.text))
	s.text = s.text[:0]
}

// toolCall goes on with the call at index, which begins where it has a name.
func (s *stream) toolCall(index int64, id, name, arguments string) {
	at, have := s.calls[index]
	if !have {
		at = len(s.message.ToolCalls)
		s.calls[index] = at
		s.message.ToolCalls = append(s.message.ToolCalls, ToolCall{ID: id})
	}
	c := &s.message.ToolCalls[at]
	c.Name = Clip(c.Name + name)
	s.tools[at] = append(s.tools[at], arguments...)
}

func (s *stream) openai(choice node) {
	delta := choice.at("delta")
	s.call.finish(choice.texts("finish_reason"))
	if text := choice.texts("text"); text != "" { // a completion's
		s.write(PartText, text)
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
	delta.at("tool_calls").each(func(c node) {
		s.toolCall(c.index("index"), c.texts("id"), c.at("function").texts("name"), c.at("function").texts("arguments"))
	})
	if f := delta.at("function_call"); f.isObject() {
		s.toolCall(0, "", f.texts("name"), f.texts("arguments"))
	}
}

func (s *stream) gemini(candidate node) {
	s.call.finish(candidate.first("finishReason", "finish_reason").compact())
	m := readMessage(candidate.at("content"), "assistant")
	for _, p := range m.Parts {
		s.write(p.Kind, p.Text)
	}
	s.message.ToolCalls = append(s.message.ToolCalls, m.ToolCalls...)
}

func (s *stream) anthropic(n node) {
	index := n.index("index")
	switch n.texts("type") {
	case "content_block_start":
		block := n.at("content_block")
		if t := block.texts("type"); t == "tool_use" || t == "server_tool_use" {
			s.toolCall(index, block.texts("id"), block.texts("name"), "")
		} else {
			s.end()
			s.delta(index, block)
		}
	case "content_block_delta":
		s.delta(index, n.at("delta"))
	case "message_delta":
		s.call.finish(n.at("delta").texts("stop_reason"))
	}
}

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
