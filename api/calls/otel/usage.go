package otel

import (
	"strings"

	"promptspool/api/calls/otel/dialect"
)

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
	if object := s.find(dialect.UsageObject).inner(); object.isObject() {
		if u := langfuseUsage(object); u != nil {
			return u
		}
	}
	if object := vercelUsage(s); object != nil {
		return object
	}

	u := usage{
		Input:  s.count(dialect.InputTokens),
		Output: s.count(dialect.OutputTokens),
		Details: inputDetails{
			Cached:  s.count(dialect.CachedTokens),
			Written: s.count(dialect.CacheWrites),
			Audio:   s.count(dialect.AudioInput),
		},
		Out: outputDetails{Reasoning: s.count(dialect.ReasoningTokens), Audio: s.count(dialect.AudioOutput)},
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
func (s *span) count(means dialect.Meaning) *int64 {
	lines := byMeaning[means]
	for i := range lines {
		if l := &lines[i]; s.own.has(&l.mark) {
			if n := s.own.get(l.Key).count(); n != nil {
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

// langfuseUsage reads usage_details. They are the provider's own object, or Langfuse's
// counts, which are disjoint: all input is the sum of those whose names begin so.
func langfuseUsage(object value) value {
	if !object.has("input", "output") {
		return object
	}

	var u usage
	u.Details = inputDetails{
		Cached:  firstCount(object, "input_cached_tokens", "cache_read_input_tokens", "input_cache_read"),
		Written: firstCount(object, "input_cache_creation", "cache_creation_input_tokens", "input_cache_write"),
		Audio:   firstCount(object, "input_audio_tokens", "input_audio"),
	}
	u.Out = outputDetails{
		Reasoning: firstCount(object, "output_reasoning_tokens", "output_reasoning"),
		Audio:     firstCount(object, "output_audio_tokens", "output_audio"),
	}
	var in, out int64
	for name, v := range objectOf(object) {
		n := zero(v.count())
		switch {
		case strings.HasPrefix(name, "input_priority"):
		case strings.HasPrefix(name, "input"), strings.HasPrefix(name, "cache_"):
			in += n
		case strings.HasPrefix(name, "output"):
			out += n
		}
	}
	u.Input, u.Output = &in, &out

	return u.json()
}

// firstCount returns the first count among the members called names.
func firstCount(object value, names ...string) *int64 {
	for _, name := range names {
		if n := object.at(name).count(); n != nil {
			return n
		}
	}

	return nil
}

// vercelUsage returns the provider's own counts, which older versions have only there: of
// Anthropic all of them. nil if they say no more than the attributes.
func vercelUsage(s *span) value {
	if s.own.text("ai.operationId") == "" || s.find(dialect.CachedTokens) != nil {
		return nil
	}
	counts := s.own.get("ai.response.providerMetadata").inner().at("anthropic", "usage")
	if counts.at("input_tokens").count() == nil {
		return nil
	}

	return counts
}
