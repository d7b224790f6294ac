package calls

import "strings"

// partArguments is a piece of a tool call's arguments, which only streams have.
const partArguments PartKind = "arguments"

// piece is what an event adds to an answer, and where the event has it.
type piece struct {
	kind PartKind
	path []string
}

// events are the types of events of all providers. Those of OpenAI's responses that are not here say
// nothing about an answer, or have it whole.
var events = map[string][]piece{
	// Anthropic: https://docs.anthropic.com/en/api/messages-streaming
	"ping": nil, "message_start": nil, "message_delta": nil, "message_stop": nil,
	"content_block_start": nil, "content_block_stop": nil,
	"content_block_delta": {
		{PartText, []string{"delta", "text"}},
		{PartThinking, []string{"delta", "thinking"}},
		{partArguments, []string{"delta", "partial_json"}},
	},

	// OpenAI: https://platform.openai.com/docs/api-reference/responses-streaming
	"response.output_text.delta":                {{PartText, []string{"delta"}}},
	"response.refusal.delta":                    {{PartRefusal, []string{"delta"}}},
	"response.reasoning_text.delta":             {{PartThinking, []string{"delta"}}},
	"response.reasoning_summary_text.delta":     {{PartThinking, []string{"delta"}}},
	"response.audio.transcript.delta":           {{PartText, []string{"delta"}}},
	"response.audio_transcript.delta":           {{PartText, []string{"delta"}}},
	"response.output_audio_transcript.delta":    {{PartText, []string{"delta"}}},
	"response.function_call_arguments.delta":    {{partArguments, []string{"delta"}}},
	"response.mcp_call_arguments.delta":         {{partArguments, []string{"delta"}}},
	"response.custom_tool_call_input.delta":     {{partArguments, []string{"delta"}}},
	"response.code_interpreter_call_code.delta": {{partArguments, []string{"delta"}}},

	// Cohere v2: https://docs.cohere.com/v2/docs/streaming; and v1
	"message-start": nil, "message-end": nil, "content-end": nil, "tool-call-end": nil,
	"citation-start": nil, "citation-end": nil, "tool-call-start": nil,
	"content-start": cohereContent, "content-delta": cohereContent,
	"tool-plan-delta": {{PartText, []string{"delta", "message", "tool_plan"}}},
	"tool-call-delta": {{partArguments, []string{"delta", "message", "tool_calls", "function", "arguments"}}},
	"stream-start":    nil, "stream-end": nil, "text-generation": {{PartText, []string{"text"}}},

	// AI SDK: https://ai-sdk.dev/docs/ai-sdk-core/generating-text, and its protocol for pages
	"start": nil, "start-step": nil, "finish-step": nil, "finish": nil, "text-start": nil, "text-end": nil,
	"reasoning-start": nil, "reasoning-end": nil, "tool-input-start": nil, "tool-input-end": nil,
	"tool-call": nil, "tool-input-available": nil, "tool-result": nil, "tool-error": nil,
	"text":             {{PartText, []string{"text"}}},
	"text-delta":       aiPiece(PartText),
	"reasoning-delta":  aiPiece(PartThinking),
	"tool-input-delta": append(aiPiece(partArguments), piece{partArguments, []string{"inputTextDelta"}}),
}

var cohereContent = []piece{
	{PartText, []string{"delta", "message", "content", "text"}},
	{PartThinking, []string{"delta", "message", "content", "thinking"}},
}

// aiPiece returns where versions of the AI SDK have a piece.
func aiPiece(kind PartKind) []piece {
	return []piece{{kind, []string{"text"}}, {kind, []string{"delta"}}, {kind, []string{"textDelta"}}}
}

// event reads an event.
func (s *stream) event(n node, kind string, pieces []piece) {
	for _, p := range pieces {
		v := n.at(p.path...)
		if !v.exists() {
			continue
		}
		c := s.choiceOf(n, kind)
		if p.kind == partArguments {
			c.toolCall(indexOf(n), toolID(n, kind), "", v.text())
		} else {
			c.write(p.kind, v.text())
		}
	}

	delta := n.at("delta")
	switch kind {
	case "message_start", "message-start", "stream-start", "response.created":
		s.begin()
	case "content_block_start":
		s.block(n)
	case "message_delta", "message-end":
		s.end(s.choice(0), n, delta.texts("stop_reason", "finish_reason"))
	case "finish", "stream-end":
		s.end(s.choice(0), n, n.texts("finishReason", "finish_reason"))
	case "tool-call-start":
		call := delta.at("message", "tool_calls")
		f := call.at("function")
		s.choice(0).toolCall(indexOf(n), call.texts("id"), f.texts("name"), f.texts("arguments"))
	case "tool-input-start", "tool-call", "tool-input-available":
		c := s.choice(0)
		at := c.toolCall(-1, toolID(n, kind), n.texts("toolName"), "")
		if whole := n.first("input", "args").compact(); whole != "" {
			c.arguments[at] = []byte(whole)
		}
	case "response.content_part.added", "response.reasoning_summary_part.added":
		s.choiceOf(n, kind).endPart()
	case "response.output_item.added", "response.output_item.done":
		if m := readItem(n.at("item"), "assistant"); !m.empty() {
			s.choiceOf(n, kind).replace(m)
		}
	case "response.completed", "response.incomplete", "response.failed":
		s.response(n.at("response"))
	}
}

// choiceOf returns the choice that an event of a piece is of. OpenAI's responses have items.
func (s *stream) choiceOf(n node, kind string) *choice {
	if !strings.HasPrefix(kind, "response.") {
		return s.choice(0)
	}
	s.ofItems = true

	return s.choice(n.number("output_index"))
}

// toolID returns the id of the tool call that an event of the AI SDK is of.
func toolID(n node, kind string) string {
	id := n.texts("toolCallId")
	if id == "" && strings.HasPrefix(kind, "tool-input") {
		id = n.texts("id")
	}

	return id
}

// block begins a block of Anthropic's.
func (s *stream) block(n node) {
	c, block := s.choice(0), n.at("content_block")
	if t := block.texts("type"); strings.HasSuffix(t, "tool_use") {
		c.toolCall(indexOf(n), block.texts("id"), block.texts("name"), "")
		return
	}

	// A new block of text is its own part, even after another one of the same kind.
	c.endPart()
	var m Message
	m.part(block, depth{kind: PartText})
	c.take(m)
}

// response reads the whole answer at the end of OpenAI's responses. It replaces its pieces, whose
// numbers mean nothing in it.
func (s *stream) response(r node) {
	one := Call{}
	one.responses(r)
	if len(one.Output) > 0 {
		s.clear()
		s.choice(0).replace(one.Output[0])
	}
	s.end(s.choice(0), r, one.FinishReason)
}
