package databasetest

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
)

// RunUsage checks that the metrics of usage with their corrections are what statistics say. They are added
// up over the starts that counted. open opens the same database again, and may close the store before it.
func RunUsage(t *testing.T, checks int, open func(*metrics.Usage) archive.Store) {
	LimitChecks(t, checks)
	rapid.Check(t, func(t *rapid.T) {
		id := wire.Identity{Account: wire.NewID()}
		var counted []*metrics.Usage
		start := func() archive.Store {
			most := rapid.SampledFrom([]int{0, 200, 20_000}).Draw(t, "series")
			usage, err := metrics.NewUsage([]string{"user_id", "größe"}, most)
			must(t, err)
			counted = append(counted, usage)
			return open(usage)
		}

		s := start()
		events := Events(t, 8, 30)
		batches := Batches(t, events)
		again := rapid.IntRange(0, len(batches)-1).Draw(t, "again")
		for i, batch := range batches {
			apply(t, s, id.Account, batch...)
			switch rapid.IntRange(0, 8).Draw(t, "then") {
			case 0:
				remove(t, s, id.Account, wire.Deletion{RequestID: batch[0].RequestID})
			case 1:
				d := wire.Deletion{Key: pick(t, keys), Value: pick(t, values), Before: Start.Add(seconds(5))}
				remove(t, s, id.Account, d)
			case 2:
				apply(t, s, id.Account, batch...)
			case 3:
				reprice(t, s, id.Account, batch[0].RequestID)
			}
			if i == again {
				s = start()
			}
		}
		settle(t, s, id.Account)

		all, err := overStore(s).Analyze(t.Context(), id, wire.StatisticsQuery{})
		must(t, err)
		got := usageOf(counted, "", "")
		sums := []int64{
			got["requests"], got["cost_dollars"], got["input_tokens"] + got["output_tokens"], got["cached_tokens"],
		}
		want := []int64{
			all.TotalRequests, int64(math.Round(all.TotalCost * 1e9)), all.TotalTokens, all.TotalCachedTokens,
		}
		if !slices.Equal(sums, want) {
			t.Fatalf("usage is %d, and statistics say %d", sums, want)
		}
		for label, by := range map[string]string{
			"gen_ai_response_model": "model", "gen_ai_provider_name": "provider",
			"metadata_user_id": "metadata.user_id",
		} {
			parts, err := overStore(s).Statistics(t.Context(), id, wire.PartsQuery{By: by})
			must(t, err)
			for i := range parts.Items {
				value := parts.Items[i].Value
				apart := usageOf(counted, label, metrics.UsedOther)["series"] == 0
				// A label does not tell an empty or long value from none.
				if apart && value != "" && !strings.HasPrefix(value, "long") {
					sameUsage(t, label+" "+value, &parts.Items[i].Totals, usageOf(counted, label, value))
				}
			}
		}
	})
}

// reprice gives a record another price.
func reprice(t *rapid.T, s archive.Store, account, requestID string) {
	t.Helper()
	price := rapid.Int64Range(0, 1<<40).Draw(t, "new price")
	change := func(s *archive.State, _ map[string]json.RawMessage) (bool, error) {
		if s.Request == nil {
			return false, nil
		}
		setPrice(&s.Request.Value.Price, price)
		return true, nil
	}
	_, err := archive.Edit(context.Background(), s, account, []string{requestID}, false, change)
	must(t, err)
}

// usageOf adds up what was counted under a value of a label, or in all if that is "", with its corrections,
// by quantity: in billionths of a dollar, and in microseconds.
func usageOf(counted []*metrics.Usage, label, value string) map[string]int64 {
	sums := map[string]int64{}
	units := map[string]float64{"cost_dollars": 1e9, "seconds": 1e6}
	add := func(quantity string, n float64) {
		sums[quantity] += int64(math.Round(n * cmp.Or(units[quantity], 1)))
	}

	for _, usage := range counted {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(usage)
		families, err := r.Gather()
		if err != nil {
			panic(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				of := map[string]string{}
				for _, l := range m.GetLabel() {
					of[l.GetName()] = l.GetValue()
				}
				if label != "" && of[label] != value {
					continue
				}
				sums["series"]++
				n := m.GetCounter().GetValue()
				switch f.GetName() {
				case "promptspool_usage_requests_total":
					add("requests", n)
				case "promptspool_usage_unpriced_total":
					add("unpriced", n)
				case "promptspool_usage_cost_dollars_total":
					add("cost_dollars", n)
				case "promptspool_usage_token_details_total":
					add(of["type"]+"_tokens", n)
				case "gen_ai_client_token_usage":
					add(of["gen_ai_token_type"]+"_tokens", m.GetSummary().GetSampleSum())
				case "gen_ai_client_operation_duration_seconds":
					add("timed_requests", float64(m.GetSummary().GetSampleCount()))
					add("seconds", m.GetSummary().GetSampleSum())
				case "promptspool_usage_corrections_total":
					add(of["quantity"], n*map[string]float64{"up": 1, "down": -1}[of["direction"]])
				}
			}
		}
	}
	return sums
}

// sameUsage compares what was counted with what statistics say.
func sameUsage(t *rapid.T, what string, want *wire.Totals, got map[string]int64) {
	t.Helper()
	mean := 0.0
	if n := got["timed_requests"]; n != 0 {
		mean = float64(got["seconds"]) / float64(n) / 1e6
	}
	sums := wire.Totals{
		Requests: got["requests"], Unpriced: got["unpriced"], Cost: float64(got["cost_dollars"]) / 1e9,
		InputTokens: got["input_tokens"], OutputTokens: got["output_tokens"], CachedTokens: got["cached_tokens"],
		CacheWrites: got["cache_write_tokens"], ThinkingTokens: got["reasoning_tokens"],
	}
	all := *want
	all.Errors, all.ErrorRate, all.Unbilled, all.Latency, all.Scores = 0, 0, 0, wire.Percentiles{}, nil
	if diff := gocmp.Diff(all, sums); diff != "" || math.Abs(wire.OrZero(want.Latency.Mean)-mean) > 1e-9 {
		t.Fatalf("%s, mean %v (-statistics +usage):\n%s", what, mean, diff)
	}
}
