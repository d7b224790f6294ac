package otel

import (
	"slices"
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
	if len(u.Details) > 0 {
		o.add("prompt_tokens_details", u.Details)
	}
	if len(u.Out) > 0 {
		o.add("completion_tokens_details", u.Out)
	}
}

// tokenDetails are counts of some of the tokens, by their names in OpenAI's form.
type tokenDetails []tokenDetail

type tokenDetail struct {
	name  string
	count *int64
}

// add adds a count that is known. The first of a name counts.
func (d *tokenDetails) add(name string, count *int64) {
	if count != nil && !slices.ContainsFunc(*d, func(other tokenDetail) bool { return other.name == name }) {
		*d = append(*d, tokenDetail{name, count})
	}
}

func (d tokenDetails) members(o *object) {
	for _, detail := range d {
		o.addCount(detail.name, detail.count)
	}
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

	u := usage{Input: s.count(dialect.InputTokens), Output: s.count(dialect.OutputTokens)}
	read, written := s.count(dialect.CachedTokens), s.count(dialect.CacheWrites)
	u.Details.add("cached_tokens", read)
	u.Details.add("cache_write_tokens", written)
	s.each(dialect.InputDetail, func(name string, v value) { u.Details.add(name, v.count()) })
	u.Out.add("reasoning_tokens", s.count(dialect.ReasoningTokens))
	s.each(dialect.OutputDetail, func(name string, v value) { u.Out.add(name, v.count()) })

	// Sentry has the provider's own input of Anthropic's, and no cache, but all tokens.
	total := s.own.get("gen_ai.usage.total_tokens").count()
	if u.Input != nil && s.own.text("sentry.op") != "" && s.provider() == "anthropic" {
		*u.Input = max(*u.Input, zero(total)-zero(u.Output))
	}
	// Input normally includes what a cache served or took. Where it cannot, it does not.
	cached := zero(read) + zero(written)
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
	if u.Input == nil && u.Output == nil && len(u.Details)+len(u.Out) == 0 {
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
	u.Details.add("cached_tokens",
		firstCount(object, "input_cached_tokens", "cache_read_input_tokens", "input_cache_read"))
	u.Details.add("cache_write_tokens",
		firstCount(object, "input_cache_creation", "cache_creation_input_tokens", "input_cache_write"))
	u.Details.add("audio_tokens", firstCount(object, "input_audio_tokens", "input_audio"))
	u.Out.add("reasoning_tokens", firstCount(object, "output_reasoning_tokens", "output_reasoning"))
	u.Out.add("audio_tokens", firstCount(object, "output_audio_tokens", "output_audio"))
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
