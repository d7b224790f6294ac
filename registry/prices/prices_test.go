package prices

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/calls"
	"promptspool/api/wire/packed/packedtest"
)

func count(n int64) *int64 { return &n }

// day is the moment for which most prices are asked.
var day = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestCosts has one case for each way in which a price is found and added up, computed by
// hand from the lists of the providers.
func TestCosts(t *testing.T) {
	io := func(in, out int64) calls.Usage { return calls.Usage{Input: count(in), Output: count(out)} }

	for _, c := range []struct {
		name, provider, model string
		at                    time.Time
		usage                 calls.Usage
		want                  string // "" is unknown
	}{
		{"a model by its name", "openai", "gpt-4o-mini", day, io(1000, 100), "0.00021"},
		{"a dated name", "openai", "gpt-4o-mini-2024-07-18", day, io(1000, 100), "0.00021"},
		{"a dated name with a price of its own", "openai", "gpt-4o-2024-05-13", day, io(1000, 100), "0.0065"},
		{"an alias of the newest", "anthropic", "claude-3-5-haiku-latest", day, io(1000, 100), "0.0012"},
		{"a date without dashes", "anthropic", "claude-sonnet-4-20250514", day, io(1000, 100), "0.0045"},
		{"a date behind an at", "vertexai", "claude-sonnet-4@20250514", day, io(1000, 100), "0.0045"},
		{"a preview with its date", "google", "models/gemini-2.5-flash-preview-09-2025", day, io(1000, 100), "0.00055"},
		{"a numbered version", "google", "gemini-2.0-flash-001", day, io(1000, 100), "0.00014"},
		{"a fine-tuned model", "openai", "ft:gpt-4o-mini-2024-07-18:acme::abc", day, io(1000, 100), "0.00042"},
		{"Bedrock, in its region",
			"amazon.bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", day, io(1000, 100), "0.00495"},
		{"Bedrock, in an area",
			"amazon.bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", day, io(1000, 100), "0.00495"},
		{"Bedrock, anywhere",
			"amazon.bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", day, io(1000, 100), "0.0045"},
		{"Bedrock, a profile's ARN", "amazon.bedrock",
			"arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova-micro-v1:0", day,
			io(1000, 100), "0.000049"},
		{"a gateway's name, with a dot", "", "anthropic/claude-3.5-sonnet", day, io(1000, 100), "0.0045"},
		{"a gateway's name that thinks", "", "anthropic/claude-3.7-sonnet:thinking", day, io(1000, 100), "0.0045"},
		{"a name that thinks at another price", "", "google/gemini-2.5-flash-preview:thinking", day, io(1000, 100), ""},
		{"data that stays in a region, at a surcharge", "", "azure/eu/gpt-4o-mini", day, io(1000, 100), ""},
		{"a gateway's dated name", "", "claude-3.5-haiku-20241022", day, io(1000, 100), "0.0012"},
		{"a context of a million tokens", "", "claude-sonnet-4-5-20250929[1m]", day, io(1000, 100), "0.0045"},
		{"a surcharge that no table has", "", "openai/gpt-4o-mini:online", day, io(1000, 100), ""},
		{"in capitals", "openai", "GPT-4o-Mini", day, io(1000, 100), "0.00021"},
		{"cached input", "openai", "gpt-4o-mini", day,
			calls.Usage{Input: count(1000), Output: count(100), Cached: count(800)}, "0.00015"},
		{"writing to a cache, for minutes and for an hour", "anthropic", "claude-sonnet-4-5", day,
			calls.Usage{Input: count(10_000), Output: count(100),
				Cached: count(5000), CacheWrite: count(4000), CacheWriteHour: count(1000)},
			"0.02325"},
		{"an hour's cache that has no price", "amazon.bedrock", "global.anthropic.claude-sonnet-4-5", day,
			calls.Usage{Input: count(1000), Output: count(1), CacheWrite: count(10), CacheWriteHour: count(10)}, ""},
		{"reasoning costs what output does", "openai", "o3", day,
			calls.Usage{Input: count(0), Output: count(1000), Reasoning: count(900)}, "0.008"},
		{"a fraction of a billionth is rounded once", "amazon.bedrock", "amazon.nova-micro-v1:0", day,
			calls.Usage{Input: count(3), Output: count(0), Cached: count(3)}, "0.000000026"},
		{"a long context, at its edge", "google", "gemini-2.5-pro", day, io(200_000, 1000), "0.26"},
		{"a long context, beyond it", "google", "gemini-2.5-pro", day, io(200_001, 1000), "0.5150025"},
		{"before a price that is announced", "google", "gemini-4-argon", day, io(1000, 100), "0.003"},
		{"after it", "google", "gemini-4-argon",
			time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), io(1000, 100), "0.006"},
		{"an open model, which everybody sells at another price",
			"groq", "openai/gpt-oss-120b", day, io(1000, 100), ""},
		{"before a price was cut", "openai", "o3", time.Date(2025, 6, 9, 0, 0, 0, 0, time.UTC), io(1000, 0), "0.01"},
		{"from the day on which it was cut", "openai", "o3",
			time.Date(2025, 6, 10, 0, 0, 0, 0, time.UTC), io(1000, 0), "0.002"},
		{"an embedding, which has no output", "openai", "text-embedding-3-small", day,
			calls.Usage{Input: count(1000)}, "0.00002"},
		{"output that is unknown", "openai", "gpt-4o", day, calls.Usage{Input: count(1000)}, ""},
		{"tokens that are unknown", "openai", "gpt-4o", day, calls.Usage{}, ""},
		{"a model that nobody knows", "acme", "acme-9000", day, io(1000, 100), ""},
		{"no model", "openai", "", day, io(1000, 100), ""},
		{"audio without a price", "openai", "gpt-4o", day,
			calls.Usage{Input: count(1000), Output: count(100), AudioInput: count(1)}, ""},
		{"audio beside a cache", "google", "gemini-2.5-flash", day,
			calls.Usage{Input: count(1000), Output: count(0), Cached: count(500), AudioInput: count(400)}, "0.000445"},
		{"audio from a cache", "google", "gemini-2.5-flash", day, calls.Usage{Input: count(1000), Output: count(0),
			Cached: count(500), AudioInput: count(400), CachedAudio: count(100)}, ""},
		{"parts that are more than the whole", "openai", "gpt-4o", day,
			calls.Usage{Input: count(1), Output: count(1), Cached: count(2)}, ""},
		{"more tokens than there can be", "openai", "gpt-4o", day, io(1<<53, 1<<53), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cost, ok := BuiltIn().Cost(c.provider, c.model, "", c.at, c.usage)
			got := ""
			if ok {
				got = cost.String()
			}
			if got != c.want {
				t.Errorf("%s costs %q, not %q", c.model, got, c.want)
			}
		})
	}
}

