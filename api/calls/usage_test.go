package calls_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/calls"
	"promptspool/registry/prices"
)

// usageCase is a response with its usage, and what is read of it, in one line:
//
//	input/output and its parts | tier | dollars
type usageCase struct {
	Name             string
	Kwargs, Response json.RawMessage
	Want             string
}

// body returns a track-request with the case's members.
func (c usageCase) body() []byte {
	kwargs := c.Kwargs
	if kwargs == nil {
		kwargs = json.RawMessage("{}")
	}

	return fmt.Appendf(nil, `{"kwargs":%s,"request_response":%s}`, kwargs, c.Response)
}

// dollars returns what a call cost, as a record has it; -1 is unknown.
func dollars(provider string, call *calls.Call) calls.Dollars {
	if call.Price > 0 {
		return call.Price
	}
	day := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if cost, ok := prices.BuiltIn().Cost(provider, call.Model, call.Tier, day, call.Usage); ok {
		return cost
	}

	return -1
}

// usageLine returns what is read of a call in one line.
func usageLine(body []byte) string {
	call := calls.Read(body)
	u := call.Usage
	count := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}

	line := count(u.Input) + "/" + count(u.Output)
	for _, part := range []struct {
		name string
		n    *int64
	}{
		{"cached", u.Cached}, {"written", u.CacheWrite}, {"hour", u.CacheWriteHour}, {"reasoning", u.Reasoning},
		{"audio", u.AudioInput}, {"spoken", u.AudioOutput}, {"cachedaudio", u.CachedAudio},
	} {
		if part.n != nil && *part.n > 0 {
			line += fmt.Sprintf(" %s=%d", part.name, *part.n)
		}
	}

	price := "?"
	if cost := dollars("", &call); cost >= 0 {
		price = cost.String()
	}

	return strings.ReplaceAll(line+" | "+call.Tier+" | "+price, "|  |", "| |")
}

var (
	underscore = regexp.MustCompile(`_([a-z0-9])`)
	capital    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	name       = regexp.MustCompile(`"[A-Za-z0-9_]+":`)
	objects    = regexp.MustCompile(`"(usage|usageMetadata|totalUsage|usage_metadata)":\{`)
)

// inLanguage returns a response whose usage has the names of another language.
func inLanguage(response []byte, change func(name []byte) []byte) []byte {
	at := objects.FindIndex(response)
	if at == nil {
		return response
	}

	var usage json.RawMessage
	_ = json.NewDecoder(strings.NewReader(string(response[at[1]-1:]))).Decode(&usage)
	rest := response[at[1]-1+len(usage):]
	changed := name.ReplaceAllFunc(usage, change)

	return slices.Concat(response[:at[1]-1], changed, inLanguage(rest, change))
}

func TestEveryProvidersUsageIsRead(t *testing.T) {
	for _, c := range cases[usageCase](t, "usage.json") {
		t.Run(c.Name, func(t *testing.T) {
			var compact json.RawMessage
			if err := json.Unmarshal(c.Response, &compact); err != nil {
				t.Fatal(err)
			}
			compact, _ = json.Marshal(compact)
			for _, language := range []func([]byte) []byte{
				func(name []byte) []byte { return name },
				func(name []byte) []byte {
					return underscore.ReplaceAllFunc(name, func(m []byte) []byte { return bytes.ToUpper(m[1:]) })
				},
				func(name []byte) []byte { return bytes.ToLower(capital.ReplaceAll(name, []byte("${1}_$2"))) },
			} {
				c.Response = inLanguage(compact, language)
				if got := usageLine(c.body()); got != c.Want {
					t.Errorf("got\n  %s\nwant\n  %s\n%s", got, c.Want, c.Response)
				}
			}
		})
	}
}

// form is how a provider counts, and the attributes of a span that say the same.
type form struct {
	provider, model string
	caches          bool // beside the input
	response        string
	attributes      string
}

