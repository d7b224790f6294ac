package calls

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

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

// tally holds the figures of a response's usage. All chunks of a stream are read into one.
type tally struct {
	counts [ownCost]struct {
		n    int64
		line int // of usageNames
	}
	cost, upstream Dollars
	ownKey         bool
	tiers          [figures - serviceTier]string // usualTier for the usual price, "" for unknown

	// before and paid are those of the answers in front of this one, if the response has several.
	before *Usage
	paid   Dollars
}

// chunkBytes is up to what length a chunk is searched for counts before it is taken apart.
const chunkBytes = 2048

// read adds the figures of a response, or of a chunk of a stream.
func (t *tally) read(response node) {
	t.readTiers(response, answeredTiers)
	// Nearly all chunks have no usage. All counts but Ollama's have tokens in their names, and k is rare.
	isOllama := response.index != nil && response.index.names&nameBit("eval_count") != 0
	if len(response.raw) < chunkBytes && !isOllama && !bytes.Contains(response.raw, []byte("ken")) {
		return
	}

	for _, path := range usagePlaces.paths {
		// An object without counts must not hide those of another place.
		if t.object(response.follow(path), "") {
			return
		}
	}
}

// follow is at for a path in which 0 stands for the first element of a list.
func (n node) follow(path []string) node {
	for _, name := range path {
		if name == "0" {
			n = n.element()
		} else {
			n = n.member(name)
		}
	}

	return n
}

// readTiers takes the tiers at some places. Those of a later chunk replace those of an earlier one.
func (t *tally) readTiers(n node, from places) {
	if n.index == nil || n.index.names&from.bits == 0 {
		return
	}

	for _, path := range from.paths {
		if v := n.follow(path); v.exists() {
			var memory [usageNameBytes]byte
			t.figure(usageNames.lines[string(spelled(memory[:0], path[len(path)-1]))], v)
		}
	}
}

// object adds the figures of an object inside a usage, and reports whether it has a count.
func (t *tally) object(n node, inside string) (found bool) {
	if !n.isObject() {
		return false
	}

	c := jsonscan.Enter(n.raw, 0)
	for i := 0; i < membersMax && c.Next(); i++ {
		v := n.part(c.At, jsonscan.SkipValue(n.raw, c.At))
		c.At += len(v.raw)
		var memory [usageNameBytes]byte
		key := spelled(append(memory[:0], inside...), jsonscan.UnquoteBytes(c.Name))
		switch to, known := usageNames.objects[string(key)]; {
		case known && v.isObject():
			found = t.object(v, to) || found
		case known && v.isArray():
			found = t.list(v, to) || found
		default:
			found = t.figure(usageNames.lines[string(key)], v) || found
		}
	}

	return found
}

// list adds counts in a list of objects, each with its kind of tokens.
func (t *tally) list(n node, inside string) (found bool) {
	sums := make([]int64, len(usageNames.is)) // by line
	for e := range n.each {
		key := spelled([]byte(inside), bareEnum(e.texts("modality", "ttl")))
		if count := e.counts("tokenCount", "token_count", "inputTokens", "input_tokens"); count != nil {
			sums[usageNames.lines[string(key)]] += *count
		}
	}
	for line, n := range sums {
		found = n > 0 && t.count(line, n) || found
	}

	return found
}

// bareEnum returns a word without its type, which Python's enums have in front.
func bareEnum(word string) string { return word[strings.LastIndexByte(word, '.')+1:] }

// spelled appends a name as the tables have it: without the hyphens and capitals of a language.
func spelled[T string | []byte](key []byte, name T) []byte {
	for i := range len(name) {
		switch b := name[i]; {
		case len(key) == usageNameBytes:
			return nil
		case 'A' <= b && b <= 'Z':
			key = append(key, b|0x20)
		case b != '_' && b != '-':
			key = append(key, b)
		}
	}

	return key
}

// figure adds the value that a line stands for, and reports whether it is a count.
func (t *tally) figure(line int, v node) bool {
	switch is := usageNames.is[line]; {
	case is < ownCost:
		n := v.count()
		return n != nil && t.count(line, *n)
	case is == ownKey:
		t.ownKey = t.ownKey || string(v.raw) == "true"
	case is == ownCost:
		d, _ := ParseDollars(v.compact())
		t.cost = max(t.cost, d)
	case is == upstreamCost:
		d, _ := ParseDollars(v.compact())
		t.upstream = max(t.upstream, d)
	case is < figures:
		t.tier(is, v.text()+v.texts("type"))
	}

	return false
}

// count adds a count. Those of a stream's later chunks are larger: they count what the earlier
// ones did.
func (t *tally) count(line int, n int64) bool {
	is := usageNames.is[line]
	if is >= ownCost {
		return false
	}

	at := &t.counts[is]
	switch {
	case at.line == 0 || line < at.line:
		at.line, at.n = line, n
	case line == at.line:
		at.n = max(at.n, n)
	}

	return true
}

// get returns the first of some counts that is known.
func (t *tally) get(all ...figure) *int64 {
	for _, is := range all {
		if at := &t.counts[is]; at.line != 0 {
			n := at.n // a copy: the tally is large
			return &n
		}
	}

	return nil
}

