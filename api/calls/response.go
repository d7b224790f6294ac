package calls

import (
	"slices"
	"strings"

	"promptspool/api/wire"
)

// ownMembers are the members that an answer has, whatever is around it has not, and an error has not.
var ownMembers = []string{
	"choices", "candidates", "output", "content", "generations", "embeddings", "embedding", "text", "generation",
	"results", "outputs", "completion", "generated_text",
}

// wrappers are where an answer, or an element of a stream, is within something else.
var wrappers = [][]string{
	{"body"},              // boto3's InvokeModel, clients of HTTP
	{"data"},              // events of SSE that were parsed, Mistral's library, axios
	{"response", "body"},  // a row of OpenAI's batches
	{"result", "message"}, // of Anthropic's
	{"modelOutput"},       // of Bedrock's
	{"response"},          // of Gemini's
	{"chunk", "bytes"},    // Bedrock's InvokeModelWithResponseStream
}

// responseOf returns what is within wrappers, as an object or its JSON in a text; n if there is nothing.
func responseOf(n node) node {
	const most = 3 // one within the other
	for range most {
		if !n.hasMembers() || n.first(ownMembers...).exists() || n.first("error", "message").isObject() {
			return n
		}

		var inner node
		for _, place := range wrappers {
			if inner = n.at(place...).inner(); inner.isObject() {
				break
			}
		}
		if !inner.isObject() {
			return n
		}
		n = inner.indexed()
	}

	return n
}

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
	isEvents := strings.HasPrefix(text, "data:") || strings.HasPrefix(text, "event:") || strings.HasPrefix(text, ":")
	if !isEvents && !strings.HasPrefix(text, "{") {
		return n
	}

	objects, list := 0, []byte{'['}
	for line := range strings.Lines(text) {
		line, isData := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if _, err := wire.ParseObject([]byte(line)); err == nil && (isData || !isEvents) {
			list = append(append(list, line...), ',')
			objects++
		} else if !isEvents && line != "" {
			return n // a text with an object in it
		}
	}
	// A lone object may be an answer in JSON, as it was asked for.
	if objects == 0 || objects == 1 && !isEvents {
		return n
	}
	list[len(list)-1] = ']'

	return node{raw: list, reading: n.reading}
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
	if r.isArray() {
		r = r.element()
	}
	id := idOf(r)
	for _, inner := range []string{"response", "message", "response_metadata"} {
		if id == "" {
			id = r.at(inner).texts("id")
		}
	}

	return id
}

// readResponse reads what came back and reports whether its shape is known.
func (c *Call) readResponse(r node) bool {
	switch {
	case r.isText():
		c.answer(readMessage(r, "assistant"))
		return len(c.Output) > 0
	case r.element().isArray() && c.generated(r):
		return true
	case r.isArray():
		for _, m := range readEach(r, readItem, "assistant") {
			if m.Role == "user" { // some libraries call each of them so
				m.Role = "assistant"
			}
			c.answer(m)
		}
		return len(c.Output) > 0
	case !r.isObject():
		return false
	}

	// The order matters: shapes with members that others have too come last.
	for _, read := range []func(*Call, node) bool{
		(*Call).choices, (*Call).candidates, (*Call).responses, (*Call).converse, (*Call).anthropic,
		(*Call).generations, (*Call).cohere, (*Call).plain, (*Call).message,
	} {
		if read(c, r) {
			// A span may leave its message out.
			bare := r.at("choices").element().at("message")
			return len(c.Output) > 0 || c.FinishReason != "" || bare.isObject() && bare.empty()
		}
	}

	return isVectors(r)
}

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

// choices reads OpenAI's chat and completion, and all compatible APIs (Mistral, Azure,
// Groq, DeepSeek, vLLM, ...). Streams that a client put together have role and content
// directly in the choice, or a delta.
func (c *Call) choices(r node) bool {
	choices := r.at("choices").or(r.at("output", "choices")) // DashScope's
	if !choices.isArray() {
		return false
	}

	// Other APIs have their own choices, so the list alone says little.
	known := false
	for choice := range choices.each {
		if !choice.isObject() {
			continue
		}

		m := Message{Role: "assistant"}
		switch {
		case choice.at("message").isObject():
			m = readMessage(choice.at("message"), "assistant")
		case choice.at("delta").isObject():
			m = readMessage(choice.at("delta"), "assistant")
		case choice.at("text").isText():
			m.add(PartText, choice.at("text").text())
		default:
			m = readMessage(choice, "assistant")
		}
		// A choice without any of these is of an unknown shape.
		known = known || choice.first("message", "delta", "text", "content", "role", "tool_calls",
			"function_call", "finish_reason").exists()
		c.answer(m)
		c.finish(choice.texts("finish_reason", "stop_reason"))
	}

	return known
}

