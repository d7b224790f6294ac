package prices

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Over makes a table from a file in the form of the community's
// model_prices_and_context_window.json. A model without a price there is looked up in
// under.
//
// Entries without prices per token (images, hours, pages) are skipped. Errors name the
// line and the entry.
func Over(under *Table, file []byte) (*Table, error) {
	t := &Table{models: make(map[string][]price), under: under}
	d := communityDecoder{file: file, d: json.NewDecoder(bytes.NewReader(file))}

	if token, err := d.d.Token(); err != nil {
		return nil, d.syntax(err)
	} else if token != json.Delim('{') {
		return nil, d.fault("an object of models is wanted, {\"model\": {...}, ...}")
	}
	for d.d.More() {
		if err := d.entry(t); err != nil {
			return nil, err
		}
	}
	if _, err := d.d.Token(); err != nil {
		return nil, d.syntax(err)
	}
	// A second object would be ignored without a word.
	if _, err := d.d.Token(); err != io.EOF {
		return nil, d.fault("something follows behind the object")
	}

	return t, nil
}

// communityDecoder reads the file entry by entry, because errors need the line.
type communityDecoder struct {
	file []byte
	d    *json.Decoder
}

// entry reads one model and its prices into t.
func (d *communityDecoder) entry(t *Table) error {
	key, err := d.d.Token()
	if err != nil {
		return d.syntax(err)
	}
	name, line := key.(string), d.line(int(d.d.InputOffset())) // where the entry begins
	var raw json.RawMessage
	if err := d.d.Decode(&raw); err != nil {
		return d.syntax(err)
	}
	if name == "sample_spec" { // it explains the form in words
		return nil
	}

	p, found, err := communityPrice(raw)
	if err != nil {
		return fmt.Errorf("line %d: %q: %w", line, name, err)
	}
	if found {
		t.models[strings.ToLower(name)] = []price{p}
	}

	return nil
}

// line returns the line of a byte of the file.
func (d *communityDecoder) line(at int) int {
	return 1 + bytes.Count(d.file[:min(at, len(d.file))], []byte("\n"))
}

// fault makes an error at the current line.
func (d *communityDecoder) fault(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", d.line(int(d.d.InputOffset())), fmt.Errorf(format, args...))
}

// syntax adds the line to an error of the decoder.
func (d *communityDecoder) syntax(err error) error {
	if s := (*json.SyntaxError)(nil); errors.As(err, &s) {
		return fmt.Errorf("line %d: %w", d.line(int(s.Offset)), err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return d.fault("the file ends too early")
	}

	return d.fault("%w", err)
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

	p.rates, found, err = entry.rates("")
	if err != nil {
		return p, false, err
	}
	for _, long := range longPrices {
		r, ok, err := entry.rates(long.suffix)
		if err != nil {
			return p, false, err
		}
		if ok {
			// What has no price of its own for long calls costs the same in them.
			p.over, p.long = long.tokens, r.or(p.rates)
		}
	}
	for tier, suffix := range tierPrices {
		r, ok, err := entry.rates(suffix)
		if err != nil {
			return p, false, err
		}
		if ok {
			if p.tiers == nil {
				p.tiers = make(map[string]tierPrice)
			}
			p.tiers[tier] = tierPrice{rates: r.or(p.rates)}
		}
	}

	return p, found && (p.rates.input >= 0 || p.rates.output >= 0), nil
}

type communityEntry map[string]json.RawMessage

// rates reads the prices whose names end in a suffix. found is false if there is none.
func (e communityEntry) rates(suffix string) (r rates, found bool, err error) {
	r = noRates
	for name, to := range map[string]*int64{
		"input_cost_per_token":                      &r.input,
		"output_cost_per_token":                     &r.output,
		"cache_read_input_token_cost":               &r.cached,
		"cache_creation_input_token_cost":           &r.write,
		"cache_creation_input_token_cost_above_1hr": &r.writeHour,
		"output_cost_per_reasoning_token":           &r.reasoning,
		"input_cost_per_audio_token":                &r.audioIn,
		"output_cost_per_audio_token":               &r.audioOut,
	} {
		// The same prices for a tier or for long prompts have the same names with a
		// suffix.
		name += suffix
		value, ok := e[name]
		if !ok || string(value) == "null" {
			continue
		}
		n, bad := parseDecimal(string(value), 12)
		if bad != nil || n < 0 {
			err = fmt.Errorf("%s must be a number of dollars per token, not %.40s", name, value)
		}
		*to, found = n, true
	}

	return r, found, err
}

// or fills what is unknown from other.
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
