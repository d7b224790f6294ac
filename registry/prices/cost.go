// Package prices computes what a model call costs, from tables of prices per token.
//
// All arithmetic is in integers: prices are in picodollars (a millionth of a millionth)
// per token, costs in billionths of a dollar, rounded once, half up, at the end. A model
// without a price has an unknown cost; there is no default.
package prices

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/api/wire/packed"
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

// cost adds up what each kind of token costs.
//
// Cached tokens, and those written to a cache, cost what plain input does if they have no
// separate price; reasoning costs what plain output does. Audio has no such default, and no
// table has a price of cached audio.
func (r rates) cost(u calls.Usage, percent uint64) (calls.Dollars, bool) {
	fromCache, heardFromCache := wire.OrZero(u.Cached), wire.OrZero(u.CachedAudio)
	written, writtenHour := wire.OrZero(u.CacheWrite), wire.OrZero(u.CacheWriteHour)
	reasoned, heard, spoken := wire.OrZero(u.Reasoning), wire.OrZero(u.AudioInput), wire.OrZero(u.AudioOutput)

	var sum total
	sum.add(*u.Input-fromCache-written-heard+heardFromCache, r[input])
	sum.add(heardFromCache)
	sum.add(fromCache-heardFromCache, r[cached], r[input])
	sum.add(written-writtenHour, r[write], r[input])
	sum.add(writtenHour, r[writeHour])
	sum.add(heard-heardFromCache, r[audioIn])

	plain := int64(0)
	switch {
	case u.Output != nil:
		plain = *u.Output - reasoned - spoken
	case r[output] >= 0:
		// The model has output, but its amount is unknown.
		return 0, false
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
	// Picodollars in a billionth of a dollar, times percent.
	const unit = 1000 * 100

	hi, lo := bits.Mul64(t.sum, percent)
	lo, carry := bits.Add64(lo, unit/2, 0)
	if t.unknown || hi+carry >= unit {
		return 0, false
	}
	n, _ := bits.Div64(hi+carry, lo, unit)

	return calls.Dollars(n), n <= math.MaxInt64
}

// builtInFile is prices.txt.
//
//go:embed prices.txt.zst
var builtInFile []byte

var builtIn = packed.Text(builtInFile)

// BuiltIn returns the table that comes with the program.
var BuiltIn = sync.OnceValue(func() *Table {
	t, err := parseTable(builtIn())
	if err != nil {
		panic("prices.txt: " + err.Error()) // a test reads it
	}
	return t
})

// The columns of prices.txt. The prices are in between.
const (
	columnName  = 1
	columnFrom  = 2
	columnPrice = 3 // the first of them
	columnTiers = 16
	columnDay   = 17 // when the price was looked up
	columnURL   = 18
	columns     = 19
)

// parseTable reads the form of prices.txt.
func parseTable(text string) (*Table, error) {
	t := &Table{models: make(map[string][]price)}
	hasHeader := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		f := strings.Fields(line)
		if len(f) != columns {
			return nil, fmt.Errorf("line %d has %d columns, not %d", i+1, len(f), columns)
		}
		if !hasHeader {
			hasHeader = true
			continue
		}

		p, err := parseRow(f)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		name := f[columnName]
		// In order of days, because a look-up takes the last price that applies.
		if have := t.models[name]; len(have) > 0 && !have[len(have)-1].from.Before(p.from) {
			return nil, fmt.Errorf("line %d: %s is above for the same day or a later one", i+1, name)
		}
		t.models[name] = append(t.models[name], p)
	}

	return t, nil
}

