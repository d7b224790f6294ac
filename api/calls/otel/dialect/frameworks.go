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

// mastra is Mastra's exporter. Its spans follow the conventions, but for what goes into a call: that is
// in the span of the step around it, which reports the same call.
var mastra = Dialect{
	Name: "Mastra",
	Table: []Attribute{
		{"mastra.span.type", Decides, ""},
		{"mastra.completion_start_time", FirstAt, ""},
		{"gen_ai.usage.cached_input_tokens", CachedTokens, ""},
		{"gen_ai.usage.audio_input_tokens", InputDetail, "audio_tokens"},
		{"gen_ai.usage.audio_output_tokens", OutputDetail, "audio_tokens"},
		{"mastra.<type>.input", ShownInput, ""},
		{"mastra.<type>.output", ShownOutput, ""},
		{"mastra.metadata.userId", Metadata, UserKey},
		{"mastra.metadata.sessionId", Metadata, SessionKey},
		{"mastra.metadata.threadId", Metadata, SessionKey},
		{"mastra.metadata.environment", Metadata, EnvironmentKey},
		{"mastra.metadata.body", RawResponse, ""},
		{"mastra.metadata.headers", Unread, ""},
		{"mastra.metadata.modelMetadata", Unread, ""},
		{"mastra.metadata.*", Metadata, ""},
		{"mastra.tags", Tags, ""},
	},
	Input:  []Source{{"mastra.model_step.input", Anything}},
	Output: []Source{{"mastra.model_step.output", TextAndCalls}},
}

// isMastraCall takes a step for a report of its call. Steps of older versions are around no span of
// a call: there the generation is the call, with all its steps.
func isMastraCall(s Span) bool {
	return s.Text("mastra.span.type") == "model_step" && s.Text("gen_ai.operation.name") == "agent_step" &&
		s.Text("mastra.model_step.input")+s.Text("mastra.model_step.output") != ""
}

// adk is Google's Agent Development Kit.
var adk = Dialect{
	Name: "Google ADK",
	Table: []Attribute{
		{"gcp.vertex.agent.llm_response", UsageWithin, "usageMetadata"},
		{"gcp.vertex.agent.tool_call_args", ShownInput, ""},
		{"gcp.vertex.agent.tool_response", ShownOutput, ""},
		{"gcp.vertex.agent.data", ShownInput, ""},
		{"gcp.vertex.agent.session_id", Metadata, SessionKey},
		{"gcp.vertex.agent.invocation_id", Metadata, "invocation_id"},
	},
	Input:  []Source{{"gcp.vertex.agent.llm_request", ADKRequest}},
	Output: []Source{{"gcp.vertex.agent.llm_response", ADKResponse}},
}

func isADKCall(s Span) bool {
	return s.Name() == "call_llm" && s.Text("gcp.vertex.agent.llm_request") != ""
}

// others are libraries with a few attributes each: MLflow and Genkit.
var others = Dialect{
	Name: "MLflow, Genkit",
	Table: []Attribute{
		{"mlflow.spanType", Decides, ""},
		{"genkit:metadata:subtype", Decides, ""},
		{"genkit:type", Decides, ""},
		{"genkit:name", Provider, ""}, // googleai/gemini-2.5-flash
		{"mlflow.spanInputs", ShownInput, ""},
		{"mlflow.spanOutputs", ShownOutput, ""},
		{"genkit:output", UsageWithin, "raw.usage"},
		{"genkit:output", UsageWithin, "raw.usageMetadata"},
		{"genkit:output", UsageWithin, "usage"},
		{"genkit:input", ShownInput, ""},
		{"genkit:output", ShownOutput, ""},
		{"tool.input", ShownInput, ""},
		{"tool.output", ShownOutput, ""},
	},
	Input:  []Source{{"genkit:input", GenkitRequest}, {"mlflow.spanInputs", Anything}},
	Output: []Source{{"genkit:output", GenkitResponse}, {"mlflow.spanOutputs", Anything}},
}

// mlflowKinds are the kinds of mlflow.spanType.
var mlflowKinds = map[string]Kind{
	"chat_model": Call, "llm": Call, "embedding": Embedding, "agent": Agent, "tool": Tool,
	"retriever": Retriever, "reranker": Retriever, "chain": Chain, "parser": Chain,
}

// genkitKinds are the kinds of genkit:metadata:subtype, of an action.
var genkitKinds = map[string]Kind{
	"model": Call, "background-model": Call, "embedder": Embedding, "tool": Tool, "tool.v2": Tool,
	"retriever": Retriever, "reranker": Retriever, "indexer": Retriever, "evaluator": Evaluator,
}

func mlflowKind(s Span) Kind {
	return kindOf(strings.Trim(s.Text("mlflow.spanType"), `"`), mlflowKinds)
}
