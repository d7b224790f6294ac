package prices

import (
	"math"
	"math/bits"
	"slices"
)

// cost adds up what each kind of token costs.
//
// Cached tokens, and those written to a cache, cost what plain input does if they have no
// price of their own; reasoning costs what plain output does. Audio has no such default.
func (r rates) cost(u Usage, percent uint64) (Dollars, bool) {
	var sum total
	sum.add(*u.Input-u.Cached-u.CacheWrite-u.AudioInput, r.input)
	sum.add(u.Cached, r.cached, r.input)
	sum.add(u.CacheWrite-u.CacheWriteHour, r.write, r.input)
	sum.add(u.CacheWriteHour, r.writeHour)
	sum.add(u.AudioInput, r.audioIn)

	output := int64(0)
	switch {
	case u.Output != nil:
		output = *u.Output - u.Reasoning - u.AudioOutput
	case r.output >= 0:
		return 0, false // the model has output, but nobody knows how much
	}
	sum.add(output, r.output)
	sum.add(u.Reasoning, r.reasoning, r.output)
	sum.add(u.AudioOutput, r.audioOut)

	return sum.dollars(percent)
}

// total is a sum of picodollars in 128 bits.
type total struct {
	hi, lo  uint64
	unknown bool
}

// add adds tokens at the first of the prices that is known. No tokens cost nothing,
// whatever the price.
func (t *total) add(tokens int64, prices ...int64) {
	if tokens == 0 {
		return
	}
	i := slices.IndexFunc(prices, func(p int64) bool { return p >= 0 })
	if tokens < 0 || i < 0 {
		t.unknown = true
		return
	}

	hi, lo := bits.Mul64(uint64(tokens), uint64(prices[i]))
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, lo, 0)
	t.hi, carry = bits.Add64(t.hi, hi, carry)
	t.unknown = t.unknown || carry > 0
}

// dollars returns the percentage of the sum in billionths, rounded half up.
func (t *total) dollars(percent uint64) (Dollars, bool) {
	const unit = 1000 * 100 // picodollars in a billionth, times percent

	// (hi, lo) times percent, plus half a unit, in 128 bits. Any carry beyond them is an
	// overflow.
	over, hi := bits.Mul64(t.hi, percent)
	carry, lo := bits.Mul64(t.lo, percent)
	hi, overflowProduct := bits.Add64(hi, carry, 0)
	lo, half := bits.Add64(lo, unit/2, 0)
	hi, overflowHalf := bits.Add64(hi, half, 0)
	if t.unknown || over+overflowProduct+overflowHalf > 0 || hi >= unit {
		return 0, false
	}

	n, _ := bits.Div64(hi, lo, unit)
	if n > math.MaxInt64 {
		return 0, false
	}

	return Dollars(n), true
}
