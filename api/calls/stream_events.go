package calls

import (
	"bytes"
	"strings"
)

// piece is what an element of a stream adds to an answer, and where the element has it. The kinds besides those of a
// message's parts are in stream.piece.
type piece struct {
	kind PartKind
	path []string // see follow
}

// piecesOf returns the pieces by each name in a table. A piece is written as its kind and the path to it; without a
// path it is the element itself.
func piecesOf(table map[string]string) map[string][]piece {
	all := map[string][]piece{}
	for names, list := range table {
		var pieces []piece
		for p := range strings.FieldsSeq(list) {
			way := strings.FieldsFunc(p, func(r rune) bool { return r == ':' || r == '.' })
			pieces = append(pieces, piece{PartKind(way[0]), way[1:]})
		}
		for name := range strings.FieldsSeq(names) {
			all[name] = pieces
		}
	}

	return all
}

// choicePieces are those of a choice of OpenAI's chat or completion, and all compatible APIs, or of a candidate
// of Gemini's, whose tool calls are never split.
var choicePieces = piecesOf(map[string]string{
	"choice": `text:text thoughts:delta message:delta.content refusal:delta.refusal text:delta.audio.transcript
		calls:delta.tool_calls function:delta.function_call message:content end:finish_reason end:finishReason`,
})["choice"]

// events are the pieces of events, by their type. Those of OpenAI's responses that are not here add
// nothing.
var events = piecesOf(map[string]string{
	// Anthropic: https://docs.anthropic.com/en/api/messages-streaming
	"message_start":                        "begin",
	"content_block_start":                  "block:content_block",
	"content_block_delta":                  "text:delta.text thinking:delta.thinking arguments:delta.partial_json",
	"message_delta":                        "end:delta.stop_reason",
	"ping content_block_stop message_stop": "",

	// OpenAI: https://platform.openai.com/docs/api-reference/responses-streaming
	"response.created": "begin",
	`response.output_text.delta response.audio.transcript.delta response.audio_transcript.delta
		response.output_audio_transcript.delta`: "text:delta",
	"response.output_text.done": "item:text",
	"response.refusal.delta":    "refusal:delta",
	"response.reasoning_text.delta response.reasoning_summary_text.delta": "thinking:delta",
	`response.function_call_arguments.delta response.mcp_call_arguments.delta
		response.custom_tool_call_input.delta response.code_interpreter_call_code.delta`: "arguments:delta",
	"response.function_call_arguments.done": "call",

	"response.content_part.added response.reasoning_summary_part.added": "break",
	"response.output_item.added response.output_item.done":              "item:item",
	"response.completed response.incomplete response.failed":            "answer:response",

	// Cohere v2: https://docs.cohere.com/v2/docs/streaming
	"message-start":               "begin",
	"content-start content-delta": "text:delta.message.content.text thinking:delta.message.content.thinking",
	"tool-plan-delta":             "text:delta.message.tool_plan",
	"tool-call-start":             "call:delta.message.tool_calls",
	"tool-call-delta":             "arguments:delta.message.tool_calls.function.arguments",
	"message-end":                 "end:delta.finish_reason",
	"content-end tool-call-end citation-start citation-end": "",

	// and its older form
	"stream-start":    "begin",
	"text-generation": "text:text",
	"stream-end":      "answer:response end:finish_reason",

	// Mistral's conversations: https://docs.mistral.ai/agents/agents
	"message.output.delta": "message:content",

	// AI SDK: https://ai-sdk.dev/docs/ai-sdk-core/generating-text; its versions name pieces otherwise
	"text":            "text:text",
	"text-start":      "break",
	"text-delta":      "text:text text:delta text:textDelta",
	"reasoning-delta": "thinking:text thinking:delta thinking:textDelta",
	"tool-input-start tool-call tool-input-available": "call",
	"tool-input-delta": "arguments:delta arguments:inputTextDelta",
	"finish":           "end:finishReason",
	`start start-step finish-step text-end reasoning-start reasoning-end tool-input-end tool-result
		tool-error`: "",
})

// memberPieces are those of elements without a type, by the member that marks them.
var memberPieces = piecesOf(map[string]string{
	// Bedrock Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
	"messageStart":      "begin",
	"contentBlockStart": "call:contentBlockStart.start.toolUse",
	"contentBlockDelta": `text:contentBlockDelta.delta.text thinking:contentBlockDelta.delta.reasoningContent.text
		arguments:contentBlockDelta.delta.toolUse.input`,
	"messageStop": "end:messageStop.stopReason",

	// Models on Bedrock: Titan, Llama, older ones of Anthropic and Mistral
	"outputText": "text:outputText end:completionReason",
	"generation": "text:generation end:stop_reason",
	"completion": "text:completion end:stop_reason",
	"outputs":    "text:outputs.0.text end:outputs.0.stop_reason",

	// Ollama: https://github.com/ollama/ollama/blob/main/docs/api.md
	"done": "message:message thinking:thinking text:response end:done_reason",
	// TGI: https://huggingface.co/docs/text-generation-inference
	"token": "text:token.text item:generated_text end:details.finish_reason",
	// DashScope: https://www.alibabacloud.com/help/en/model-studio/qwen-api-via-dashscope
	"output": `thinking:output.choices.0.message.reasoning_content sofar:output.text
		sofar:output.choices.0.message.content end:output.finish_reason end:output.choices.0.finish_reason`,
})

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
			v = base.at(p.path[1:]...)
		}
		if !v.exists() {
			continue
		}
		any = true

		text, c := v.text(), to
		if c == nil {
			// None of these has an id: after the end, another answer begins.
			if p.kind == "begin" || s.ended && (text != "" || p.kind == "message") && p.kind != "end" {
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
	m := Message{Role: "assistant"}

	switch kind {
	case "begin": // of an answer
	case "break": // between two parts
		c.endPart()
	case "end": // why the answer ended
		s.end(c, v.compact())
	case "answer": // all of it
		s.answer(v)
	case "thoughts":
		c.write(PartThinking, thoughts(v))
	case "sofar": // a text that may begin with all of the text in front of it
		m = readMessage(v, "assistant")
		text = m.Text()
		if bytes.HasPrefix([]byte(text), c.text) {
			c.text = c.text[:0]
		}
		c.write(PartText, text)
	case "message":
		if v.isText() {
			c.write(PartText, text)
		} else {
			c.add(readMessage(v, "assistant"))
		}
	case "item": // the whole of a choice
		m = readItem(v, "assistant")
		if !m.empty() {
			c.replace(m)
		}
	case "block": // the beginning of a part, even after another one of the same kind
		c.endPart()
		m.content(v)
		c.begin(indexOf(n), m)
	case "call": // a tool call, perhaps without its arguments
		m.call(v)
		c.begin(indexOf(n), m)
	case "calls": // pieces of OpenAI's
		for call := range v.each {
			c.callPiece(call, call.at("function"))
		}
	case "function": // the older form, of one call
		c.callPiece(v, v)
	case "arguments": // of a tool call
		c.toolCall(indexOf(n), n.texts("toolCallId", "id"), "", text)
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
