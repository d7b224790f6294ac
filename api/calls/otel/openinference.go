package otel

import "strings"

// openInference is Arize's OpenInference.
var openInference = dialect{
	name: "OpenInference",
	table: []attribute{
		{"openinference.span.kind", decides, ""},
		{"llm.provider", provider, ""},
		{"llm.system", provider, ""},
		{"llm.response.model_name", responseModel, ""},
		{"llm.model_name", responseModel, ""},
		{"embedding.model_name", responseModel, ""},
		{"llm.request.model_name", requestModel, ""},
		{"llm.finish_reason", finishReason, ""},
		{"llm.invocation_parameters", parameters, ""},
		{"llm.tools.N.tool.json_schema", tools, ""},
		{"output.value", rawResponse, ""},
		{"input.value", shownInput, ""},
		{"output.value", shownOutput, ""},

		{"llm.token_count.prompt", inputTokens, ""},
		{"llm.token_count.completion", outputTokens, ""},
		{"llm.token_count.prompt_details.cache_read", cachedTokens, ""},
		{"llm.token_count.prompt_details.cache_write", cacheWrites, ""},
		{"llm.token_count.prompt_details.audio", audioInput, ""},
		{"llm.token_count.completion_details.reasoning", reasoningTokens, ""},
		{"llm.token_count.completion_details.audio", audioOutput, ""},
		{"llm.cost.total", price, ""},

		{"llm.prompt_template.version", promptVersion, ""},
		{"llm.prompt_template.variables", promptVariables, ""},
		{"tag.tags", tags, ""},
		{"metadata", metadataMap, ""},
		{"agent.name", metadata, "agent"},
	},
	input: []source{
		{"llm.input_messages.N.message.*", inferenceMessages},
		{"llm.prompts.N.prompt.text", inferenceTexts},
		{"embedding.embeddings.N.embedding.text", inferenceEmbeddings},
		{"input.value", anything},
	},
	output: []source{
		{"llm.output_messages.N.message.*", inferenceMessages},
		{"llm.choices.N.completion.text", inferenceTexts},
		{"output.value", anything},
	},
}

// inferenceKinds are the kinds of openinference.span.kind.
var inferenceKinds = map[string]Kind{
	"llm": KindCall, "embedding": KindEmbedding, "chain": KindChain, "retriever": KindRetriever,
	"reranker": KindRetriever, "tool": KindTool, "agent": KindAgent, "guardrail": KindEvaluator,
	"evaluator": KindEvaluator, "prompt": KindChain,
}

func openInferenceKind(s *span) Kind {
	return kinds(s.own.text("openinference.span.kind"), inferenceKinds)
}

// inferenceMessages reads flattened messages.
func inferenceMessages(s *span, key, role string) (c conversation) {
	prefix, _, _ := strings.Cut(key, "N.")
	for _, m := range s.own.items(prefix) {
		c.inference(m, role)
	}

	return c
}

// inference appends one message.
func (c *conversation) inference(m attributes, role string) {
	if own := m.text("message.role"); own != "" {
		role = strings.ToLower(own)
	}

	b := builder{message: message{
		Role: role, Name: m.text("message.name"), ToolCallID: m.text("message.tool_call_id"),
	}}
	b.say(m.get("message.content"))
	for _, p := range m.items("message.contents.") {
		b.inferencePart(p)
	}
	if name := m.text("message.function_call_name"); name != "" {
		b.ToolCalls = append(b.ToolCalls, newToolCall("", name, m.get("message.function_call_arguments_json")))
	}
	for _, call := range m.items("message.tool_calls.") {
		b.ToolCalls = append(b.ToolCalls, newToolCall(call.text("tool_call.id"),
			call.text("tool_call.function.name"), call.get("tool_call.function.arguments")))
	}
	c.take(&b, "")
}

// inferencePart adds one part of a message.
func (b *builder) inferencePart(p attributes) {
	text := p.get("message_content.text").shown()
	switch url := p.text("message_content.image.image.url"); {
	case url != "":
		b.add(imageURL(url))
	case p.text("message_content.type") == "reasoning":
		b.thinking(text)
	case text != "":
		b.text(text)
	default:
		if kind := p.text("message_content.type"); kind != "" && kind != "text" {
			b.add(encoded(map[string]string{"type": kind}))
		}
	}
}

// inferenceTexts reads messages of a text each.
func inferenceTexts(s *span, key, role string) (c conversation) {
	prefix, member, _ := strings.Cut(key, "N.")
	for _, m := range s.own.items(prefix) {
		if text := m.text(member); text != "" {
			c.add(message{Role: role, Content: text}, "")
		}
	}

	return c
}

func inferenceEmbeddings(s *span, _, _ string) conversation {
	var c conversation
	for _, e := range s.own.items("embedding.embeddings.") {
		if text := e.text("embedding.text"); text != "" {
			c.texts = append(c.texts, text)
		}
	}

	return c
}
