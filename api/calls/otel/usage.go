package otel

import "strings"

// usage is that of a call in OpenAI's form: input includes what the cache served, output
// the reasoning.
type usage struct {
	Input, Output *int64
	Details       inputDetails
	Out           outputDetails
}

func (u usage) members(o *object) {
	o.addCount("prompt_tokens", u.Input)
	o.addCount("completion_tokens", u.Output)
	if u.Details != (inputDetails{}) {
		o.add("prompt_tokens_details", u.Details)
	}
	if u.Out != (outputDetails{}) {
		o.add("completion_tokens_details", u.Out)
	}
}

type inputDetails struct{ Cached, Written, Audio *int64 }

func (d inputDetails) members(o *object) {
	o.addCount("cached_tokens", d.Cached)
	o.addCount("cache_write_tokens", d.Written)
	o.addCount("audio_tokens", d.Audio)
}

type outputDetails struct{ Reasoning, Audio *int64 }

func (d outputDetails) members(o *object) {
	o.addCount("reasoning_tokens", d.Reasoning)
	o.addCount("audio_tokens", d.Audio)
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
		Details: inputDetails{
			Cached:  s.count(cachedTokens),
			Written: s.count(cacheWrites),
			Audio:   s.count(audioInput),
		},
		Out: outputDetails{Reasoning: s.count(reasoningTokens), Audio: s.count(audioOutput)},
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
	if u == (usage{}) {
		return nil
	}

	return encoded(u)
}

// count returns the first count with a meaning.
func (s *span) count(means meaning) *int64 {
	lines := byMeaning[means]
	for i := range lines {
		if l := &lines[i]; s.own.has(&l.mark) {
			if n := s.own.get(l.key).count(); n != nil {
				return n
			}
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