// More tokens of any kind never cost less.
func TestPricesGrowWithTheTokens(t *testing.T) {
	models := slices.Sorted(maps.Keys(BuiltIn().models))
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Int64Range(0, 300_000)
		plain, read, written, hour := some.Draw(t, "plain"), some.Draw(t, "read"), some.Draw(t, "written"), int64(0)
		heard, out, thought, spoken := int64(0), some.Draw(t, "out"), some.Draw(t, "thought"), int64(0)
		usage := func() calls.Usage {
			return calls.Usage{
				Input:          count(plain + read + written + hour + heard),
				Output:         count(out + thought + spoken),
				Cached:         count(read),
				CacheWrite:     count(written + hour),
				CacheWriteHour: count(hour),
				Reasoning:      count(thought),
				AudioInput:     count(heard),
				AudioOutput:    count(spoken),
			}
		}
		model := rapid.SampledFrom(models).Draw(t, "model")
		tier := rapid.SampledFrom([]string{"", "batch", "flex"}).Draw(t, "tier")
		before, ok := BuiltIn().Cost("", model, tier, day, usage())
		kinds := []*int64{&plain, &read, &written, &hour, &heard, &out, &thought, &spoken}
		*rapid.SampledFrom(kinds).Draw(t, "more") += some.Draw(t, "tokens")
		after, still := BuiltIn().Cost("", model, tier, day, usage())
		if ok && still && after < before {
			t.Errorf("%s, %s: %d, and %d of more tokens", model, tier, before, after)
		}
	})
}

func TestATierHasItsPrice(t *testing.T) {
	usage := calls.Usage{Input: count(1000), Output: count(100)}
	for _, c := range []struct{ provider, model, tier, want string }{
		{"anthropic", "claude-sonnet-4-5", "batch", "0.00225"},
		{"openai", "gpt-6.1-sol", "flex", "0.0015"},
		{"openai", "gpt-4o", "priority", ""}, // unknown
	} {
		cost, ok := BuiltIn().Cost(c.provider, c.model, c.tier, day, usage)
		if ok != (c.want != "") || ok && cost.String() != c.want {
			t.Errorf("%s, %s costs %s (%v), not %q", c.model, c.tier, cost, ok, c.want)
		}
	}
}

var update = flag.Bool("update", false, "pack the price list anew")