func parseRow(f []string) (p price, err error) {
	if f[columnFrom] != "-" {
		p.from, err = time.Parse(time.DateOnly, f[columnFrom])
		if err != nil {
			return p, err
		}
	}

	p.rates, p.long = noRates, noRates
	cells := []*int64{
		&p.rates[input], &p.rates[output], &p.rates[cached], &p.rates[write], &p.rates[writeHour],
		&p.rates[audioIn], &p.rates[audioOut],
		&p.over,
		&p.long[input], &p.long[output], &p.long[cached], &p.long[write], &p.long[writeHour],
	}
	for i, cell := range cells {
		text := f[columnPrice+i]
		switch {
		case text == "-":
		case cell == &p.over:
			*cell, err = strconv.ParseInt(text, 10, 64)
		default:
			// Dollars per million tokens are 10^6 picodollars per token.
			*cell, err = calls.ParseDecimal(text, 6)
		}
		if err != nil {
			return p, fmt.Errorf("%q: %w", text, err)
		}
	}

	p.tiers, err = parseTiers(f[columnTiers])
	if err != nil {
		return p, err
	}
	_, err = time.Parse(time.DateOnly, f[columnDay])
	if err != nil || !strings.HasPrefix(f[columnURL], "https://") {
		return p, errors.New("the day or the source is missing")
	}

	return p, nil
}

// parseTiers reads a list such as batch=50,priority=170.
func parseTiers(text string) (map[string]tierPrice, error) {
	if text == "-" {
		return nil, nil
	}

	tiers := make(map[string]tierPrice)
	for tier := range strings.SplitSeq(text, ",") {
		name, percent, _ := strings.Cut(tier, "=")
		n, err := strconv.ParseUint(percent, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("tier %q: must be a percentage above 0", tier)
		}
		tiers[name] = tierPrice{percent: n}
	}

	return tiers, nil
}

// Over makes a table from a file in the form of the community's
// model_prices_and_context_window.json. A model without a price there is looked up in
// under.
//
// Entries without prices per token (images, hours, pages) are skipped. Errors name the
// entry, or the line of what is not JSON.
func Over(under *Table, file []byte) (*Table, error) {
	var entries map[string]json.RawMessage
	err := json.Unmarshal(file, &entries)
	if s := (*json.SyntaxError)(nil); errors.As(err, &s) {
		return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(file[:s.Offset], []byte("\n")), err)
	}
	if err != nil || entries == nil {
		return nil, errors.New("an object of models is wanted, {\"model\": {...}, ...}")
	}

	t := &Table{models: make(map[string][]price), under: under}
	// It explains the form in words.
	delete(entries, "sample_spec")
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		p, found, err := communityPrice(entries[name])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		if found {
			t.models[strings.ToLower(name)] = []price{p}
		}
	}

	return t, nil
}

// longPrices are the suffixes of prices for calls with more input tokens than this.
var longPrices = []struct {
	suffix string
	tokens int64
}{
	{"_above_128k_tokens", 128_000},
	{"_above_200k_tokens", 200_000},
	{"_above_256k_tokens", 256_000},
	{"_above_272k_tokens", 272_000},
}

// tierPrices are the suffixes of prices of service tiers.
var tierPrices = map[string]string{"batch": "_batches", "flex": "_flex", "priority": "_priority"}

// communityPrice reads an entry. found is false if it has no price per token.
func communityPrice(raw json.RawMessage) (p price, found bool, err error) {
	var entry communityEntry
	if json.Unmarshal(raw, &entry) != nil || entry == nil {
		return p, false, errors.New("must be an object")
	}

	p.rates, found = entry.rates("", &err)
	for _, long := range longPrices {
		if r, ok := entry.rates(long.suffix, &err); ok {
			// Anything without a separate price for long calls costs the same in them.
			p.over, p.long = long.tokens, r.or(p.rates)
		}
	}
	for tier, suffix := range tierPrices {
		if r, ok := entry.rates(suffix, &err); ok {
			if p.tiers == nil {
				p.tiers = make(map[string]tierPrice)
			}
			p.tiers[tier] = tierPrice{rates: r.or(p.rates)}
		}
	}

	return p, found && (p.rates[input] >= 0 || p.rates[output] >= 0), err
}

type communityEntry map[string]json.RawMessage

// rateNames are the names of the prices in an entry.
var rateNames = [kinds]string{
	input:     "input_cost_per_token",
	output:    "output_cost_per_token",
	cached:    "cache_read_input_token_cost",
	write:     "cache_creation_input_token_cost",
	writeHour: "cache_creation_input_token_cost_above_1hr",
	reasoning: "output_cost_per_reasoning_token",
	audioIn:   "input_cost_per_audio_token",
	audioOut:  "output_cost_per_audio_token",
}