// The letters stand for counts: of Input, Output, what was Read from a cache, Written to it, and tHoughts.
var forms = []form{
	{"openai", "gpt-5-mini", false,
		`{"model":"M","service_tier":"T","choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":I,` +
			`"completion_tokens":O,"prompt_tokens_details":{"cached_tokens":R,"cache_write_tokens":W},` +
			`"completion_tokens_details":{"reasoning_tokens":H}}}`,
		`"gen_ai.usage.input_tokens":I,"gen_ai.usage.output_tokens":O,"gen_ai.usage.cache_read.input_tokens":R,` +
			`"gen_ai.usage.cache_creation.input_tokens":W,"gen_ai.usage.reasoning.output_tokens":H,` +
			`"openai.response.service_tier":"T"`},
	{"openai", "gpt-5-mini", false,
		`[{"type":"response.created","response":{"model":"M","output":[]}},{"type":"response.completed",` +
			`"response":{"model":"M","service_tier":"T","output":[],"usage":{"input_tokens":I,"output_tokens":O,` +
			`"input_tokens_details":{"cached_tokens":R,"cache_write_tokens":W},` +
			`"output_tokens_details":{"reasoning_tokens":H}}}}]`,
		`"llm.token_count.prompt":I,"llm.token_count.completion":O,"llm.token_count.prompt_details.cache_read":R,` +
			`"llm.token_count.prompt_details.cache_write":W,"llm.token_count.completion_details.reasoning":H,` +
			`"openai.response.service_tier":"T"`},
	{"anthropic", "claude-sonnet-4-5", true,
		`{"model":"M","content":[],"usage":{"input_tokens":I,"output_tokens":O,"cache_read_input_tokens":R,` +
			`"cache_creation_input_tokens":W,"service_tier":"T"}}`,
		`"ai.operationId":"ai.generateText.doGenerate","ai.response.providerMetadata":"{\"anthropic\":{\"usage\":{` +
			`\"input_tokens\":I,\"output_tokens\":O,\"cache_read_input_tokens\":R,` +
			`\"cache_creation_input_tokens\":W,\"service_tier\":\"T\"}}}"`},
	{"anthropic", "claude-sonnet-4-5", true,
		`[{"type":"message_start","message":{"model":"M","usage":{"input_tokens":I,"output_tokens":0,` +
			`"cache_read_input_tokens":R,"cache_creation_input_tokens":W,"service_tier":"T"}}},` +
			`{"type":"message_delta","usage":{"output_tokens":O}}]`,
		`"openinference.span.kind":"LLM","output.value":"{\"content\":[],\"usage\":{\"input_tokens\":I,` +
			`\"output_tokens\":O,\"cache_read_input_tokens\":R,\"cache_creation_input_tokens\":W,` +
			`\"service_tier\":\"T\"}}"`},
}

func TestACallIsTheSameByBothDoors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(forms).Draw(t, "form")
		count := rapid.Int64Range(0, 300_000)
		read, written := count.Draw(t, "read"), count.Draw(t, "written")
		in, out := count.Draw(t, "in"), count.Draw(t, "out")
		thoughts := rapid.Int64Range(0, out).Draw(t, "thoughts")
		if !f.caches {
			in += rapid.SampledFrom([]int64{0, read + written}).Draw(t, "of a cache")
		}
		tier := rapid.SampledFrom([]string{"default", "flex", "priority", "batch"}).Draw(t, "tier")
		filled := strings.NewReplacer(`"M"`, `"`+f.model+`"`, `"T"`, `"`+tier+`"`, `\"T\"`, `\"`+tier+`\"`,
			":I", fmt.Sprint(":", in), ":O", fmt.Sprint(":", out), ":R", fmt.Sprint(":", read),
			":W", fmt.Sprint(":", written), ":H", fmt.Sprint(":", thoughts))

		byREST := calls.Read(fmt.Appendf(nil, `{"kwargs":{},"request_response":%s}`, filled.Replace(f.response)))
		byOTLP := calls.Read(fmt.Appendf(nil, `{"resource":{},"scope":{},"span":{"name":"n","attributes":{`+
			`"gen_ai.operation.name":"chat","gen_ai.provider.name":%q,"gen_ai.response.model":%q,%s}}}`,
			f.provider, f.model, filled.Replace(f.attributes)))

		type figures struct {
			Usage calls.Usage
			Tier  string
			Cost  calls.Dollars
		}
		rest := figures{byREST.Usage, byREST.Tier, dollars(f.provider, &byREST)}
		span := figures{byOTLP.Usage, byOTLP.Tier, dollars(f.provider, &byOTLP)}
		if diff := cmp.Diff(rest, span); diff != "" {
			t.Errorf("by REST (-) and by OTLP (+):\n%s", diff)
		}

		more := byREST
		more.Usage.Output = new(out + 1 + count.Draw(t, "more"))
		if a, b := dollars(f.provider, &byREST), dollars(f.provider, &more); a > b {
			t.Errorf("%d tokens out cost %s, %d cost %s", out, a, *more.Usage.Output, b)
		}
	})
}

