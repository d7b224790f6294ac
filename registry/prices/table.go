package prices

import (
	_ "embed"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Table is prices by model. It is not changed by use: any number of goroutines may share it.
type Table struct {
	models map[string][]price // by name, in the order of from
	under  *Table             // asked where this one has nothing; nil: none
}

// price is what a model costs from a day on.
type price struct {
	from  time.Time // zero: always
	rates rates
	over  int64 // with more input tokens than this the call is charged by long; 0: never
	long  rates
	tiers map[string]tierPrice
}

// tierPrice is what a service tier costs: a share of the usual price, or rates of its own.
type tierPrice struct {
	percent uint64 // 0: rates
	rates   rates
}

// rates are picodollars per token; -1 is not sold or not known.
type rates struct {
	input, output, cached, write, writeHour, reasoning, audioIn, audioOut int64
}

var noRates = rates{-1, -1, -1, -1, -1, -1, -1, -1}

// Usage is what a call took. Input includes Cached, CacheWrite and AudioInput; CacheWrite includes CacheWriteHour; Output includes
// Reasoning and AudioOutput. Output is nil if it is unknown, which is no fault where a model has only input.
type Usage struct {
	Input                                                                  *int64
	Output                                                                 *int64
	Cached, CacheWrite, CacheWriteHour, Reasoning, AudioInput, AudioOutput int64
	Tier                                                                   string // "" is the usual one
}

// Cost is what a call cost at that moment; ok is false if it is unknown: no such model, no price for something that the call
// took, or tokens that are unknown.
func (t *Table) Cost(provider, model string, at time.Time, u Usage) (cost Dollars, ok bool) {
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
	if u.Tier != "" {
		tier, known := p.tiers[u.Tier]
		switch {
		case !known:
			return 0, false
		case tier.percent > 0:
			percent = tier.percent
		default:
			r = tier.rates
		}
	}
	return r.cost(u, percent)
}

// find is the price of a model at a moment, or nil.
func (t *Table) find(provider, model string, at time.Time) *price {
	for _, name := range candidates(provider, model) {
		for table := t; table != nil; table = table.under {
			var found *price
			for i := range table.models[name] {
				if p := &table.models[name][i]; !p.from.After(at) {
					found = p
				}
			}
			if found != nil {
				return found
			}
		}
	}
	return nil
}

// cost adds up what each kind of token costs. Cached tokens and those written to a cache without a price of their own cost
// what plain input does, reasoning what plain output does; audio has no such default.
func (r rates) cost(u Usage, percent uint64) (Dollars, bool) {
	var sum total
	in, out := *u.Input-u.Cached-u.CacheWrite-u.AudioInput, int64(0)
	sum.add(in, r.input)
	sum.add(u.Cached, r.cached, r.input)
	sum.add(u.CacheWrite-u.CacheWriteHour, r.write, r.input)
	sum.add(u.CacheWriteHour, r.writeHour)
	sum.add(u.AudioInput, r.audioIn)
	switch {
	case u.Output != nil:
		out = *u.Output - u.Reasoning - u.AudioOutput
	case r.output >= 0:
		return 0, false
	}
	sum.add(out, r.output)
	sum.add(u.Reasoning, r.reasoning, r.output)
	sum.add(u.AudioOutput, r.audioOut)
	return sum.dollars(percent)
}

// total is a sum of picodollars in 128 bits.
type total struct {
	hi, lo  uint64
	unknown bool
}

// add adds tokens at the first of the prices that is known. No tokens cost nothing, whatever the price.
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

// dollars is the percentage of the sum in billionths, rounded half up.
func (t *total) dollars(percent uint64) (Dollars, bool) {
	const unit = 1000 * 100 // picodollars in a billionth, percent
	over, hi := bits.Mul64(t.hi, percent)
	carry, lo := bits.Mul64(t.lo, percent)
	var c uint64
	hi, c = bits.Add64(hi, carry, 0)
	lo, half := bits.Add64(lo, unit/2, 0)
	hi, overflow := bits.Add64(hi, half, 0)
	if t.unknown || over+c+overflow > 0 || hi >= unit {
		return 0, false
	}
	n, _ := bits.Div64(hi, lo, unit)
	if n > math.MaxInt64 {
		return 0, false
	}
	return Dollars(n), true
}

//go:embed prices.txt
var builtIn string

// BuiltIn is the table that comes with the program.
var BuiltIn = sync.OnceValue(func() *Table {
	t, err := parseTable(builtIn)
	if err != nil {
		panic("prices.txt: " + err.Error()) // a test reads it
	}
	return t
})

// parseTable reads the form of prices.txt.
func parseTable(text string) (*Table, error) {
	t := &Table{models: make(map[string][]price)}
	header := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 19 {
			return nil, fmt.Errorf("line %d has %d columns, not 19", i+1, len(f))
		}
		if !header {
			header = true
			continue
		}
		p, err := parseRow(f)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		name := f[1]
		if have := t.models[name]; len(have) > 0 && !have[len(have)-1].from.Before(p.from) {
			return nil, fmt.Errorf("line %d: %s stands above for the same day or a later one", i+1, name)
		}
		t.models[name] = append(t.models[name], p)
	}
	return t, nil
}

func parseRow(f []string) (p price, err error) {
	if f[2] != "-" {
		if p.from, err = time.Parse(time.DateOnly, f[2]); err != nil {
			return p, err
		}
	}
	p.rates, p.long = noRates, noRates
	cells := []*int64{&p.rates.input, &p.rates.output, &p.rates.cached, &p.rates.write, &p.rates.writeHour, &p.rates.audioIn, &p.rates.audioOut,
		nil, &p.long.input, &p.long.output, &p.long.cached, &p.long.write, &p.long.writeHour}
	for i, cell := range cells {
		text := f[3+i]
		switch {
		case text == "-":
		case cell == nil:
			p.over, err = strconv.ParseInt(text, 10, 64)
		default:
			*cell, err = parseDecimal(text, 6) // dollars per million tokens are millions of picodollars per token
		}
		if err != nil {
			return p, fmt.Errorf("%q: %w", text, err)
		}
	}
	if f[16] != "-" {
		p.tiers = make(map[string]tierPrice)
		for tier := range strings.SplitSeq(f[16], ",") {
			name, percent, _ := strings.Cut(tier, "=")
			n, err := strconv.ParseUint(percent, 10, 16)
			if err != nil || n == 0 {
				return p, fmt.Errorf("tier %q: a percentage above 0 is wanted", tier)
			}
			p.tiers[name] = tierPrice{percent: n}
		}
	}
	if _, err := time.Parse(time.DateOnly, f[17]); err != nil || !strings.HasPrefix(f[18], "https://") {
		return p, fmt.Errorf("the day or the source is missing")
	}
	return p, nil
}
