package prices

import (
	"slices"
	"time"

	"promptspool/api/calls"
)

// Table holds prices by model. Using it does not change it, so any number of goroutines
// may share it.
type Table struct {
	models map[string][]price // by name, in the order of from
	under  *Table             // asked where this one has nothing; may be nil
}

// price is what a model costs from a day on.
type price struct {
	from  time.Time // zero means always
	rates rates
	over  int64 // with more input tokens, long applies; 0 means never
	long  rates
	tiers map[string]tierPrice
}

// tierPrice is what a service tier costs: a share of the usual price, or its own rates.
type tierPrice struct {
	percent uint64 // 0 means rates
	rates   rates
}

// rates are picodollars per token of each kind. -1 means not sold, or unknown.
type rates [kinds]int64

// The kinds of tokens.
const (
	input = iota
	output
	cached
	write
	writeHour
	reasoning
	audioIn
	audioOut
	kinds
)

var noRates = rates{-1, -1, -1, -1, -1, -1, -1, -1}

// Cost returns what a call cost at that moment, at a service tier ("" is the usual one).
// ok is false if it is unknown: no such model, no price for something that the call used,
// or unknown tokens.
func (t *Table) Cost(
	provider, model, tier string, at time.Time, u calls.Usage,
) (cost calls.Dollars, ok bool) {
	if u.Input == nil || model == "" {
		return 0, false
	}
	p := t.find(provider, model, at)
	if p == nil {
		return 0, false
	}

	r, percent := p.rates, uint64(100)
	if p.over > 0 && *u.Input > p.over {
		r = p.long
	}
	if tier != "" {
		price, known := p.tiers[tier]
		switch {
		// No price is better than the usual one, which a tier may be far from.
		case !known:
			return 0, false
		case price.percent > 0:
			percent = price.percent
		default:
			r = price.rates
		}
	}

	return r.cost(u, percent)
}

// find returns the price of a model at a moment, or nil.
func (t *Table) find(provider, model string, at time.Time) *price {
	// A more exact name in a table below wins over a less exact one here.
	for _, name := range candidates(provider, model) {
		for table := t; table != nil; table = table.under {
			if p := latest(table.models[name], at); p != nil {
				return p
			}
		}
	}

	return nil
}

// latest returns the last of the prices that applies at a moment, or nil.
func latest(prices []price, at time.Time) *price {
	for i, p := range slices.Backward(prices) {
		if !p.from.After(at) {
			return &prices[i]
		}
	}

	return nil
}
