package calls

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Usage is the tokens that a call took, as its provider counts them; nil is unknown.
//
// Providers differ in what a count includes. Here Input is everything that went in,
// including what was read from or written to a cache, and Output everything that came
// out, including the model's reasoning.
type Usage struct {
	Input          *int64
	Output         *int64
	Cached         *int64 // of Input: read from the provider's cache
	CacheWrite     *int64 // of Input: written to it
	CacheWriteHour *int64 // of CacheWrite: to be kept for an hour
	Reasoning      *int64 // of Output
	AudioInput     *int64 // of Input
	AudioOutput    *int64 // of Output
	CachedAudio    *int64 `json:",omitempty"` // of Cached and of AudioInput
}

// all returns the counts: first those of wholes, then those of their parts.
func (u *Usage) all() [9]**int64 {
	return [...]**int64{&u.Input, &u.Output, &u.Cached, &u.CacheWrite, &u.CacheWriteHour,
		&u.Reasoning, &u.AudioInput, &u.AudioOutput, &u.CachedAudio}
}

// tally holds the figures of a response's usage. All chunks of a stream are read into one.
type tally struct {
	counts  [ownCost]*int64
	lines   [ownCost]int // of usageTable, which the counts are from
	met     int          // counts so far
	dollars [ownKey - ownCost]Dollars
	ownKey  string                        // true or false, "" for unknown
	tiers   [figures - serviceTier]string // usualTier for the usual price, "" for unknown

	// before and paid are those of the answers in front of this one, if the response has several.
	before *Usage
	paid   Dollars
}

// read adds the figures of a response, or of a chunk of a stream.
func (t *tally) read(response node) {
	t.readTiers(response, answeredTiers)
	// Nearly all chunks have no usage. All counts but Ollama's have tokens in their names, and k is rare.
	if !bytes.Contains(response.raw, []byte("ken")) && !response.at("eval_count").exists() {
		return
	}

	before := t.met
	for path, v := range response.values(usagePlaces) {
		t.object(v, "")
		// An object without counts must not hide those of another place.
		if t.met == before {
			continue
		}
		// The AI SDK leaves counts out that its provider has beside it.
		if len(path) > 0 && path[0] == "usage" && t.counts[cachedInside] == nil {
			t.object(response.first("providerMetadata", "experimental_providerMetadata"), "")
		}
		return
	}
}

// ask takes the tiers that arguments ask for. Those of the answer are read later, and count more.
func (t *tally) ask(kwargs, came node) {
	t.readTiers(kwargs, askedTiers)
	// Rows of a batch, and of its results, have an id of their caller's.
	if kwargs.at("batch").compact() == "true" || kwargs.at("custom_id").or(came.at("custom_id")).exists() {
		t.tier(batchTier, "batch")
	}
}

// readTiers takes the tiers at some places. Those of a later chunk replace those of an earlier one.
func (t *tally) readTiers(n node, from places) {
	if !n.hasAny(from) {
		return
	}

	for path, v := range n.values(from) {
		t.figure(named("", []byte(path[len(path)-1])), v)
	}
}

// object adds the figures of an object inside a usage.
func (t *tally) object(n node, inside string) {
	if !n.isObject() {
		return
	}

	c := jsonscan.Enter(n.raw, 0)
	for i := 0; i < membersMax && c.Next(); i++ {
		v := n.part(c.At, jsonscan.SkipValue(n.raw, c.At))
		c.At += len(v.raw)
		name := named(inside, jsonscan.UnquoteBytes(c.Name))
		switch {
		case name.inside != "" && v.isObject():
			t.object(v, name.inside)
		case name.inside != "" && v.isArray():
			t.list(v, name.inside)
		default:
			t.figure(name, v)
		}
	}
}

// list adds counts in a list of objects, each with its kind of tokens.
func (t *tally) list(n node, inside string) {
	sums := map[usageName]int64{}
	for e := range n.each {
		name := named(inside, []byte(bareEnum(e.texts("modality", "ttl"))))
		sums[name] += wire.OrZero(e.counts("tokenCount", "token_count", "inputTokens", "input_tokens"))
	}
	for name, n := range sums {
		if n > 0 {
			t.count(name, &n)
		}
	}
}

// bareEnum returns a word without its type, which Python's enums have in front.
func bareEnum(word string) string { return word[strings.LastIndexByte(word, '.')+1:] }

// named returns what a name stands for, without the hyphens and capitals of a language.
func named(inside string, name []byte) usageName {
	var memory [64]byte
	key := append(memory[:0], inside...)
	for _, b := range name {
		switch {
		case 'A' <= b && b <= 'Z':
			key = append(key, b|0x20)
		case b != '_' && b != '-':
			key = append(key, b)
		}
	}

	return usageNames[string(key)]
}

