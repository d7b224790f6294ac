package dialect

import "strings"

// vercel is the Vercel AI SDK up to version 6. Version 7 follows the conventions.
var vercel = Dialect{
	Name: "Vercel AI SDK",
	Table: []Attribute{
		{"ai.operationId", Decides, ""},
		{"ai.model.provider", Provider, ""},
		{"ai.response.model", ResponseModel, ""},
		{"ai.model.id", RequestModel, ""},
		{"ai.response.id", ResponseID, ""},
		{"ai.response.finishReason", FinishReason, ""},
		{"ai.settings.temperature", Parameter, "temperature"},
		{"ai.settings.maxOutputTokens", Parameter, "max_tokens"},
		{"ai.settings.maxTokens", Parameter, "max_tokens"},
		{"ai.settings.topP", Parameter, "top_p"},
		{"ai.settings.topK", Parameter, "top_k"},
		{"ai.settings.seed", Parameter, "seed"},
		{"ai.settings.frequencyPenalty", Parameter, "frequency_penalty"},
		{"ai.settings.presencePenalty", Parameter, "presence_penalty"},
		{"ai.prompt.toolChoice", Parameter, "tool_choice"},
		{"ai.prompt.tools", Tools, ""},
		{"ai.prompt", ShownInput, ""},
		{"ai.toolCall.args", ShownInput, ""},
		{"ai.value", ShownInput, ""},
		{"ai.values", ShownInput, ""},
		{"ai.response.text", ShownOutput, ""},
		{"ai.response.object", ShownOutput, ""},
		{"ai.response.toolCalls", ShownOutput, ""},
		{"ai.toolCall.result", ShownOutput, ""},

		{"ai.usage.inputTokens", InputTokens, ""},
		{"ai.usage.promptTokens", InputTokens, ""},
		{"ai.usage.tokens", InputTokens, ""},
		{"ai.usage.outputTokens", OutputTokens, ""},
		{"ai.usage.completionTokens", OutputTokens, ""},
		{"ai.usage.inputTokenDetails.cacheReadTokens", CachedTokens, ""},
		{"ai.usage.cachedInputTokens", CachedTokens, ""},
		{"ai.usage.inputTokenDetails.cacheWriteTokens", CacheWrites, ""},
		{"ai.usage.outputTokenDetails.reasoningTokens", ReasoningTokens, ""},
		{"ai.usage.reasoningTokens", ReasoningTokens, ""},
		{"ai.usage.totalTokens", TotalTokens, ""},
		{"ai.response.msToFirstChunk", FirstMillis, ""},

		{"ai.telemetry.metadata.userId", Metadata, UserKey},
		{"ai.telemetry.metadata.sessionId", Metadata, SessionKey},
		{"ai.telemetry.metadata.tags", Tags, ""},
		{"ai.telemetry.metadata.*", Metadata, ""},
		{"ai.settings.context.*", Metadata, ""},
		{"ai.telemetry.functionId", Metadata, "function_id"},
	},
	Input: []Source{
		{"ai.prompt.messages", Messages},
		{"ai.values", EmbeddedTexts},
		{"ai.value", EmbeddedTexts},
		{"ai.prompt", Anything},
	},
	Output: []Source{
		{"ai.response.text, .reasoning, .toolCalls, .object", VercelResponse},
		{"ai.result.text, .toolCalls, .object", VercelResponse},
	},
}

// vercel7 is the scope of version 7.
const vercel7 = "gen_ai"

// vercelKind takes only the inner span of each pair for a call. The outer one repeats its
// text, and sums up its usage.
func vercelKind(s Span) Kind {
	operation := s.Text("ai.operationId")
	switch {
	case operation == "":
		return ""
	case strings.HasSuffix(operation, ".doEmbed"):
		return Embedding
	case strings.HasSuffix(operation, ".doGenerate"), strings.HasSuffix(operation, ".doStream"):
		return Call
	case operation == "ai.toolCall":
		return Tool
	}

	return Chain
}
