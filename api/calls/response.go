package calls

import "strings"

// responseOf unwraps a response: Bedrock's InvokeModel has the model's own answer as
// JSON in body.
func responseOf(n node) node {
	body := n.at("body").inner()
	if body.isObject() && n.first("ResponseMetadata", "contentType", "$metadata").exists() {
		return body
	}

	return n
}

// responseID returns the provider's id of a response, which may be the chunks of a stream.
func responseID(r node) string {
	if r.isArray() {
		r = r.element()
	}
	id := r.texts("id", "responseId", "response_id")
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
	case r.isArray():
		for _, m := range readMessages(r) {
			if m.Role == "user" { // what readMessages assumes
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
		(*Call).generations, (*Call).cohere, (*Call).bedrockModels, (*Call).embeddings, (*Call).message,
	} {
		if read(c, r) {
			return true
		}
	}

	return false
}

// answer adds an output, unless it is empty.
func (c *Call) answer(m Message) {
	if !m.empty() {
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
	choices := r.at("choices")
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

// readItem reads an item of OpenAI's responses. Calls of built-in tools are named by
// their type: web_search, file_search.
func readItem(n node, usual string) Message {
	m := Message{Role: usual}
	switch t := n.texts("type"); {
	case t == "reasoning":
		m.Role = "assistant"
		m.thinking(n)
	case t == "function_call_output" || t == "custom_tool_call_output":
		m.result(n)
	case strings.HasSuffix(t, "_call") && t != "function_call" && !n.at("name").exists():
		m.Role = "assistant"
		m.ToolCalls = []ToolCall{{
			ID:        n.texts("call_id", "id"),
			Name:      strings.TrimSuffix(t, "_call"),
			Arguments: n.first("action", "queries", "code").compact(),
		}}
	case t == "function_call" || strings.HasSuffix(t, "_call"):
		m.Role = "assistant"
		m.call(n)
		// An item has its own id as well; results refer to the call's.
		if id := n.texts("call_id"); id != "" && len(m.ToolCalls) > 0 {
			m.ToolCalls[0].ID = id
		}
	default:
		m = readMessage(n, usual)
	}

	return m
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
	generations := r.at("generations")
	if !generations.isArray() {
		return false
	}

	one := func(g node) {
		if m := g.at("message"); m.isObject() {
			c.answer(readMessage(m, "assistant"))
			// LangChain keeps the usage with each message, if not with the result.
			if c.Usage == (Usage{}) {
				c.Usage = readUsage(m)
			}
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

	return true
}

// cohere reads Cohere's chat (v2: message, v1: text), Ollama's, and a bare text
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
	c.finish(r.texts("finish_reason", "done_reason", "stop_reason"))

	return true
}

// bedrockModels reads what models on Bedrock answer to InvokeModel:
// Titan, Llama, Mistral.
func (c *Call) bedrockModels(r node) bool {
	result, output := r.at("results").element(), r.at("outputs").element()
	switch {
	// Each has one member that the others lack, so their order does not matter.
	case result.at("outputText").isText():
		c.answer(readMessage(result.at("outputText"), "assistant"))
		c.finish(result.texts("completionReason"))
	case r.at("generation").isText():
		c.answer(readMessage(r.at("generation"), "assistant"))
		c.finish(r.texts("stop_reason"))
	case output.at("text").isText():
		c.answer(readMessage(output.at("text"), "assistant"))
		c.finish(output.texts("stop_reason"))
	default:
		return false
	}

	return true
}

// embeddings recognises answers without text.
func (c *Call) embeddings(r node) bool {
	return r.first("embeddings", "embedding").exists() || r.texts("object") == "list" ||
		r.at("data").element().first("embedding", "url", "b64_json").exists()
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
