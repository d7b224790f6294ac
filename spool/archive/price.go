package archive

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/registry/prices"
	"promptspool/spool/archive/calls"
)

// ownMachines are providers whose models run at their user's, under names that others sell: nobody's price list holds for them.
var ownMachines = []string{"ollama", "vllm", "llamacpp", "lmstudio", "huggingface"}

// price notes what the call cost when it was made: at its start, or, if that is unknown, when it was accepted. It says
// whether that changed anything. A price that the caller gave stays.
func (r *Request) price(table *prices.Table, accepted time.Time) (changed bool) {
	if r.PriceGiven {
		return false
	}
	at := accepted
	if r.Start != nil && r.Start.Before(accepted) {
		at = *r.Start
	}
	var price *prices.Dollars
	if !slices.Contains(ownMachines, strings.ToLower(r.Provider)) {
		if cost, ok := table.Cost(r.Provider, r.Model, at, prices.Usage{
			Input: r.InputTokens, Output: r.OutputTokens, Cached: zeroIfNil(r.CachedTokens), CacheWrite: zeroIfNil(r.CacheWriteTokens),
			CacheWriteHour: zeroIfNil(r.CacheWriteHour), Reasoning: zeroIfNil(r.ReasoningTokens),
			AudioInput: zeroIfNil(r.AudioInput), AudioOutput: zeroIfNil(r.AudioOutput), Tier: r.Tier,
		}); ok {
			price = &cost
		}
	}
	changed = (price == nil) != (r.Price == nil) || price != nil && *price != *r.Price
	r.Price = price
	return changed
}

// repriceTime is for how long one call of Reprice works before it tells how far it has come.
const repriceTime = 2 * time.Second

// errEnough ends a step of repricing.
var errEnough = errors.New("enough for one call")

// Reprice reads the requests of the account anew and prices them by today's table, each as of its own time, newest first, behind the cursor of an earlier
// call ("" for the first), for about 2 s. What it tells is durable; what is done again changes nothing.
func (a *Archive) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	change := func(accepted time.Time, r *Request, body func() ([]byte, error)) (bool, error) {
		raw, err := body()
		if err != nil {
			return false, err
		}
		return a.reread(accepted, r, raw), nil
	}
	var told wire.Repriced
	end := a.config.Now().Add(repriceTime)
	err := a.Rewrite(ctx, id, cursor, change, func(seen, changed int, cursor string) error {
		told = wire.Repriced{Success: true, Seen: seen, Changed: changed, Cursor: cursor, Done: cursor == ""}
		if a.config.Now().After(end) {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return wire.Repriced{}, err
	}
	return told, nil
}

// reread derives again what comes from the call, so that records gain what a newer version can read, and their price.
func (a *Archive) reread(accepted time.Time, r *Request, body json.RawMessage) (changed bool) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return false
	}
	before, _ := json.Marshal(r)
	call := calls.ReadObject(object)
	r.take(&call)
	r.price(a.config.Prices, accepted)
	after, _ := json.Marshal(r)
	return string(before) != string(after)
}

func zeroIfNil(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
