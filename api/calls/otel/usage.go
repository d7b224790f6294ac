package otel

import (
	"strings"

	"promptspool/api/calls/otel/dialect"
)

// usage is that of a call in OpenAI's form: input includes what the cache served, output
// the reasoning.
type usage struct {
	Input, Output *int64
	Details, Out  tokenDetails // of Input, of Output
}

func (u usage) members(o *object) {
	o.addCount("prompt_tokens", u.Input)
	o.addCount("completion_tokens", u.Output)
	if u.Details != (tokenDetails{}) {
		o.add("prompt_tokens_details", u.Details)
	}
	if u.Out != (tokenDetails{}) {
		o.add("completion_tokens_details", u.Out)
	}
}

// tokenDetails are the counts of some of the tokens that went in, or that came out.
type tokenDetails struct{ Cached, Written, Reasoning, Audio, Text, Image, Video *int64 }

func (d tokenDetails) members(o *object) {
	o.addCount("cached_tokens", d.Cached)
	o.addCount("cache_write_tokens", d.Written)
	o.addCount("reasoning_tokens", d.Reasoning)
	o.addCount("audio_tokens", d.Audio)
	o.addCount("text_tokens", d.Text)
	o.addCount("image_tokens", d.Image)
	o.addCount("video_tokens", d.Video)
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
		Details: tokenDetails{
			Cached:  s.count(dialect.CachedTokens),
			Written: s.count(dialect.CacheWrites),
			Audio:   s.count(dialect.AudioInput),
			Text:    s.count(dialect.TextInput),
			Image:   s.count(dialect.ImageInput),
			Video:   s.count(dialect.VideoInput),
		},
		Out: tokenDetails{
			Reasoning: s.count(dialect.ReasoningTokens),
			Audio:     s.count(dialect.AudioOutput),
			Text:      s.count(dialect.TextOutput),
			Image:     s.count(dialect.ImageOutput),
			Video:     s.count(dialect.VideoOutput),
		},
	}

	// Sentry has the provider's own input of Anthropic's, and no cache, but all tokens.
	total := s.own.get("gen_ai.usage.total_tokens").count()
	if u.Input != nil && s.own.text("sentry.op") != "" && s.provider() == "anthropic" {
		*u.Input = max(*u.Input, zero(total)-zero(u.Output))
	}
	// Input normally includes what a cache served or took. Where it cannot, it does not.
	cached := zero(u.Details.Cached) + zero(u.Details.Written)
	if u.Input != nil && (cached > *u.Input || s.leavesOutCached()) {
		*u.Input += cached
	}
	if s.tables == ofAgents && u.Output != nil {
		*u.Output += zero(s.own.get("thoughts_token_count").count()) // as Gemini counts
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
	lines := s.tables.byMeaning[means]
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
	if s.tables == ofAgents {
		return s.own.get("cache_read_tokens") != nil
	}
	name := s.provider()
	exclusive := name == "anthropic" || name == bedrock
	switch {
	case !exclusive:
		return false
	case s.own.text("ai.operationId") != "":
		return len(s.own.sorted("ai.usage.inputTokenDetails.")) == 0
	}

	return strings.HasPrefix(s.scope, "@traceloop/instrumentation-") || strings.HasPrefix(s.scope, "strands.")
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
	u.Details = tokenDetails{
		Cached:  firstCount(object, "input_cached_tokens", "cache_read_input_tokens", "input_cache_read"),
		Written: firstCount(object, "input_cache_creation", "cache_creation_input_tokens", "input_cache_write"),
		Audio:   firstCount(object, "input_audio_tokens", "input_audio"),
	}
	u.Out = tokenDetails{
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
