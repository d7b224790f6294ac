package calls

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// ownMembers are the members that an answer has, whatever is around it has not, and an error has not.
var ownMembers = strings.Fields("choices candidates output content generations embeddings embedding text generation " +
	"results outputs completion generated_text done")

// wrappers are where an answer, or an element of a stream, is within something else: in boto3's InvokeModel and
// clients of HTTP (body), events of SSE that were parsed, Mistral's library and axios (data), rows of OpenAI's,
// Anthropic's, Bedrock's and Gemini's batches, and Bedrock's InvokeModelWithResponseStream (chunk).
var wrappers = placesOf("body data response.body result.message modelOutput response chunk.bytes")

// wrappersMax is how many wrappers are taken off, one within the other.
const wrappersMax = 3

// responseOf returns what is within at most so many wrappers, as an object or its JSON in a text; n if there is
// nothing.
func responseOf(n node, most int) node {
	if most == 0 || !n.hasAny(wrappers) || n.first(ownMembers...).exists() || n.first("error", "message").isObject() {
		return n
	}
	for _, v := range n.values(wrappers) {
		if inner := v.inner(); inner.isObject() {
			return responseOf(inner.indexed(), most-1)
		}
	}

	return n
}

// hasAny reports whether an object with an index may have a value at some of the places.
func (n node) hasAny(p places) bool { return n.index != nil && n.index.names&p.bits != 0 }

// firstOfEvents is how the text of a stream begins that was logged as SSE.
var firstOfEvents = regexp.MustCompile(`^\s*(data|event|id|retry)?:`)

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// streamText returns the elements of a stream that was logged as one text, or as a list of its lines: events
// of SSE, or an object a line. It returns n if it is none.
func streamText(n node) node {
	text := n.text()
	if n.element().isText() {
		var all []string
		for e := range nodeOf(n.raw).each {
			all = append(all, e.text())
		}
		text = strings.Join(all, "\n")
	}
	isEvents := firstOfEvents.MatchString(text)
	if !isEvents && !strings.HasPrefix(text, "{") {
		return n
	}

	var objects []string
	// The lines of an event whose data have several.
	var lines []byte
	for line := range strings.SplitSeq(lineEnds.Replace(text)+"\n", "\n") {
		line, isData := strings.CutPrefix(strings.TrimSpace(line), "data:")
		switch {
		case isData == isEvents && len(lines) == 0 && isObject([]byte(line)):
			objects = append(objects, line)
		case isData:
			lines = append(lines, line...)
		case line == "":
			if isObject(lines) {
				objects = append(objects, string(lines))
			}
			lines = nil
		case !isEvents:
			// A text with an object in it.
			return n
		}
	}
	// A lone object may be an answer in JSON, as it was asked for.
	if len(objects) == 0 || len(objects) == 1 && !isEvents {
		return n
	}

	return node{raw: []byte("[" + strings.Join(objects, ",") + "]"), reading: n.reading}
}

// isObject reports whether a text is a JSON object.
func isObject(text []byte) bool {
	_, err := wire.ParseObject(text)
	return err == nil
}

// thoughts returns what a message or a piece of it has of the model's thoughts. Some OpenAI-like APIs
// put them beside the content, OpenRouter in a list as well.
func thoughts(n node) string {
	if text := n.texts("reasoning_content", "reasoning", "thinking", "reasoningText"); text != "" {
		return text
	}
	var all strings.Builder
	for e := range n.at("reasoning_details").each {
		all.WriteString(e.texts("text", "summary"))
	}

	return all.String()
}

// idOf returns the id that a response, or an element of a stream, has itself.
func idOf(r node) string { return r.texts("id", "responseId", "response_id") }

// responseID returns the provider's id of a response, which may be the chunks of a stream.
func responseID(r node) string {
	r = r.element().or(r)
	inner := r.first("response", "message", "response_metadata")

	return cmp.Or(idOf(r), inner.texts("id"))
}

