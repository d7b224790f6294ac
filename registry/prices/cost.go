package prices

import (
	"math"
	"math/bits"
	"slices"

	"promptspool/api/calls"
)

// cost adds up what each kind of token costs.
//
// Cached tokens, and those written to a cache, cost what plain input does if they have no
// separate price; reasoning costs what plain output does. Audio has no such default.
func (r rates) cost(u calls.Usage, percent uint64) (calls.Dollars, bool) {
	fromCache, written, writtenHour := zeroIfNil(u.Cached), zeroIfNil(u.CacheWrite), zeroIfNil(u.CacheWriteHour)
	reasoned, heard, spoken := zeroIfNil(u.Reasoning), zeroIfNil(u.AudioInput), zeroIfNil(u.AudioOutput)

	var sum total
	sum.add(*u.Input-fromCache-written-heard, r[input])
	sum.add(fromCache, r[cached], r[input])
	sum.add(written-writtenHour, r[write], r[input])
	sum.add(writtenHour, r[writeHour])
	sum.add(heard, r[audioIn])

	plain := int64(0)
	switch {
	case u.Output != nil:
		plain = *u.Output - reasoned - spoken
	case r[output] >= 0:
		return 0, false // the model has output, but its amount is unknown
	}
	sum.add(plain, r[output])
	sum.add(reasoned, r[reasoning], r[output])
	sum.add(spoken, r[audioOut])

	return sum.dollars(percent)
}

// total is a sum of picodollars.
type total struct {
	sum     uint64
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

	// No call costs more than the 18 million dollars that 64 bits hold.
	over, cost := bits.Mul64(uint64(tokens), uint64(prices[i]))
	sum, carry := bits.Add64(t.sum, cost, 0)
	t.sum, t.unknown = sum, t.unknown || over+carry > 0
}

// dollars returns the percentage of the sum in billionths, rounded half up.
func (t *total) dollars(percent uint64) (calls.Dollars, bool) {
	const unit = 1000 * 100 // picodollars in a billionth, times percent

	hi, lo := bits.Mul64(t.sum, percent)
	lo, carry := bits.Add64(lo, unit/2, 0)
	if t.unknown || hi+carry >= unit {
		return 0, false
	}
	n, _ := bits.Div64(hi+carry, lo, unit)

	return calls.Dollars(n), n <= math.MaxInt64
}

// zeroIfNil returns 0 for an unknown count.
func zeroIfNil(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