// Whatever a response says, its parts are not more than their whole.
func TestPartsAreNotMoreThanTheirWhole(t *testing.T) {
	paths := slices.Sorted(maps.Keys(usagePathsSeen(t)))
	rapid.Check(t, func(t *rapid.T) {
		usage := map[string]int64{}
		for range rapid.IntRange(1, 8).Draw(t, "members") {
			usage[rapid.SampledFrom(paths).Draw(t, "name")] = rapid.Int64Range(0, 20).Draw(t, "count")
		}
		object, _ := json.Marshal(usage)
		call := calls.Read(fmt.Appendf(nil, `{"kwargs":{"model":"gpt-audio"},"request_response":{"usage":%s}}`, object))
		if whole := wholeOf(call.Usage); whole != "" {
			t.Errorf("%s: %s: %+v", object, whole, call.Usage)
		}
	})
}

// wholeOf returns what is wrong with the parts of a usage, "" if nothing is.
func wholeOf(u calls.Usage) string {
	n := func(count *int64) int64 {
		if count == nil {
			return 0
		}
		return *count
	}
	switch {
	case n(u.Cached)+n(u.CacheWrite) > n(u.Input):
		return "more cached than input"
	case n(u.CacheWriteHour) > n(u.CacheWrite):
		return "more written for an hour than written"
	case n(u.AudioInput) > n(u.Input) || n(u.CachedAudio) > n(u.AudioInput) || n(u.CachedAudio) > n(u.Cached):
		return "more audio than input"
	case n(u.Reasoning) > n(u.Output) || n(u.AudioOutput) > n(u.Output):
		return "more reasoning or audio than output"
	}

	return ""
}

// usagePathsSeen returns the names of all counts in the examples.
func usagePathsSeen(t *testing.T) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range cases[usageCase](t, "usage.json") {
		for _, found := range regexp.MustCompile(`"(\w*[tT]oken\w*)": ?\d`).FindAllSubmatch(c.Response, -1) {
			seen[string(found[1])] = true
		}
	}

	return seen
}

// Whatever a response says, more tokens never cost less, and parts are not more than their whole.
func FuzzUsage(f *testing.F) {
	raw, err := os.ReadFile("testdata/usage.json")
	if err != nil {
		f.Fatal(err)
	}
	var all []usageCase
	if err := json.Unmarshal(raw, &all); err != nil {
		f.Fatal(err)
	}
	for _, c := range all {
		f.Add([]byte(c.Response), uint16(1))
	}
	models := []string{"gpt-4o-mini", "gpt-audio", "claude-sonnet-4-5", "gemini-2.5-flash", "gpt-5.6-sol"}
	f.Fuzz(func(t *testing.T, response []byte, more uint16) {
		model := models[int(more)%len(models)]
		call := calls.Read(fmt.Appendf(nil, `{"kwargs":{"model":%q},"request_response":%s}`, model, response))
		if whole := wholeOf(call.Usage); whole != "" {
			t.Errorf("%s: %+v", whole, call.Usage)
		}

		before := dollars("", &call)
		for _, count := range []**int64{&call.Usage.Input, &call.Usage.Output} {
			if *count == nil {
				continue
			}
			*count = new(**count + int64(more))
			after := dollars("", &call)
			if before >= 0 && after >= 0 && after < before {
				t.Errorf("%+v costs %s, with fewer tokens %s", call.Usage, after, before)
			}
			before = after
		}
	})
}
