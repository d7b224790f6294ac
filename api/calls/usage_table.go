package calls

import "strings"

// figure is the meaning of a number or a word in a usage.
type figure uint8

const (
	noFigure        figure = iota
	allInput               // with the tokens that were read from a cache and written to it
	someInput              // the same, or without them where a provider counts them beside it
	toolInput              // input beside the others
	outputTokens           // with the reasoning, unless the total has it beside them
	thoughtTokens          // reasoning beside the output
	reasoningTokens        // of the output
	totalTokens            // of input and output
	totalGemini            // the same: an answer that was blocked has nothing else
	cachedInside           // of the input: read from a cache
	cachedOfSDK            // the same, or beside it where the provider counts so
	cachedOutside          // the same, beside someInput
	writtenInside          // of the input: written to a cache
	writtenOutside         // the same, beside someInput
	writtenMinutes         // of the tokens written: to be kept for minutes
	writtenHour            // the same, for an hour
	audioInput             // of the input
	audioOutput            // of the output
	cachedAudio            // of the audio: read from a cache
	ownCost                // in dollars; those above are counts
	upstreamCost           // in dollars, paid to the provider of a gateway
	ownKey                 // whether the caller pays upstream itself
	serviceTier
	speedTier
	regionTier
	batchTier // only a caller names it
	figures
)

