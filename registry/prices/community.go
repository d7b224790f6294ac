package prices

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Over makes a table from a file in the form of the community's model_prices_and_context_window.json. Where it has no price
// for a model, under is asked. Entries without prices per token (images, hours, pages) are passed over. Its errors name the line
// and the entry.
func Over(under *Table, file []byte) (*Table, error) {
	t := &Table{models: make(map[string][]price), under: under}
	d := json.NewDecoder(bytes.NewReader(file))
	fault := func(format string, args ...any) error {
		at := min(int(d.InputOffset()), len(file))
		return fmt.Errorf("line %d: %w", 1+bytes.Count(file[:at], []byte("\n")), fmt.Errorf(format, args...))
	}
	syntax := func(err error) error {
		if s := (*json.SyntaxError)(nil); errors.As(err, &s) {
			return fmt.Errorf("line %d: %w", 1+bytes.Count(file[:min(int(s.Offset), len(file))], []byte("\n")), err)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fault("the file ends too early")
		}
		return fault("%w", err)
	}
	if token, err := d.Token(); err != nil {
		return nil, syntax(err)
	} else if token != json.Delim('{') {
		return nil, fault("an object of models is wanted, {\"model\": {...}, ...}")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, syntax(err)
		}
		name, line := key.(string), fault("") // the line at which the entry begins
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, syntax(err)
		}
		if name == "sample_spec" { // it explains the form in words
			continue
		}
		p, some, err := communityPrice(raw)
		if err != nil {
			return nil, fmt.Errorf("%s%q: %w", line, name, err)
		}
		if some {
			t.models[strings.ToLower(name)] = []price{p}
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, syntax(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fault("something follows behind the object")
	}
	return t, nil
}

// communityPrice reads an entry; some is false if it has no price per token.
func communityPrice(raw json.RawMessage) (p price, some bool, err error) {
	var entry map[string]json.RawMessage
	if json.Unmarshal(raw, &entry) != nil || entry == nil {
		return p, false, errors.New("must be an object")
	}
	read := func(suffix string) (r rates, found bool) {
		r = noRates
		for name, to := range map[string]*int64{
			"input_cost_per_token": &r.input, "output_cost_per_token": &r.output, "cache_read_input_token_cost": &r.cached,
			"cache_creation_input_token_cost": &r.write, "cache_creation_input_token_cost_above_1hr": &r.writeHour,
			"output_cost_per_reasoning_token": &r.reasoning, "input_cost_per_audio_token": &r.audioIn, "output_cost_per_audio_token": &r.audioOut,
		} {
			name += suffix
			value, ok := entry[name]
			if !ok || string(value) == "null" {
				continue
			}
			n, bad := parseDecimal(string(value), 12)
			if bad != nil || n < 0 {
				err = fmt.Errorf("%s must be a number of dollars per token, not %.40s", name, value)
			}
			*to, found = n, true
		}
		return r, found
	}
	p.rates, some = read("")
	for _, long := range []struct {
		suffix string
		tokens int64
	}{{"_above_128k_tokens", 128_000}, {"_above_200k_tokens", 200_000}, {"_above_256k_tokens", 256_000}, {"_above_272k_tokens", 272_000}} {
		if r, found := read(long.suffix); found {
			p.over, p.long = long.tokens, r.or(p.rates)
		}
	}
	for tier, suffix := range map[string]string{"batch": "_batches", "flex": "_flex", "priority": "_priority"} {
		if r, found := read(suffix); found {
			if p.tiers == nil {
				p.tiers = make(map[string]tierPrice)
			}
			p.tiers[tier] = tierPrice{rates: r.or(p.rates)}
		}
	}
	return p, some && (p.rates.input >= 0 || p.rates.output >= 0), err
}

// or fills what is not known from other.
func (r rates) or(other rates) rates {
	fill := func(mine *int64, theirs int64) {
		if *mine < 0 {
			*mine = theirs
		}
	}
	fill(&r.input, other.input)
	fill(&r.output, other.output)
	fill(&r.cached, other.cached)
	fill(&r.write, other.write)
	fill(&r.writeHour, other.writeHour)
	fill(&r.reasoning, other.reasoning)
	fill(&r.audioIn, other.audioIn)
	fill(&r.audioOut, other.audioOut)
	return r
}