// figure adds the value with a name.
func (t *tally) figure(name usageName, v node) {
	switch is := name.is; {
	case is < ownCost:
		t.count(name, v.count())
	case is < ownKey:
		d, _ := ParseDollars(v.compact())
		t.dollars[is-ownCost] = max(t.dollars[is-ownCost], d)
	case is == ownKey:
		t.ownKey = v.compact()
	default:
		t.tier(is, v.text()+v.texts("type"))
	}
}

// count adds a count. Those of a stream's later chunks are larger: they count what the earlier
// ones did.
func (t *tally) count(name usageName, n *int64) {
	is := name.is
	if n == nil || is == noFigure || is >= ownCost {
		return
	}

	t.met++
	old, line := t.counts[is], t.lines[is]
	if old == nil || name.line < line || name.line == line && *n > *old {
		t.counts[is], t.lines[is] = n, name.line
	}
}

// usage returns the counts of a call to a model.
func (t *tally) usage(model string) Usage {
	if t.met > 0 || t.before == nil {
		t.next(model)
	}

	return *t.before
}

// next ends an answer of several, which have a usage each.
func (t *tally) next(model string) {
	u := t.answer(model)
	if t.before != nil {
		u = t.before.plus(u)
	}
	*t = tally{before: &u, paid: t.price(), tiers: t.tiers}
}

// answer returns the counts of one answer.
func (t *tally) answer(model string) Usage {
	n := &t.counts
	u := Usage{
		Input:          cmp.Or(n[allInput], n[someInput]),
		Output:         n[outputTokens],
		Cached:         cmp.Or(n[cachedInside], n[cachedOfSDK], n[cachedOutside]),
		CacheWrite:     cmp.Or(n[writtenInside], n[writtenOutside]),
		CacheWriteHour: n[writtenHour],
		Reasoning:      cmp.Or(n[thoughtTokens], n[reasoningTokens]),
		AudioInput:     n[audioInput],
		AudioOutput:    n[audioOutput],
		CachedAudio:    n[cachedAudio],
	}
	aged := sum(new(int64), u.CacheWriteHour, n[writtenMinutes])
	if wire.OrZero(aged) > wire.OrZero(u.CacheWrite) {
		u.CacheWrite = aged
	}
	u.Input = sum(u.Input, n[toolInput])

	total, thoughts := cmp.Or(n[totalTokens], n[totalGemini]), n[thoughtTokens]
	switch {
	case thoughts != nil:
		u.Output = sum(thoughts, u.Output)
	// A blocked answer has no candidates and no count of them. The total shows that
	// there were none.
	case u.Output == nil && n[totalGemini] != nil && u.Input != nil && *total == *u.Input:
		u.Output = new(int64)
	}

	outside := cmp.Or(n[allInput], n[cachedInside], n[cachedOfSDK]) == nil
	// The AI SDK counts as the provider does, but for its total.
	if n[cachedInside] == nil && n[cachedOfSDK] != nil && strings.Contains(model, "claude") {
		outside, total = true, nil
	}
	u.place(outside, thoughts != nil, total)
	u.check()

	return u
}

// price returns the provider's own price; 0 if the answer has none, or a fee alone. A fee may have
// the price upstream in it.
func (t *tally) price() Dollars {
	cost, upstream := t.dollars[0], t.dollars[upstreamCost-ownCost]
	switch {
	case t.ownKey == "true" && upstream == 0:
		cost = 0
	case t.ownKey != "false" && upstream > cost:
		cost += upstream
	}

	return t.paid + cost
}

// plus adds another usage. One that does not say how much went in or out makes both unknown.
func (u *Usage) plus(v Usage) Usage {
	both, more := *u, v.all()
	for i, n := range both.all() {
		isWhole := i < 2
		switch m := *more[i]; {
		case *n == nil && !isWhole:
			*n = m
		case m == nil && isWhole:
			*n = nil
		default:
			*n = sum(*n, m)
		}
	}
	both.check()

	return both
}

// place adds to the whole the parts that the provider counts beside it, as the names of its counts
// and a stated total have it. A whole that they contradict each other about becomes unknown.
func (u *Usage) place(cacheOutside, hasThoughts bool, total *int64) {
	in, out, reasoned := wire.OrZero(u.Input), wire.OrZero(u.Output), wire.OrZero(u.Reasoning)
	cached := wire.OrZero(u.Cached) + wire.OrZero(u.CacheWrite)
	if hasThoughts {
		// Output has them already.
		reasoned = 0
	}

	// Parts that are more than the whole can only be beside it.
	outside, reasonOutside := cacheOutside || cached > in, reasoned > out
	if total != nil && u.Input != nil {
		switch rest := *total - in - out; {
		case rest == 0 && cacheOutside && cached > 0:
			u.Input = nil
		case rest == 0:
			outside, reasonOutside = false, false
		case rest == cached, rest == cached+reasoned:
			outside, reasonOutside = true, rest > cached
		case rest == reasoned:
			outside, reasonOutside = false, true
		default:
			outside, reasonOutside = cacheOutside, false
		}
	}

	if outside {
		u.Input = sum(u.Input, u.Cached, u.CacheWrite)
	}
	if reasonOutside {
		u.Output = sum(u.Output, u.Reasoning)
	}
}