// shapes are the places of answers in a response, by the first byte of the value there. The order matters: members
// that others have, too, come last.
var shapes = []struct {
	kind byte
	at   places
}{
	// Lists of answers: of OpenAI's chat and completion and all compatible APIs; DashScope; Gemini; LangChain's
	// results and Cohere's generate; Mistral on Bedrock.
	{'[', placesOf("choices output.choices candidates generations kwargs.generations outputs")},
	// Gemini's words on a prompt that was blocked; Bedrock's Converse, and Nova; Cohere's chat, and Ollama's.
	// A lone text as message is an error's, see providerError.
	{'{', placesOf("promptFeedback prompt_feedback output.message message")},
	// Anthropic's older completions, Ollama's generate, Llama and Titan on Bedrock, TGI, DashScope
	{'"', placesOf("completion response generation results.0.outputText generated_text output.text")},
}

// ownWords are members of a response that is itself a message: Anthropic's, one of the AI SDK, a lone
// message as some wrappers send.
var ownWords = []string{"content", "text", "tool_calls", "function_call", "parts", "data", "kwargs"}

// answerNames are the members of one of which readResponse makes an answer.
var answerNames = placesOf(strings.Join(slices.Concat(ownMembers, ownWords), " "),
	"promptFeedback prompt_feedback message response object")

// reasons are where an answer, or a response, has why it ended.
var reasons = placesOf("finish_reason finishReason stop_reason stopReason done_reason completionReason",
	"blockReason block_reason details.finish_reason output.finish_reason results.0.completionReason",
	"generation_info.finish_reason generationInfo.finish_reason",
	"response_metadata.finish_reason response_metadata.stop_reason")

// readResponse reads what came back and reports whether its shape is known.
func (c *Call) readResponse(r node) bool {
	switch {
	case r.isText():
		c.answer(readMessage(r, "assistant"))
	// LangChain's, without what is around it.
	case r.element().isArray():
		c.answers(r)
	}

	if r.isArray() && len(c.Output) == 0 {
		for _, m := range readEach(r, readItem, "assistant") {
			// As some libraries write all of theirs.
			if m.Role == "user" {
				m.Role = "assistant"
			}
			c.answer(m)
		}
	}
	if !r.isObject() {
		return len(c.Output) > 0
	}

	c.items(r)
	for _, s := range shapes {
		for _, v := range r.values(s.at) {
			if c.isRead() {
				break
			}
			if v.kind() == s.kind {
				c.answers(v)
				c.ended(r)
			}
		}
	}
	if !c.isRead() && r.first(ownWords...).exists() {
		c.one(r)
	}

	// A span may leave its message out.
	bare := r.at("choices").element().at("message")

	return c.isRead() || bare.isObject() && bare.empty() || isVectors(r)
}

// isRead reports whether there is an answer, or why there is none.
func (c *Call) isRead() bool { return len(c.Output) > 0 || c.FinishReason != "" }

// answer adds an output, unless nothing of it is the model's: a response of unknown parts stays raw.
func (c *Call) answer(m Message) {
	says := func(p Part) bool { return p.Kind != PartResult }
	if len(m.ToolCalls) > 0 || slices.ContainsFunc(m.Parts, says) {
		c.Output = append(c.Output, m)
	}
}

// finish keeps the first reason that is given.
func (c *Call) finish(reason string) {
	if c.FinishReason == "" {
		c.FinishReason = Clip(reason)
	}
}

// ended keeps why an answer or a response ended. As JSON: older libraries of Gemini write the enum's number.
func (c *Call) ended(n node) {
	for _, place := range reasons.paths {
		if c.FinishReason != "" {
			return
		}
		c.finish(n.at(place...).compact())
	}
}

// answers reads an answer, or a list of them. LangChain has a list for each prompt.
func (c *Call) answers(n node) {
	if !n.isArray() {
		c.one(n)
	}
	for e := range n.each {
		if e.isObject() {
			c.one(e)
		}
		for inner := range e.each {
			c.one(inner)
		}
	}
}

