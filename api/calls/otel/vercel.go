package otel

import "strings"

// vercel is the Vercel AI SDK up to version 6. Version 7 follows the conventions.
var vercel = dialect{
	name: "Vercel AI SDK",
	table: []attribute{
		{"ai.operationId", decides, ""},
		{"ai.model.provider", provider, ""},
		{"ai.response.model", responseModel, ""},
		{"ai.model.id", requestModel, ""},
		{"ai.response.id", responseID, ""},
		{"ai.response.finishReason", finishReason, ""},
		{"ai.settings.temperature", parameter, "temperature"},
		{"ai.settings.maxOutputTokens", parameter, "max_tokens"},
		{"ai.settings.maxTokens", parameter, "max_tokens"},
		{"ai.settings.topP", parameter, "top_p"},
		{"ai.settings.topK", parameter, "top_k"},
		{"ai.settings.seed", parameter, "seed"},
		{"ai.settings.frequencyPenalty", parameter, "frequency_penalty"},
		{"ai.settings.presencePenalty", parameter, "presence_penalty"},
		{"ai.prompt.toolChoice", parameter, "tool_choice"},
		{"ai.prompt.tools", tools, ""},
		{"ai.prompt", shownInput, ""},
		{"ai.toolCall.args", shownInput, ""},
		{"ai.value", shownInput, ""},
		{"ai.values", shownInput, ""},
		{"ai.response.text", shownOutput, ""},
		{"ai.response.object", shownOutput, ""},
		{"ai.response.toolCalls", shownOutput, ""},
		{"ai.toolCall.result", shownOutput, ""},

		{"ai.usage.inputTokens", inputTokens, ""},
		{"ai.usage.promptTokens", inputTokens, ""},
		{"ai.usage.tokens", inputTokens, ""},
		{"ai.usage.outputTokens", outputTokens, ""},
		{"ai.usage.completionTokens", outputTokens, ""},
		{"ai.usage.inputTokenDetails.cacheReadTokens", cachedTokens, ""},
		{"ai.usage.cachedInputTokens", cachedTokens, ""},
		{"ai.usage.inputTokenDetails.cacheWriteTokens", cacheWrites, ""},
		{"ai.usage.outputTokenDetails.reasoningTokens", reasoningTokens, ""},
		{"ai.usage.reasoningTokens", reasoningTokens, ""},
		{"ai.response.msToFirstChunk", firstMillis, ""},

		{"ai.telemetry.metadata.userId", metadata, userKey},
		{"ai.telemetry.metadata.sessionId", metadata, sessionKey},
		{"ai.telemetry.metadata.tags", tags, ""},
		{"ai.telemetry.metadata.*", metadata, ""},
		{"ai.settings.context.*", metadata, ""},
		{"ai.telemetry.functionId", metadata, "function_id"},
	},
	input: []source{
		{"ai.prompt.messages", messages},
		{"ai.values", vercelValues},
		{"ai.value", vercelValues},
		{"ai.prompt", anything},
	},
	output: []source{
		{"ai.response.text, .reasoning, .toolCalls, .object", vercelResponse("ai.response.")},
		{"ai.result.text, .toolCalls, .object", vercelResponse("ai.result.")},
	},
}

// vercel7 is the scope of version 7.
const vercel7 = "gen_ai"

// vercelKind takes only the inner span of each pair for a call. The outer one repeats its
// text, and sums up its usage.
func vercelKind(s *span) Kind {
	operation := s.own.text("ai.operationId")
	switch {
	case operation == "":
		return ""
	case strings.HasSuffix(operation, ".doEmbed"):
		return KindEmbedding
	case strings.HasSuffix(operation, ".doGenerate"), strings.HasSuffix(operation, ".doStream"):
		return KindCall
	case operation == "ai.toolCall":
		return KindTool
	}

	return KindChain
}

// vercelValues reads the texts of an embedding, each of which is JSON.
func vercelValues(s *span, key, _ string) conversation {
	var c conversation
	v := s.own.get(key)
	values := v.elements()
	if v.isText() {
		values = []value{v}
	}
	for _, e := range values {
		c.texts = append(c.texts, unquoted(e))
	}

	return c
}

// unquoted returns the text of a JSON string that is itself in a string.
func unquoted(v value) string {
	text := v.shown()
	if len(text) > 1 && text[0] == '"' && validText(text) {
		return value(text).text()
	}

	return text
}

// vercelResponse reads the answer, which has an attribute for each of its parts.
func vercelResponse(prefix string) func(*span, string, string) conversation {
	return func(s *span, _, _ string) conversation {
		b := builder{message: message{Role: "assistant"}}
		b.thinking(s.own.text(prefix + "reasoning"))
		b.text(s.own.text(prefix+"text", prefix+"object"))
		b.calls(s.own.get(prefix + "toolCalls"))

		var c conversation
		c.take(&b, "")
		return c
	}
}

// vercelUsage returns the provider's own counts, which older versions have only there: of
// Anthropic all of them. nil if they say no more than the attributes.
func vercelUsage(s *span) value {
	if s.own.text("ai.operationId") == "" || s.find(cachedTokens) != nil {
		return nil
	}
	counts := s.own.get("ai.response.providerMetadata").inner().at("anthropic", "usage")
	if counts.at("input_tokens").count() == nil {
		return nil
	}

	return counts
}
