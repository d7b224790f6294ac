package prices

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"promptspool/api/calls"
)

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