// usage returns the counts of a call to a model.
func (t *tally) usage(model string) Usage {
	u := Usage{
		Input:          t.get(allInput, someInput),
		Output:         t.get(outputTokens),
		Cached:         t.get(cachedInside, cachedOfSDK, cachedOutside),
		CacheWrite:     t.get(writtenInside, writtenOutside),
		CacheWriteHour: t.get(writtenHour),
		Reasoning:      t.get(thoughtTokens, reasoningTokens),
		AudioInput:     t.get(audioInput),
		AudioOutput:    t.get(audioOutput),
		CachedAudio:    t.get(cachedAudio),
	}
	if aged := sum(new(int64), u.CacheWriteHour, t.get(writtenMinutes)); zero(aged) > zero(u.CacheWrite) {
		u.CacheWrite = aged
	}
	u.Input = sum(u.Input, t.get(toolInput))

	total, thoughts := t.get(totalTokens, totalGemini), t.get(thoughtTokens)
	switch {
	case thoughts != nil:
		u.Output = sum(thoughts, u.Output)
	// A blocked answer has no candidates and no count of them. The total shows that
	// there were none.
	case u.Output == nil && t.get(totalGemini) != nil && u.Input != nil && *total == *u.Input:
		u.Output = new(int64)
	}

	outside := t.get(allInput, cachedInside, cachedOfSDK) == nil
	// The AI SDK counts as the provider does, but for its total.
	if t.get(cachedInside) == nil && t.get(cachedOfSDK) != nil && strings.Contains(model, "claude") {
		outside, total = true, nil
	}
	u.place(outside, thoughts != nil, total)
	u.check()
	switch {
	case t.before == nil:
		return u
	case t.counts == (tally{}).counts:
		return *t.before
	}

	return t.before.plus(&u)
}

// next ends an answer of several, which have a usage each.
func (t *tally) next(model string) {
	u := t.usage(model)
	if t.before != nil && t.counts == (tally{}).counts {
		u = t.before.plus(&Usage{})
	}
	*t = tally{before: &u, paid: t.price(), tiers: t.tiers}
}

// price returns the provider's own price; 0 if the answer has none. A fee may have the price
// upstream in it.
func (t *tally) price() Dollars {
	if t.ownKey && t.upstream > t.cost {
		return t.paid + t.cost + t.upstream
	}

	return t.paid + t.cost
}

// plus returns the usage of two answers. One that does not say how much went in or out makes both
// unknown.
func (u *Usage) plus(v *Usage) Usage {
	both := func(a, b *int64) *int64 {
		if b == nil {
			return nil
		}
		return sum(a, b)
	}
	part := func(a, b *int64) *int64 {
		if a == nil {
			return b
		}
		return sum(a, b)
	}

	return Usage{
		Input:          both(u.Input, v.Input),
		Output:         both(u.Output, v.Output),
		Cached:         part(u.Cached, v.Cached),
		CacheWrite:     part(u.CacheWrite, v.CacheWrite),
		CacheWriteHour: part(u.CacheWriteHour, v.CacheWriteHour),
		Reasoning:      part(u.Reasoning, v.Reasoning),
		AudioInput:     part(u.AudioInput, v.AudioInput),
		AudioOutput:    part(u.AudioOutput, v.AudioOutput),
		CachedAudio:    part(u.CachedAudio, v.CachedAudio),
	}
}

// place adds to the whole the parts that the provider counts beside it, as the names of its counts
// and a stated total have it. A whole that they contradict each other about becomes unknown.
func (u *Usage) place(cacheOutside, hasThoughts bool, total *int64) {
	in, out, reasoned := zero(u.Input), zero(u.Output), zero(u.Reasoning)
	cached := zero(u.Cached) + zero(u.CacheWrite)
	if hasThoughts {
		reasoned = 0 // Output has them already
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
	cached, audio := zero(u.Cached), zero(u.AudioInput)
	if u.Input == nil || max(cached+zero(u.CacheWrite), audio) > *u.Input || zero(u.CachedAudio) > min(cached, audio) {
		*u = Usage{Output: u.Output, Reasoning: u.Reasoning, AudioOutput: u.AudioOutput}
	}
	if u.Output == nil || max(zero(u.Reasoning), zero(u.AudioOutput)) > *u.Output {
		u.Output, u.Reasoning, u.AudioOutput = nil, nil, nil
	}
}

// zero returns 0 for an unknown count.
func zero(n *int64) int64 {
	if n == nil {
		return 0
	}

	return *n
}

// sum adds the known counts to n. It returns nil if n is unknown, or the sum too large.
func sum(n *int64, more ...*int64) *int64 {
	if n == nil {
		return nil
	}

	s := *n
	for _, m := range more {
		s += zero(m)
	}
	if s > 1<<53 {
		return nil
	}

	return &s
}

// settle sets tokens, price and tier by the response, and by the arguments where the response
// has none.
func (c *Call) settle(t *tally, kwargs node) {
	if c.Model == "" {
		c.Model = askedModel(kwargs)
		c.Asked = c.Model != ""
	}
	c.Usage, c.Price = t.usage(c.Model), t.price()
	if c.Usage == (Usage{}) {
		var own tally
		own.object(kwargs.at("usage").or(kwargs.at("kwargs", "usage")), "") // LlamaIndex's handler
		c.Usage = own.usage(c.Model)
	}

	var asked tally
	asked.readTiers(kwargs, askedTiers)
	if kwargs.at("batch").compact() == "true" || kwargs.at("custom_id").exists() {
		asked.tier(batchTier, "batch")
	}
	c.Tier = t.tierOver(&asked)
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

// tierOver returns the names of the tiers that were charged, "" for the usual price. Of each kind,
// the one that was asked for counts only if there is no answer.
func (t *tally) tierOver(asked *tally) string {
	var names []string
	for kind, name := range t.tiers {
		if name = cmp.Or(name, asked.tiers[kind]); name != "" && name != usualTier {
			names = append(names, name)
		}
	}

	return Clip(strings.Join(names, " "))
}