// usageTable has the figures in a usage by their paths, of which the first counts that is there:
// proxies add their own numbers beside the provider's. Capitals, _ and - mean nothing in them.
//
// in and out are the objects with parts of input and output, under any of their names.
var usageTable = []struct {
	is     figure
	paths  string
	source string // of each path
}{
	{allInput, "billed_units.input_tokens tokens.input_tokens", "docs.cohere.com/reference/chat: paid; all"},
	{outputTokens, "billed_units.output_tokens tokens.output_tokens", "the same"},
	{allInput, "prompt_tokens", "platform.openai.com/docs/api-reference/chat/object; AI SDK 4; LangChain"},
	{allInput, "promptTokenCount", "ai.google.dev/api/generate-content#UsageMetadata; Llama on Bedrock"},
	{allInput, "inputTokens.total", "AI SDK, LanguageModelV3Usage"},
	{allInput, "inputTextTokenCount prompt_eval_count input_length tokens", "Titan; Ollama; TGI; AI SDK's embeddings"},
	{someInput, "input_tokens", "with cached ones OpenAI responses, AI SDK; without Anthropic, Bedrock's TokenUsage"},
	{someInput, "inputTokenCount", "Bedrock, amazon-bedrock-invocationMetrics"},
	{toolInput, "toolUsePromptTokenCount", "Gemini"},
	{outputTokens, "completion_tokens output_tokens", "OpenAI; OpenAI responses, Anthropic, Bedrock, AI SDK"},
	{outputTokens, "candidatesTokenCount responseTokenCount", "Gemini; its Live API"},
	{outputTokens, "outputTokens.total outputTokenCount", "AI SDK, LanguageModelV3Usage; Bedrock's metrics"},
	{outputTokens, "generation_token_count results. eval_count generated_tokens", "Llama; Titan, of each; Ollama; TGI"},
	{thoughtTokens, "thoughtsTokenCount", "Gemini: candidatesTokenCount leaves them out"},
	{reasoningTokens, "out.reasoning_tokens out.reasoning out.thinking_tokens", "OpenAI, AI SDK 6; LangChain; Claude"},
	{reasoningTokens, "outputTokens.reasoning reasoning_tokens", "LanguageModelV3Usage; AI SDK 5, Perplexity"},
	{reasoningTokens, "openai.reasoningTokens", "AI SDK 4, providerMetadata"},
	{reasoningTokens, "thoughtsTokens", "Genkit: of the output or, as its total has it, beside it"},
	{totalTokens, "total_tokens", "OpenAI, Bedrock, AI SDK and others"},
	{totalGemini, "totalTokenCount", "Gemini"},
	{cachedInside, "in.cached_tokens", "platform.openai.com/docs/guides/prompt-caching"},
	{cachedInside, "in.cache_read in.cache_read_tokens", "LangChain's UsageMetadata; AI SDK 6"},
	{cachedInside, "in.cache_read_input_tokens", "Langfuse's usage_details"},
	{cachedInside, "inputTokens.cacheRead cachedContentTokenCount", "LanguageModelV3Usage; Gemini"},
	{cachedInside, "prompt_cache_hit_tokens cached_tokens cachedContentTokens", "DeepSeek; Moonshot; Genkit"},
	{cachedInside, "openai.cachedPromptTokens", "AI SDK 4, providerMetadata"},
	{cachedOfSDK, "cachedInputTokens anthropic.cacheReadInputTokens", "AI SDK 5; 4, providerMetadata"},
	{cachedOutside, "cache_read_input_tokens cacheReadInputTokenCount", "Anthropic, Bedrock's TokenUsage; its metrics"},
	{writtenInside, "in.cache_write_tokens inputTokens.cacheWrite", "OpenAI, AI SDK 6; LanguageModelV3Usage"},
	{writtenInside, "in.cache_write in.cache_creation_input_tokens", "Langfuse's usage_details"},
	{writtenInside, "in.cache_creation in.cache_creation_tokens", "LangChain's UsageMetadata; LiteLLM"},
	{writtenOutside, "cache_creation_input_tokens", "docs.anthropic.com, prompt caching"},
	{writtenOutside, "anthropic.cacheCreationInputTokens", "AI SDK 4 and 5, providerMetadata"},
	{writtenOutside, "cache_write_input_tokens cacheWriteInputTokenCount", "Bedrock's TokenUsage; its metrics"},
	{writtenMinutes, "cache_creation.ephemeral_5m_input_tokens cacheDetails.5m", "Anthropic; Bedrock"},
	{writtenMinutes, "in.ephemeral_5m_input_tokens", "LangChain's UsageMetadata, of Anthropic's"},
	{writtenHour, "cache_creation.ephemeral_1h_input_tokens cacheDetails.1h", "Anthropic; Bedrock's TokenUsage"},
	{writtenHour, "in.ephemeral_1h_input_tokens", "LangChain's UsageMetadata, of Anthropic's"},
	{audioInput, "in.audio_tokens in.audio in.modality_audio", "OpenAI; LangChain; Gemini's promptTokensDetails"},
	{audioOutput, "out.audio_tokens out.audio out.modality_audio", "OpenAI; Gemini's candidatesTokensDetails"},
	{cachedAudio, "in.cached_tokens_details.audio_tokens cacheTokensDetails.audio", "OpenAI's Realtime API; Gemini"},
	{ownCost, "cost", "openrouter.ai/docs/use-cases/usage-accounting"},
	{ownCost, "cost.total_cost estimated_cost", "docs.perplexity.ai/api-reference; DeepInfra"},
	{ownCost, "gateway.cost", "vercel.com/docs/ai-gateway, providerMetadata"},
	{upstreamCost, "cost_details.upstream_inference_cost", "OpenRouter"},
	{ownKey, "is_byok", "OpenRouter"},
	{serviceTier, "service_tier trafficType", "OpenAI, Anthropic, Gemini, Bedrock; Vertex AI's UsageMetadata"},
	{speedTier, "speed latency", "docs.anthropic.com, fast mode; Bedrock's performanceConfig"},
	{regionTier, "inference_geo", "docs.anthropic.com, data residency"},
}

// partsOf are the objects, and the lists, whose members are in and out in usageTable.
var partsOf = map[string]string{
	"in.": "prompt_tokens_details input_tokens_details input_token_details",
	"out.": "completion_tokens_details output_tokens_details output_token_details candidates_tokens_details " +
		"response_tokens_details",
}

// usageName is what a name inside a usage stands for.
type usageName struct {
	is     figure
	line   int    // of usageTable, counted by paths
	inside string // the beginning of the paths in an object or a list
}

