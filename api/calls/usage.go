package calls

import "bytes"

// Usage is the tokens that a call took, as its provider counts them; nil is unknown.
//
// Providers differ in what a count includes. Here Input is everything that went in,
// including what was read from or written to a cache, and Output everything that came
// out, including the model's reasoning.
type Usage struct {
	Input          *int64
	Output         *int64
	Cached         *int64 // of Input: read from the provider's cache
	CacheWrite     *int64 // of Input: written to it
	CacheWriteHour *int64 // of CacheWrite: to be kept for an hour
	Reasoning      *int64 // of Output
	AudioInput     *int64 // of Input
	AudioOutput    *int64 // of Output
}

// usagePlaces are where the providers' responses have their usage.
var usagePlaces = [][]string{
	{"usage"},                      // OpenAI, Anthropic, Mistral, Cohere v2, Bedrock Converse
	{"usageMetadata"},              // Gemini over REST
	{"usage_metadata"},             // Gemini's Python library, LangChain's messages
	{"llm_output", "token_usage"},  // LangChain, OpenAI's numbers
	{"llm_output", "tokenUsage"},   // LangChain in JavaScript
	{"llmOutput", "tokenUsage"},    // the same, as it calls it itself
	{"llm_output", "usage"},        // LangChain, Anthropic's
	{"response", "usage"},          // OpenAI responses, the last event of a stream
	{"meta", "tokens"},             // Cohere v1
	{"meta", "billed_units"},       // Cohere v1, older
	{"response_metadata", "usage"}, // LangChain's messages
	{"response_metadata", "token_usage"},
}

// readUsage finds the usage in a response of any provider.
func readUsage(response node) Usage {
	for _, place := range usagePlaces {
		if u := response.at(place...); u.isObject() {
			// An object without counts must not hide those of another place.
			if usage := usageOf(u); usage != (Usage{}) {
				return usage
			}
		}
	}

	// Some have their counts at the top: Llama and Titan on Bedrock, Ollama.
	u := Usage{
		Input:  response.counts("prompt_token_count", "inputTextTokenCount", "prompt_eval_count"),
		Output: response.counts("generation_token_count", "eval_count"),
	}
	if u.Output == nil {
		u.Output = response.at("results").element().counts("tokenCount")
	}

	return u
}

// usageOf reads a usage object.
//
//	OpenAI     prompt_tokens or input_tokens include the cached ones, completion_tokens or
//	           output_tokens the reasoning
//	           https://platform.openai.com/docs/api-reference/chat/object
//	Anthropic  input_tokens leave out what was read from the cache and what was written to it
//	           https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
//	Bedrock    inputTokens, as Anthropic
//	           https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html
//	Gemini     promptTokenCount includes the cached ones, candidatesTokenCount leaves out the thoughts
//	           https://ai.google.dev/api/generate-content#UsageMetadata
//	Cohere     tokens is what the model saw, billed_units what is paid for: the latter wins
//	           https://docs.cohere.com/reference/chat
func usageOf(u node) Usage {
	// The names of all counts have this word.
	if !bytes.Contains(u.raw, []byte("oken")) {
		return Usage{}
	}

	u = u.indexed()
	if billed := u.at("billed_units"); billed.counts("input_tokens", "output_tokens") != nil {
		u = billed.indexed()
	} else if tokens := u.at("tokens"); tokens.isObject() {
		u = tokens.indexed()
	}

	in := u.first("prompt_tokens_details", "input_tokens_details", "input_token_details")
	out := u.first("completion_tokens_details", "output_tokens_details", "output_token_details")
	// The first name that exists wins: proxies add their own numbers beside the
	// provider's.
	usage := Usage{
		Input: u.counts("prompt_tokens", "promptTokenCount", "prompt_token_count", "promptTokens"),
		Output: u.counts("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount",
			"candidates_token_count", "completionTokens"),
		Cached:      in.counts("cached_tokens", "cache_read"),
		CacheWrite:  in.counts("cache_write_tokens", "cache_creation"),
		Reasoning:   out.counts("reasoning_tokens", "reasoning", "thinking_tokens"),
		AudioInput:  in.counts("audio_tokens", "audio"),
		AudioOutput: out.counts("audio_tokens", "audio"),
	}

	// Anthropic and Bedrock count what a cache served apart from input_tokens. A proxy
	// may report it a second time in OpenAI's details: then input_tokens includes it.
	read := u.counts("cache_read_input_tokens", "cacheReadInputTokens")
	written := u.counts("cache_creation_input_tokens", "cacheWriteInputTokens")
	if usage.Input == nil {
		usage.Input = u.counts("input_tokens", "inputTokens")
		if usage.Cached == nil {
			usage.Input = sum(usage.Input, read, written)
		}
	}
	if usage.Cached == nil {
		usage.Cached = read
	}
	if usage.Cached == nil {
		usage.Cached = u.counts("cachedContentTokenCount", "cached_content_token_count",
			"prompt_cache_hit_tokens", "cached_tokens")
	}
	if usage.CacheWrite == nil {
		usage.CacheWrite = written
	}
	usage.CacheWriteHour = u.at("cache_creation").counts("ephemeral_1h_input_tokens")

	usage.addGemini(u)
	usage.addReasoning(u)
	usage.check()

	return usage
}

// addGemini adds what Gemini counts separately.
func (u *Usage) addGemini(n node) {
	if thoughts := n.counts("thoughtsTokenCount", "thoughts_token_count"); thoughts != nil {
		u.Reasoning = thoughts
		u.Output = sum(thoughts, u.Output)
	} else if u.Output == nil && n.first("promptTokenCount", "prompt_token_count").exists() && u.Input != nil {
		// A blocked answer has no candidates and no count of them. The total shows that
		// there were none.
		if total := n.counts("totalTokenCount", "total_token_count"); total != nil && *total == *u.Input {
			u.Output = new(int64)
		}
	}

	u.Input = sum(u.Input, n.counts("toolUsePromptTokenCount", "tool_use_prompt_token_count"))
}

// addReasoning adds the reasoning for APIs in OpenAI's shape that leave it out of
// completion_tokens, which their total shows.
func (u *Usage) addReasoning(n node) {
	total := n.counts("total_tokens")
	if u.Reasoning == nil || *u.Reasoning == 0 || u.Input == nil || u.Output == nil || total == nil {
		return
	}
	// Only where the three add up exactly: otherwise the
	// output includes the reasoning already.
	if *total == *u.Input+*u.Output+*u.Reasoning {
		u.Output = sum(u.Output, u.Reasoning)
	}
}

// check drops parts that are larger than what they are a part of.
func (u *Usage) check() {
	within := func(part **int64, whole *int64) {
		if *part != nil && (whole == nil || **part > *whole) {
			*part = nil
		}
	}
	within(&u.Cached, u.Input)
	within(&u.CacheWrite, u.Input)
	// Each may fit although both together do not. Which of them is wrong cannot be known.
	if u.Cached != nil && u.CacheWrite != nil && *u.Cached+*u.CacheWrite > *u.Input {
		u.Cached, u.CacheWrite = nil, nil
	}
	within(&u.CacheWriteHour, u.CacheWrite)
	within(&u.Reasoning, u.Output)
	within(&u.AudioInput, u.Input)
	within(&u.AudioOutput, u.Output)
}

// sum adds the known counts to n. It returns nil if n is unknown, or the sum too large.
func sum(n *int64, more ...*int64) *int64 {
	if n == nil {
		return nil
	}

	s := *n
	for _, m := range more {
		if m != nil {
			s += *m
		}
	}
	if s > 1<<53 {
		return nil
	}

	return &s
}
