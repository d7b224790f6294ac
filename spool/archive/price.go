package archive

import (
	"slices"
	"strings"
	"time"

	"promptspool/registry/prices"
)

// selfHosted are providers whose models run on their user's machines, under names that
// others sell. No price list applies to them.
var selfHosted = []string{"ollama", "vllm", "llamacpp", "lmstudio", "huggingface"}

// SetPrice sets what the call cost when it was made, and reports whether that changed
// anything. It was made at its start or, if that is unknown, when it was accepted. A price
// from the caller stays.
func (r *Request) SetPrice(table *prices.Table, accepted time.Time) (changed bool) {
	// The caller knows its discounts, and no table does.
	if r.PriceGiven {
		return false
	}
	at := accepted
	// A start after the call was accepted is a wrong clock.
	if r.Start != nil && r.Start.Before(accepted) {
		at = *r.Start
	}

	var price *prices.Dollars
	if !slices.Contains(selfHosted, strings.ToLower(r.Provider)) {
		if cost, ok := table.Cost(r.Provider, r.Model, at, r.usage()); ok {
			price = &cost
		}
	}
	changed = (price == nil) != (r.Price == nil) || price != nil && *price != *r.Price
	r.Price = price

	return changed
}

// usage returns the counts that a price depends on.
func (r *Request) usage() prices.Usage {
	return prices.Usage{
		Input:          r.InputTokens,
		Output:         r.OutputTokens,
		Cached:         zeroIfNil(r.CachedTokens),
		CacheWrite:     zeroIfNil(r.CacheWriteTokens),
		CacheWriteHour: zeroIfNil(r.CacheWriteHour),
		Reasoning:      zeroIfNil(r.ReasoningTokens),
		AudioInput:     zeroIfNil(r.AudioInput),
		AudioOutput:    zeroIfNil(r.AudioOutput),
		Tier:           r.Tier,
	}
}

// zeroIfNil returns 0 for an unknown count.
func zeroIfNil(n *int64) int64 {
	if n == nil {
		return 0
	}

	return *n
}
