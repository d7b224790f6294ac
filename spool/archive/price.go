package archive

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/registry/prices"
)

// selfHosted are providers whose models run on their user's machines, under names that
// others sell. No price list applies to them.
var selfHosted = []string{"ollama", "vllm", "llamacpp", "lmstudio", "huggingface"}

// price sets what the call cost when it was made: at its start or, if that is
// unknown, when it was accepted. It reports whether that changed anything. A price
// from the caller stays.
func (r *Request) price(table *prices.Table, accepted time.Time) (changed bool) {
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

// repriceTime is how long one call of Reprice works before it reports how far it got.
const repriceTime = 2 * time.Second

// errRepriceStep ends a call of Reprice that has worked long enough.
var errRepriceStep = errors.New("enough for one call")

// Reprice prices the account's requests by today's table, each as of its own time. It
// reads them anew, newest first behind the cursor of an earlier call ("" for the first),
// for about 2 s. What it reports is durable, and repeating it changes nothing. With
// an error it reports what was changed before that.
func (a *Archive) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	change := func(accepted time.Time, r *Request, body func() ([]byte, error)) (bool, error) {
		raw, err := body()
		if err != nil {
			return false, err
		}
		return a.reread(accepted, r, raw), nil
	}

	var answer wire.Repriced
	end := a.config.Now().Add(repriceTime)
	progress := func(seen, changed int, cursor string) error {
		// The step is durable, so it counts even if it is the last of this call.
		answer = wire.Repriced{
			Success: true,
			Seen:    seen,
			Changed: changed,
			Cursor:  cursor,
			Done:    cursor == "",
		}
		if a.config.Now().After(end) {
			return errRepriceStep
		}
		return nil
	}

	err := a.Rewrite(ctx, id, cursor, change, progress)
	if errors.Is(err, errRepriceStep) {
		err = nil
	}

	return answer, err
}

// reread derives again what comes from the call, and its price, so that records gain what
// a newer version can read.
func (a *Archive) reread(accepted time.Time, r *Request, body json.RawMessage) (changed bool) {
	object, err := wire.ParseObject(body)
	if err != nil {
		// The record keeps what was read when the body arrived.
		return false
	}

	// Compared as they are stored: the same bytes need no write.
	before, _ := json.Marshal(r)
	call := calls.ReadObject(context.Background(), object)
	r.take(&call)
	r.price(a.config.Prices, accepted)
	after, _ := json.Marshal(r)

	return string(before) != string(after)
}

// zeroIfNil returns 0 for an unknown count.
func zeroIfNil(n *int64) int64 {
	if n == nil {
		return 0
	}

	return *n
}