func TestThePackedPricesAreTheFile(t *testing.T) {
	text, err := os.ReadFile("prices.txt")
	if err != nil {
		t.Fatal(err)
	}

	packedtest.Check(t, "prices.txt.zst", string(text), *update)
}

// TestThePriceListIsWhole looks for typing mistakes.
func TestThePriceListIsWhole(t *testing.T) {
	table, err := parseTable(builtIn())
	if err != nil {
		t.Fatal(err)
	}
	if len(table.models) < 250 {
		t.Errorf("only %d models were read", len(table.models))
	}

	for name, prices := range table.models {
		for _, p := range prices {
			r := p.rates
			isOdd := r[input] < 0 || r[cached] > r[input] || p.over > 0 && p.long[input] < r[input]
			if isOdd || name != strings.ToLower(name) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}

	for _, bad := range []string{
		"a b", "a b - 1",
		strings.Replace(builtIn(), "0.15", "cheap", 1),
		strings.Replace(builtIn(), "batch=50", "batch=half", 1),
	} {
		if _, err := parseTable("provider model from 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n" + bad); err == nil {
			t.Errorf("%.30q was accepted", bad)
		}
	}
}

func TestAFileOfPricesGoesBeforeTheList(t *testing.T) {
	table, err := Over(BuiltIn(), []byte(`{
		"sample_spec": {"max_tokens": "a number", "input_cost_per_token": "in words"},
		"gpt-4o": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2E-6,
			"cache_read_input_token_cost": 5e-07, "input_cost_per_token_priority": 3e-06,
			"output_cost_per_token_priority": 4e-06, "litellm_provider": "openai"},
		"gemini/acme-1": {"input_cost_per_token": 0.000001, "output_cost_per_token": 0.000002,
			"input_cost_per_token_above_200k_tokens": 0.000003},
		"dall-e": {"input_cost_per_pixel": 1e-8}
	}`))
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		provider, model, tier string
		in                    int64
		want                  string
	}{
		{"openai", "gpt-4o", "", 1000, "0.0012"},
		{"openai", "gpt-4o-2024-08-06", "", 1000, "0.0012"},
		{"openai", "gpt-4o-2024-05-13", "", 1000, "0.0065"}, // the list has it exactly
		{"openai", "gpt-4o", "priority", 1000, "0.0034"},
		{"google", "acme-1", "", 1000, "0.0012"},
		{"google", "acme-1", "", 300_000, "0.9002"},
		{"openai", "gpt-4o-mini", "", 1000, "0.00021"},
	} {
		cost, ok := table.Cost(c.provider, c.model, c.tier, day, calls.Usage{Input: &c.in, Output: count(100)})
		if !ok || cost.String() != c.want {
			t.Errorf("%s %s with %d tokens costs %s (%v), not %s", c.provider, c.model, c.in, cost, ok, c.want)
		}
	}
}

func TestABadFileOfPricesIsRefusedWithItsPlace(t *testing.T) {
	const dollars = " must be a number of dollars per token, not "
	for _, tt := range []struct{ file, want string }{
		{"", "line 1: unexpected end of JSON input"},
		{"[]", `an object of models is wanted, {"model": {...}, ...}`},
		{"{\n\n\"a\": {]}", "line 3: invalid character"},
		{"{\n\"a\": 7}", `"a": must be an object`},
		{"{\"a\": {}}\n x", "line 2:"},
		{"{\n\"a\": {\n\"b\": 1}", "line 3: unexpected end of JSON input"},
		{"{\n\"m\": {\"input_cost_per_token\": \"free\"}}",
			`"m": input_cost_per_token` + dollars + `"free"`},
		{"{\"k\": {\"mode\": \"x\"},\n\"m\": {\"output_cost_per_token\": -1e-6}}",
			`"m": output_cost_per_token` + dollars + `-1e-6`},
		{"{\"m\": {\"input_cost_per_token\": 1, \"output_cost_per_token_flex\": []}}",
			`"m": output_cost_per_token_flex must be a number`},
	} {
		if _, err := Over(nil, []byte(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, not %s", tt.file, err, tt.want)
		}
	}
}

func FuzzOver(f *testing.F) {
	f.Add([]byte(`{"gpt-4o": {"input_cost_per_token": 1e-06, "output_cost_per_token_above_200k_tokens": 2E-6}}`))
	f.Add([]byte(`{"a": 1}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		table, err := Over(BuiltIn(), file)
		if err != nil {
			return
		}
		for name := range table.models {
			usage := calls.Usage{Input: count(1000), Output: count(10)}
			if cost, ok := table.Cost("openai", name, "", day, usage); ok && cost < 0 {
				t.Errorf("%q costs %s", name, cost)
			}
		}
	})
}
