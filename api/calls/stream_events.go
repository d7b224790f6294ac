package calls

import "strings"

// The kinds of pieces, besides those of a message's parts.
const (
	pieceArguments PartKind = "arguments" // of a tool call
	pieceSoFar     PartKind = "so far"    // a text that may begin with all of the text in front of it
	pieceCall      PartKind = "call"      // a tool call, perhaps without its arguments
	pieceCalls     PartKind = "calls"     // pieces of OpenAI's
	pieceThoughts  PartKind = "thoughts"
	pieceMessage   PartKind = "message"
	pieceBlock     PartKind = "block"  // the beginning of a part
	pieceItem      PartKind = "item"   // the whole of one
	pieceBegin     PartKind = "begin"  // of an answer
	pieceBreak     PartKind = "break"  // between two parts
	pieceEnd       PartKind = "end"    // why the answer ended
	pieceAnswer    PartKind = "answer" // all of it
)

// path is the names on the way to a value. Of a list it takes the first element; nil is the element itself.
type path []string

// piece is what an element of a stream adds to an answer, and where the element has it.
type piece struct {
	kind PartKind
	path path
}

// choicePieces are those of a choice of OpenAI's chat or completion, and all compatible APIs, or of a candidate
// of Gemini's, whose tool calls are never split.
var choicePieces = []piece{
	{PartText, path{"text"}}, // of a completion
	{pieceThoughts, path{"delta"}},
	{pieceMessage, path{"delta", "content"}},
	{PartRefusal, path{"delta", "refusal"}},
	{PartText, path{"delta", "audio", "transcript"}},
	{pieceCalls, path{"delta", "tool_calls"}},
	{pieceCalls, path{"delta", "function_call"}}, // the older form, of one
	{pieceMessage, path{"content"}},
	{pieceEnd, path{"finish_reason"}}, {pieceEnd, path{"finishReason"}},
}

