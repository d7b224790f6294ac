package otel

import "strings"

// usage is that of a call in OpenAI's form: input includes what the cache served, output
// the reasoning.
type usage struct {
	Input   *int64         `json:"prompt_tokens,omitempty"`
	Output  *int64         `json:"completion_tokens,omitempty"`
	Details *inputDetails  `json:"prompt_tokens_details,omitempty"`
	Out     *outputDetails `json:"completion_tokens_details,omitempty"`
}

type inputDetails struct {
	Cached  *int64 `json:"cached_tokens,omitempty"`
	Written *int64 `json:"cache_write_tokens,omitempty"`
	Audio   *int64 `json:"audio_tokens,omitempty"`
}

type outputDetails struct {
	Reasoning *int64 `json:"reasoning_tokens,omitempty"`
	Audio     *int64 `json:"audio_tokens,omitempty"`
}

// usage returns the tokens of a call, or nil if they are unknown.
func (s *span) usage() value {
	if object := s.find(usageObject).inner(); object.isObject() {
		if u := langfuseUsage(object); u != nil {
			return u
		}
	}
	if object := vercelUsage(s); object != nil {
		return object
	}

	u := usage{
		Input:  s.count(inputTokens),
		Output: s.count(outputTokens),
		Details: &inputDetails{
			Cached:  s.count(cachedTokens),
			Written: s.count(cacheWrites),
			Audio:   s.count(audioInput),
		},
		Out: &outputDetails{Reasoning: s.count(reasoningTokens), Audio: s.count(audioOutput)},
	}

	// Input normally includes what a cache served or took. Where it cannot, it does not.
	cached := zero(u.Details.Cached) + zero(u.Details.Written)
	if u.Input != nil && (cached > *u.Input || s.leavesOutCached()) {
		*u.Input += cached
	}

	return u.json()
}

// json returns nil if nothing is known.
func (u usage) json() value {
	if *u.Details == (inputDetails{}) {
		u.Details = nil
	}
	if *u.Out == (outputDetails{}) {
		u.Out = nil
	}
	if u == (usage{}) {
		return nil
	}

	return encoded(u)
}

// count returns the first count with a meaning.
func (s *span) count(means meaning) *int64 {
	for _, a := range byMeaning[means] {
		if n := s.own[a.key].count(); n != nil {
			return n
		}
	}

	return nil
}

// leavesOutCached reports whether the span's library counts as its provider does, and the
// provider leaves out of the input what a cache served.
func (s *span) leavesOutCached() bool {
	name := s.provider()
	exclusive := name == "anthropic" || name == "amazon.bedrock"
	switch {
	case !exclusive:
		return false
	case s.own.text("ai.operationId") != "":
		return len(s.own.sorted("ai.usage.inputTokenDetails.")) == 0
	}

	return strings.HasPrefix(s.scope, "@traceloop/instrumentation-")
}

func zero(n *int64) int64 {
	if n == nil {
		return 0
	}

	return *n
}