// check makes a whole unknown that is smaller than its parts, with them. Which of them is wrong
// cannot be known.
func (u *Usage) check() {
	cached, audio, both := wire.OrZero(u.Cached), wire.OrZero(u.AudioInput), wire.OrZero(u.CachedAudio)
	if u.Input == nil || max(cached+wire.OrZero(u.CacheWrite), audio) > *u.Input || both > min(cached, audio) {
		*u = Usage{Output: u.Output, Reasoning: u.Reasoning, AudioOutput: u.AudioOutput}
	}
	if u.Output == nil || max(wire.OrZero(u.Reasoning), wire.OrZero(u.AudioOutput)) > *u.Output {
		u.Output, u.Reasoning, u.AudioOutput = nil, nil, nil
	}
}

// sum adds the known counts to n. It returns nil if n is unknown, or the sum too large.
func sum(n *int64, more ...*int64) *int64 {
	if n == nil {
		return nil
	}

	s := *n
	for _, m := range more {
		s += wire.OrZero(m)
	}
	if s > 1<<53 {
		return nil
	}

	return &s
}

// settle sets tokens, price and tier.
func (c *Call) settle(t *tally, kwargs node) {
	c.Tier = t.charged()
	c.Usage, c.Price = t.usage(c.Model), t.price()
	if c.Usage == (Usage{}) {
		var own tally
		// LlamaIndex's handler.
		own.object(kwargs.at("usage").or(kwargs.at("kwargs", "usage")), "")
		c.Usage = own.usage(c.Model)
	}
}

const usualTier = "standard"

// usualTiers are other names of the usual price.
var usualTiers = strings.Fields("auto default standard_only on_demand unspecified traffic_type_unspecified global " +
	"not_available")

// tier keeps the name of a tier.
func (t *tally) tier(is figure, name string) {
	name = strings.ToLower(bareEnum(name))
	name = strings.TrimPrefix(strings.TrimPrefix(name, "on_demand_"), "service_tier_")
	if slices.Contains(usualTiers, name) {
		name = usualTier
	}
	if name == "batch" {
		is = batchTier
	}
	if name != "" {
		t.tiers[is-serviceTier] = Clip(name)
	}
}

// charged returns the names of the tiers that were charged, "" for the usual price.
func (t *tally) charged() string {
	isUsual := func(name string) bool { return name == "" || name == usualTier }
	names := slices.DeleteFunc(slices.Clone(t.tiers[:]), isUsual)

	return Clip(strings.Join(names, " "))
}

// Dollars is an exact amount of US dollars, in billionths of one. Up to nine billion
// dollars fit.
type Dollars int64

// dollar is one dollar.
const dollar Dollars = 1_000_000_000

// String returns the amount in decimal, without trailing zeros: 0.00000275.
func (d Dollars) String() string {
	sign, n := "", uint64(d)
	if d < 0 {
		// As unsigned, because the smallest int64 has no positive counterpart.
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%s%d.%09d", sign, n/uint64(dollar), n%uint64(dollar))

	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Float returns the nearest floating-point number of dollars, for statistics and filters.
func (d Dollars) Float() float64 { return float64(d) / float64(dollar) }

// MarshalJSON writes a number of dollars.
func (d Dollars) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a number of dollars, rounded to billionths.
func (d *Dollars) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	parsed, err := ParseDollars(string(raw))
	*d = parsed

	return err
}

var errDollars = errors.New("is not an amount of dollars below 9,000,000,000")

// ParseDollars reads a number of dollars, written as in JSON. It rounds half away from
// zero to billionths.
func ParseDollars(s string) (Dollars, error) {
	n, err := ParseDecimal(s, 9)
	if err != nil || n >= 9e18 || n <= -9e18 {
		return 0, errDollars
	}

	return Dollars(n), nil
}

var errDecimal = errors.New("is not a decimal number of a usual size")

// decimalText is a decimal number, whose exponent is not so large that its zeros take long.
var decimalText = regexp.MustCompile(`^-?(\d+\.?\d*|\.\d+)([eE][+-]?0*\d{1,3})?$`)

// decimalBytesMax bounds a decimal number that is read.
const decimalBytesMax = 400

// ParseDecimal reads a decimal number and returns it times 10 to the power of places.
//
// It takes an exponent, and rounds half away from zero, without any binary fraction.
func ParseDecimal(s string, places int) (int64, error) {
	if len(s) > decimalBytesMax || !decimalText.MatchString(s) {
		return 0, errDecimal
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, errDecimal
	}
	digits := strings.Replace(r.FloatString(places), ".", "", 1)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > 1<<62 || n < -1<<62 {
		return 0, errDecimal
	}

	return n, nil
}