// events are the pieces of events, by their type. Those of OpenAI's responses that are not here add
// nothing.
var events = map[string][]piece{
	// Anthropic: https://docs.anthropic.com/en/api/messages-streaming
	"message_start":       {{pieceBegin, nil}},
	"content_block_start": {{pieceBlock, path{"content_block"}}},
	"content_block_delta": {
		{PartText, path{"delta", "text"}}, {PartThinking, path{"delta", "thinking"}},
		{pieceArguments, path{"delta", "partial_json"}},
	},
	"message_delta": {{pieceEnd, path{"delta", "stop_reason"}}},
	"ping":          nil, "content_block_stop": nil, "message_stop": nil,

	// OpenAI: https://platform.openai.com/docs/api-reference/responses-streaming
	"response.created":                          {{pieceBegin, nil}},
	"response.output_text.delta":                {{PartText, path{"delta"}}},
	"response.refusal.delta":                    {{PartRefusal, path{"delta"}}},
	"response.reasoning_text.delta":             {{PartThinking, path{"delta"}}},
	"response.reasoning_summary_text.delta":     {{PartThinking, path{"delta"}}},
	"response.audio.transcript.delta":           {{PartText, path{"delta"}}},
	"response.audio_transcript.delta":           {{PartText, path{"delta"}}},
	"response.output_audio_transcript.delta":    {{PartText, path{"delta"}}},
	"response.output_text.done":                 {{pieceItem, path{"text"}}},
	"response.function_call_arguments.delta":    {{pieceArguments, path{"delta"}}},
	"response.function_call_arguments.done":     {{pieceCall, nil}},
	"response.mcp_call_arguments.delta":         {{pieceArguments, path{"delta"}}},
	"response.custom_tool_call_input.delta":     {{pieceArguments, path{"delta"}}},
	"response.code_interpreter_call_code.delta": {{pieceArguments, path{"delta"}}},
	"response.content_part.added":               {{pieceBreak, nil}},
	"response.reasoning_summary_part.added":     {{pieceBreak, nil}},
	"response.output_item.added":                {{pieceItem, path{"item"}}},
	"response.output_item.done":                 {{pieceItem, path{"item"}}},
	"response.completed":                        {{pieceAnswer, path{"response"}}},
	"response.incomplete":                       {{pieceAnswer, path{"response"}}},
	"response.failed":                           {{pieceAnswer, path{"response"}}},

	// Cohere v2: https://docs.cohere.com/v2/docs/streaming
	"message-start":   {{pieceBegin, nil}},
	"content-start":   cohereContent,
	"content-delta":   cohereContent,
	"tool-plan-delta": {{PartText, path{"delta", "message", "tool_plan"}}},
	"tool-call-start": {{pieceCall, path{"delta", "message", "tool_calls"}}},
	"tool-call-delta": {{pieceArguments, path{"delta", "message", "tool_calls", "function", "arguments"}}},
	"message-end":     {{pieceEnd, path{"delta", "finish_reason"}}},
	"content-end":     nil, "tool-call-end": nil, "citation-start": nil, "citation-end": nil,

	// and its older form
	"stream-start":    {{pieceBegin, nil}},
	"text-generation": {{PartText, path{"text"}}},
	"stream-end":      {{pieceAnswer, path{"response"}}, {pieceEnd, path{"finish_reason"}}},

	// Mistral's conversations: https://docs.mistral.ai/agents/agents
	"message.output.delta": {{pieceMessage, path{"content"}}},

	// AI SDK: https://ai-sdk.dev/docs/ai-sdk-core/generating-text; its versions name pieces otherwise
	"text":       {{PartText, path{"text"}}},
	"text-start": {{pieceBreak, nil}},
	"text-delta": {{PartText, path{"text"}}, {PartText, path{"delta"}}, {PartText, path{"textDelta"}}},
	"reasoning-delta": {
		{PartThinking, path{"text"}}, {PartThinking, path{"delta"}}, {PartThinking, path{"textDelta"}},
	},
	"tool-input-start": {{pieceCall, nil}}, "tool-call": {{pieceCall, nil}}, "tool-input-available": {{pieceCall, nil}},
	"tool-input-delta": {{pieceArguments, path{"delta"}}, {pieceArguments, path{"inputTextDelta"}}},
	"finish":           {{pieceEnd, path{"finishReason"}}},
	"start":            nil, "start-step": nil, "finish-step": nil, "text-end": nil, "reasoning-start": nil,
	"reasoning-end": nil, "tool-input-end": nil, "tool-result": nil, "tool-error": nil,
}

var cohereContent = []piece{
	{PartText, path{"delta", "message", "content", "text"}},
	{PartThinking, path{"delta", "message", "content", "thinking"}},
}

// memberPieces are those of elements without a type, by the member that marks them.
var memberPieces = map[string][]piece{
	// Bedrock Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
	"messageStart":      {{pieceBegin, nil}},
	"contentBlockStart": {{pieceCall, path{"contentBlockStart", "start", "toolUse"}}},
	"contentBlockDelta": {
		{PartText, path{"contentBlockDelta", "delta", "text"}},
		{PartThinking, path{"contentBlockDelta", "delta", "reasoningContent", "text"}},
		{pieceArguments, path{"contentBlockDelta", "delta", "toolUse", "input"}},
	},
	"messageStop": {{pieceEnd, path{"messageStop", "stopReason"}}},

	// Models on Bedrock: Titan, Llama, older ones of Anthropic and Mistral
	"outputText": {{PartText, path{"outputText"}}, {pieceEnd, path{"completionReason"}}},
	"generation": {{PartText, path{"generation"}}, {pieceEnd, path{"stop_reason"}}},
	"completion": {{PartText, path{"completion"}}, {pieceEnd, path{"stop_reason"}}},
	"outputs":    {{PartText, path{"outputs", "text"}}, {pieceEnd, path{"outputs", "stop_reason"}}},

	// Ollama: https://github.com/ollama/ollama/blob/main/docs/api.md
	"done": {
		{pieceMessage, path{"message"}}, {PartThinking, path{"thinking"}}, {PartText, path{"response"}},
		{pieceEnd, path{"done_reason"}},
	},
	// TGI: https://huggingface.co/docs/text-generation-inference
	"token": {
		{PartText, path{"token", "text"}}, {pieceItem, path{"generated_text"}},
		{pieceEnd, path{"details", "finish_reason"}},
	},
	// DashScope: https://www.alibabacloud.com/help/en/model-studio/qwen-api-via-dashscope
	"output": {
		{PartThinking, path{"output", "choices", "message", "reasoning_content"}},
		{pieceSoFar, path{"output", "text"}}, {pieceSoFar, path{"output", "choices", "message", "content"}},
		{pieceEnd, path{"output", "finish_reason"}}, {pieceEnd, path{"output", "choices", "finish_reason"}},
	},
}