// one reads an answer. Streams that a client put together have role and content directly in the choice, or a
// delta.
func (c *Call) one(n node) {
	// As dumps of LangChain writes it.
	n = n.at("kwargs").or(n)
	message := n
	for _, name := range []string{"message", "delta", "content"} {
		if inner := n.at(name); inner.isObject() {
			message = inner
			break
		}
	}
	c.answer(readMessage(message, "assistant"))
	c.ended(n)
}

// items reads the output of OpenAI's responses, whose items are pieces of one answer.
func (c *Call) items(r node) {
	output := r.at("output")
	if !output.isArray() {
		return
	}

	m := Message{Role: "assistant"}
	for item := range output.each {
		read := readItem(item, "assistant")
		m.Parts = append(m.Parts, read.Parts...)
		m.ToolCalls = append(m.ToolCalls, read.ToolCalls...)
	}
	c.answer(m)
	// The first reason stands: why an answer is cut short says more than that it is.
	c.finish(r.at("incomplete_details").texts("reason"))
	c.finish(r.texts("status"))
}

// isVectors reports whether a response has embeddings, pictures or speech, which have no text. A span
// leaves them out.
func isVectors(r node) bool {
	data := r.at("data")
	return !r.first("embeddings", "embedding").empty() || r.texts("object") == "list" && !data.exists() ||
		!data.element().first("embedding", "url", "b64_json").empty()
}

// normalFinish is the normal form of the words of providers and libraries for why an answer ended.
var normalFinish = func() map[string]string {
	forms := map[string]string{}
	for form, words := range map[string]string{
		"stop":       "stop end_turn stop_sequence completed complete end finished eos eos_token",
		"length":     "length max_tokens max_output_tokens model_length model_context_window_exceeded",
		"tool_calls": "tool_calls tool_call tool_use function_call",
		"content_filter": "content_filter content_filtered safety recitation blocklist prohibited_content spii " +
			"image_safety guardrail_intervened refusal",
		"error": "error error_toxic failed malformed_function_call unexpected_tool_call",
	} {
		for word := range strings.FieldsSeq(words) {
			forms[word] = form
		}
	}

	return forms
}()

// NormalFinish returns the normal form of a finish reason. That is stop, length, tool_calls,
// content_filter or error, and otherwise the word itself, in lower case.
func NormalFinish(reason string) string {
	word := strings.ToLower(strings.ReplaceAll(reason, "-", "_"))
	if form, known := normalFinish[word]; known {
		return form
	}

	return word
}

// reading is the reading of one member of a body. It is over when its context ends, or after
// most elements: what was not read by then is missing.
type reading struct {
	ctx      context.Context
	elements int // that were met
	most     int
	look     int // the next look at the context is at so many elements
	over     bool
}

// elementsMax bounds the elements of all lists in an input, and in a response: the chunks of a
// stream, messages, parts. The longest answers of models have 128,000 tokens, most of them
// several in a chunk.
const elementsMax = 1 << 17

// An element may be tiny, and what is read of it is not: beyond the first elementsFree there may
// be one for each so many bytes. The shortest chunk of an answer has some 40.
const (
	elementsFree = 8192
	elementBytes = 24
)

// newReading returns the reading of so many bytes.
func newReading(ctx context.Context, bytes int) *reading {
	return &reading{ctx: ctx, most: min(elementsFree+bytes/elementBytes, elementsMax), look: elementsPerLook}
}

// elementsPerLook is how many elements are read between two looks at the context, in about
// a millisecond.
const elementsPerLook = 4096

// messageElements is what a message counts: far more becomes of it, for the archive and on pages,
// than of a part or a chunk.
const messageElements = 4

// countMessage counts a message that is read from an element.
func (r *reading) countMessage() {
	if r != nil {
		r.elements += messageElements - 1
	}
}

// isOver reports whether the reading is over. It is called with each element of a list.
func (r *reading) isOver() bool {
	if r == nil {
		return false
	}
	r.elements++
	if r.tooMany() || r.elements >= r.look && r.ctx.Err() != nil {
		r.over = true
	}
	if r.elements >= r.look {
		r.look = r.elements + elementsPerLook
	}

	return r.over
}

// tooMany reports whether there were more elements than are read.
func (r *reading) tooMany() bool { return r != nil && r.elements > r.most }