// rates reads the prices whose names end in a suffix, and notes what is wrong with one in fault.
// found is false if there is none.
func (e communityEntry) rates(suffix string, fault *error) (r rates, found bool) {
	r = noRates
	for kind, name := range rateNames {
		// The same prices for a tier or for long prompts have the same names with a
		// suffix.
		name += suffix
		value, ok := e[name]
		if !ok || string(value) == "null" {
			continue
		}
		n, bad := calls.ParseDecimal(string(value), 12)
		if bad != nil || n < 0 {
			bad = fmt.Errorf("%s must be a number of dollars per token, not %.40s", name, value)
			*fault = cmp.Or(*fault, bad)
		}
		r[kind], found = n, true
	}

	return r, found
}

// or fills what is unknown from other.
func (r rates) or(other rates) rates {
	for kind := range r {
		if r[kind] < 0 {
			r[kind] = other[kind]
		}
	}

	return r
}

// ending matches what calls add to the name of a model: variants at the same price, of Claude Code and
// of OpenRouter; the version of a Bedrock model; a date in the spellings of the providers (-2024-08-06,
// -20250514, @20250514); Gemini's -001; aliases of the newest.
var ending = regexp.MustCompile(`(\[1m\]|:beta|-v\d+(:\d+)?(:\d+k)?|:\d+|[-@]20\d\d-?\d\d-?\d\d|` +
	`-(preview|exp)-\d\d-\d\d(-?\d{4})?|-preview-\d\d-20\d\d|-0\d\d|[-@](latest|default))$`)

// variant matches the name of a model that was fine-tuned, ft:gpt-4o-2024-08-06:organization::id, and
// of a Claude that thinks. Those of others that think have another price.
var variant = regexp.MustCompile(`^(ft:[^:]*):.*|^(claude-.*):thinking$`)

// residence matches a path that promises where data stays, at a surcharge: azure/eu/gpt-4o.
var residence = regexp.MustCompile(`^(azure/)?(us|eu)/|/us-gov-`)

// regions matches the area that an inference profile of Bedrock names. A model without
// one runs in the region that is called, at the same price.
var regions = regexp.MustCompile(`^(us|eu|apac|au|jp|ca|us-gov)\.`)

// communityProviders maps our callers' names of providers to those in the community's
// file.
var communityProviders = map[string]string{
	"openai.azure":   "azure",
	"azureopenai":    "azure",
	"google":         "gemini",
	"vertexai":       "vertex_ai",
	"amazon.bedrock": "bedrock",
	"mistral":        "mistral",
	"mistralai":      "mistral",
	"cohere":         "cohere",
}

// candidates returns the names under which a model's price may be listed, the most exact
// first.
func candidates(provider, model string) []string {
	model = strings.ToLower(strings.TrimSpace(model))
	prefix, hasPrefix := communityProviders[strings.ToLower(provider)]
	var names []string
	add := func(name string) {
		if hasPrefix {
			names = append(names, prefix+"/"+name)
		}
		names = append(names, name)
		// Gateways write claude-3.5-sonnet, and Anthropic a hyphen.
		if strings.HasPrefix(name, "claude-") && strings.Contains(name, ".") {
			names = append(names, strings.ReplaceAll(name, ".", "-"))
		}
	}

	// A cloud's path, or a gateway's provider/model.
	if at := strings.LastIndexByte(model, '/'); at >= 0 {
		// The community's file may list the whole path; our
		// own table has the model alone.
		names = append(names, model)
		if residence.MatchString(model) {
			return names
		}
		model = model[at+1:]
	}
	model = variant.ReplaceAllString(model, "$1$2")

	for {
		add(model)
		if bare := regions.ReplaceAllString(model, ""); strings.Contains(bare, ".") {
			add("regional." + bare)
			if bare != model {
				add(bare)
			}
		}

		shorter := ending.ReplaceAllString(model, "")
		if shorter == model || shorter == "" {
			return names
		}
		model = shorter
	}
}
