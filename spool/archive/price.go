package archive

import (
	"slices"
	"strings"
	"time"

	"promptspool/api/calls"
)

// Prices returns what a call cost at a moment, at a service tier ("" is the usual one).
//
// ok is false if that is unknown. It is safe for concurrent use.
type Prices interface {
	Cost(provider, model, tier string, at time.Time, u calls.Usage) (cost calls.Dollars, ok bool)
}

// selfHosted are providers whose models run on their user's machines, under names that
// others sell. No price list applies to them.
var selfHosted = []string{"ollama", "vllm", "llamacpp", "lmstudio", "huggingface"}

// SetPrice sets what the call cost when it was made, and reports whether that changed
// anything. It was made at its start or, if that is unknown, when it was accepted. A price
// from the caller stays, beside that of the table.
func (r *Request) SetPrice(prices Prices, accepted time.Time) (changed bool) {
	at := accepted
	// A start after the call was accepted is a wrong clock.
	if r.Start != nil && r.Start.Before(accepted) {
		at = *r.Start
	}

	var price *calls.Dollars
	if prices != nil && !slices.Contains(selfHosted, strings.ToLower(r.Provider)) {
		if cost, ok := prices.Cost(r.Provider, r.Model, r.Tier, at, r.usage()); ok {
			price = &cost
		}
	}

	// The caller knows its discounts, and no table does.
	to := &r.Price
	if r.PriceGiven {
		to = &r.TablePrice
	}
	changed = (price == nil) != (*to == nil) || price != nil && *price != **to
	*to = price

	return changed
}

// usage returns the counts that a price depends on.
func (r *Request) usage() calls.Usage {
	return calls.Usage{
		Input:          r.InputTokens,
		Output:         r.OutputTokens,
		Cached:         r.CachedTokens,
		CacheWrite:     r.CacheWriteTokens,
		CacheWriteHour: r.CacheWriteHour,
		Reasoning:      r.ReasoningTokens,
		AudioInput:     r.AudioInput,
		AudioOutput:    r.AudioOutput,
	}
}