// usageNames finds names by the path to them.
var usageNames = func() map[string]usageName {
	key := func(path string) string { return strings.ToLower(strings.ReplaceAll(path, "_", "")) }
	names, line := map[string]usageName{}, 0
	for _, row := range usageTable {
		for path := range strings.FieldsSeq(row.paths) {
			line++
			names[key(path)] = usageName{is: row.is, line: line}
		}
	}

	for path := range names {
		if at := strings.LastIndexByte(path, '.'); at > 0 {
			object := names[path[:at]]
			object.inside = path[:at+1]
			names[path[:at]] = object
		}
	}
	for short, all := range partsOf {
		for name := range strings.FieldsSeq(all) {
			names[key(name)] = usageName{inside: short}
		}
	}

	return names
}()

// places are paths of members, with the nameBits of the names that they begin with. 0 is the first
// element of a list, and . the object itself.
type places struct {
	paths [][]string
	bits  uint64
}

func placesOf(lines ...string) (p places) {
	for path := range strings.FieldsSeq(strings.Join(lines, " ")) {
		names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
		p.paths = append(p.paths, names)
		first, _, _ := strings.Cut(path, ".")
		p.bits |= nameBit(first)
	}

	return p
}

// values yields what an object has at places, with the path to each.
func (n node) values(p places) func(yield func([]string, node) bool) {
	return func(yield func([]string, node) bool) {
		for _, path := range p.paths {
			if len(path) > 0 && n.lacks(path[0]) {
				continue
			}
			if v := n.at(path...); v.exists() && !yield(path, v) {
				return
			}
		}
	}
}

// usagePlaces are where responses, and chunks of streams, have their usage: the first with counts.
var usagePlaces = placesOf(
	// AI SDK: of all steps; the provider's own, which older ones have only there.
	"totalUsage providerMetadata.anthropic.usage providerMetadata.openrouter.usage",
	// OpenAI, Anthropic, Mistral, Bedrock Converse and most others; Gemini.
	"usage usageMetadata usage_metadata",
	// Chunks: of Groq, Moonshot, Anthropic, OpenAI responses, Bedrock Converse, Cohere v2; Gemini CLI.
	"x_groq.usage choices.0.usage message.usage response.usage metadata.usage delta.usage response.usageMetadata",
	// LangChain's results, with OpenAI's numbers or Anthropic's, and its messages.
	"llm_output.token_usage llm_output.usage llmOutput.usage generations.0.0.message.usage_metadata",
	"generations.0.0.message.kwargs.usage_metadata llmOutput.tokenUsage llm_output.tokenUsage",
	"response_metadata.usage response_metadata.token_usage response_metadata.tokenUsage kwargs.usage_metadata",
	"kwargs.response_metadata.usage data.usage_metadata generations.0.message.usage_metadata",
	// LlamaIndex; Cohere v1; TGI; Llama, Titan and Ollama; InvokeModel's streams.
	"raw.usage raw.usageMetadata additional_kwargs meta.tokens meta.billed_units details .",
	"amazon-bedrock-invocationMetrics",
)

// answeredTiers are where responses name a tier outside their usage, and askedTiers where requests do.
var (
	answeredTiers = placesOf("service_tier serviceTier response.service_tier metadata.serviceTier",
		"llm_output.service_tier response_metadata.service_tier providerMetadata.openai.serviceTier",
		"performanceConfig.latency metadata.performanceConfig.latency llmOutput.serviceTier",
		"llmOutput.service_tier raw.service_tier kwargs.response_metadata.service_tier",
		"steps.0.providerMetadata.openai.serviceTier")
	askedTiers = placesOf("service_tier serviceTier extra_body.service_tier config.service_tier config.serviceTier",
		"kwargs.service_tier model_kwargs.service_tier providerOptions.openai.serviceTier performanceConfig.latency",
		"speed inference_geo extra_body.speed extra_body.inference_geo extraBody.service_tier body.service_tier",
		"parameters.service_tier options.service_tier invocation_params.service_tier generationConfig.serviceTier")
)