// eventOf returns the type of an event, and its pieces.
func eventOf(n node) (kind string, pieces []piece, isEvent bool) {
	kind = n.texts("type", "event_type")
	pieces, isEvent = events[kind]

	return kind, pieces, isEvent || strings.HasPrefix(kind, "response.")
}

// take reads the pieces of an element, or of a choice in it, and reports whether there are any.
func (s *stream) take(n node, to *choice, pieces []piece) (any bool) {
	var base node
	for i, p := range pieces {
		v := n
		if len(p.path) > 0 {
			// Most pieces of an element are within the same member.
			if i == 0 || p.path[0] != pieces[i-1].path[0] {
				base = n.at(p.path[0]).indexedIn(&s.memory.inner)
			}
			v = base
			for _, name := range p.path[1:] {
				v = v.element().or(v).at(name)
			}
		}
		if !v.exists() {
			continue
		}
		any = true

		text, c := v.text(), to
		if c == nil {
			// None of these has an id: after the end, another answer begins.
			if p.kind == pieceBegin || s.ended && (text != "" || p.kind == pieceMessage) && p.kind != pieceEnd {
				s.next()
			}
			c = s.choice(n.number("output_index"))
		}
		s.piece(c, n, p.kind, v, text)
	}

	return any
}

// piece reads a piece of a choice. n is what it is in, and v has its value, or text has it.
func (s *stream) piece(c *choice, n node, kind PartKind, v node, text string) {
	var m Message
	switch kind {
	case pieceBegin:
	case pieceBreak:
		c.endPart()
	case pieceEnd:
		s.end(c, v.compact())
	case pieceAnswer:
		s.answer(v)
	case pieceThoughts:
		c.write(PartThinking, thoughts(v))
	case pieceSoFar:
		m = readMessage(v, "assistant")
		c.soFar(m.Text())
	case pieceMessage:
		if v.isText() {
			c.write(PartText, text)
		} else {
			c.add(readMessage(v, "assistant"))
		}
	case pieceItem:
		if m = readItem(v, "assistant"); !m.empty() {
			c.replace(m)
		}
	case pieceBlock:
		// A new block of text is its own part, even after another one of the same kind.
		c.endPart()
		m.content(v)
		c.begin(indexOf(n), m)
	case pieceCall:
		m.call(v)
		c.begin(indexOf(n), m)
	case pieceCalls:
		if v.isObject() {
			c.callPiece(v)
		}
		for call := range v.each {
			c.callPiece(call)
		}
	case pieceArguments:
		c.toolCall(indexOf(n), toolID(n), "", text)
	default:
		c.write(kind, text)
	}
}

// indexOf returns the index of a tool call's piece, -1 if it has none.
func indexOf(n node) int64 {
	at := n.first("contentBlockStart", "contentBlockDelta").or(n)
	if i := at.counts("index", "contentBlockIndex"); i != nil {
		return *i
	}

	return -1
}

// toolID returns the id of the tool call that an event of the AI SDK is of.
func toolID(n node) string {
	if id := n.texts("toolCallId"); id != "" || !strings.HasPrefix(n.texts("type"), "tool-input") {
		return id
	}

	return n.texts("id")
}