// candidates reads Gemini's answer. One that was blocked has promptFeedback
// and no candidates.
func (c *Call) candidates(r node) bool {
	candidates, feedback := r.at("candidates"), r.first("promptFeedback", "prompt_feedback")
	if !candidates.isArray() && !feedback.isObject() {
		return false
	}

	for e := range candidates.each {
		c.answer(readMessage(e.at("content"), "assistant"))
		// As JSON: older libraries write the enum's number.
		c.finish(e.first("finishReason", "finish_reason").compact())
	}
	c.finish(feedback.texts("blockReason", "block_reason"))

	return true
}

// responses reads OpenAI's responses API.
func (c *Call) responses(r node) bool {
	output := r.at("output")
	if !output.isArray() {
		return false
	}

	// Its items are pieces of one answer.
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

	return true
}

// converse reads Bedrock's Converse, and Nova's InvokeModel.
func (c *Call) converse(r node) bool {
	message := r.at("output", "message")
	if !message.isObject() {
		return false
	}

	c.answer(readMessage(message, "assistant"))
	c.finish(r.texts("stopReason"))

	return true
}

// anthropic reads Anthropic's messages, and its older completions.
func (c *Call) anthropic(r node) bool {
	switch {
	case r.at("content").isArray():
		c.answer(readMessage(r, "assistant"))
	// An answer without a word is an answer, so the part is made by hand: add drops empty
	// ones.
	case r.at("completion").isText():
		m := Message{Role: "assistant"}
		m.Parts = []Part{{Kind: PartText, Text: r.at("completion").text()}}
		c.answer(m)
	default:
		return false
	}
	c.finish(r.texts("stop_reason", "finish_reason"))

	return true
}

// generations reads LangChain's results, [[{text, message}]] or [{text}],
// and Cohere's generate.
func (c *Call) generations(r node) bool {
	generations := r.at("generations").or(r.at("kwargs", "generations"))
	if !generations.isArray() {
		return false
	}
	c.generated(generations)

	return true
}

// generated reads the generations of a list, and reports whether there is an answer.
func (c *Call) generated(generations node) bool {
	one := func(g node) {
		g = g.at("kwargs").or(g) // as dumps writes it
		if m := g.at("message"); m.isObject() {
			c.answer(readMessage(m, "assistant"))
		} else {
			c.answer(readMessage(g.at("text"), "assistant"))
		}
		c.finish(g.first("generation_info", "generationInfo").texts("finish_reason"))
		c.finish(g.texts("finish_reason"))
	}
	for g := range generations.each {
		if !g.isArray() {
			one(g)
		}
		for e := range g.each {
			one(e)
		}
	}

	return len(c.Output) > 0
}

// cohere reads Cohere's chat (v2: message, v1: text), Ollama's, a result of the AI SDK, and a bare text
// of LangChain's completions.
func (c *Call) cohere(r node) bool {
	// An object under message is a chat's; a lone text is an error's, see providerError.
	switch m := r.at("message"); {
	case m.isObject():
		c.answer(readMessage(m, "assistant"))
	case r.at("text").isText():
		c.answer(readMessage(r, "assistant"))
	case r.at("response").isText(): // Ollama's generate
		c.answer(readMessage(r.at("response"), "assistant"))
	default:
		return false
	}
	c.finish(r.texts("finish_reason", "done_reason", "stop_reason", "finishReason"))

	return true
}

// plain reads what has no more than a text: of Titan, Llama and Mistral on Bedrock, TGI, DashScope.
func (c *Call) plain(r node) bool {
	for _, place := range []struct {
		of     node
		text   string
		reason []string
	}{
		{r.at("results").element(), "outputText", []string{"completionReason"}},
		{r, "generation", []string{"stop_reason"}},
		{r.at("outputs").element(), "text", []string{"stop_reason"}},
		{r, "generated_text", nil},
		{r.at("output"), "text", []string{"finish_reason"}},
	} {
		if text := place.of.at(place.text); text.isText() {
			c.answer(readMessage(text, "assistant"))
			c.finish(place.of.texts(place.reason...))
			c.finish(r.at("details").texts("finish_reason"))
			return true
		}
	}

	return false
}

// isVectors reports whether a response has embeddings, pictures or speech, which have no text. A span
// leaves them out.
func isVectors(r node) bool {
	data := r.at("data")
	return !r.first("embeddings", "embedding").empty() || r.texts("object") == "list" && !data.exists() ||
		!data.element().first("embedding", "url", "b64_json").empty()
}

// message reads a lone message, as some wrappers send instead of a response.
func (c *Call) message(r node) bool {
	m := readMessage(r, "assistant")
	if m.empty() || !r.first("content", "tool_calls", "function_call", "parts", "data", "kwargs").exists() {
		return false
	}

	c.answer(m)
	c.finish(r.at("response_metadata").texts("finish_reason", "stop_reason"))

	return true
}
