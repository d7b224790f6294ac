package metrics

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// counting makes a Usage whose metrics are those of a server.
func counting(t *testing.T, seriesMax int, keys ...string) (*Usage, *Metrics) {
	t.Helper()
	usage, err := NewUsage(keys, seriesMax)
	if err != nil {
		t.Fatal(err)
	}
	m := New("server", "test")
	m.Registry.MustRegister(usage)
	return usage, m
}

// call is one of a model and a customer.
func call(model, customer string, cost int64) (c UsedCall) {
	c.By[UsedModel], c.By[UsedStatus] = model, "SUCCESS"
	c.SetKey(0, customer)
	c.Of[UsedRequests], c.Of[UsedCost], c.Of[UsedInput], c.Of[UsedInputs] = 1, cost, 100, 1
	c.Of[UsedTimed], c.Of[UsedMicroseconds] = 1, 1_500_000
	return c
}

func TestUsageHasTheNamesOfOpenTelemetryAndIsCorrectedApart(t *testing.T) {
	usage, m := counting(t, 10_000, "customer.id")
	usage.Name("p1", "shop")
	usage.Count("p1", call("gpt-4o", "acme", 2_500_000_001))
	usage.Correct("p1", call("gpt-4o", "acme", 2_500_000_001), call("gpt-4o", "acme", 2_000_000_000))
	usage.Correct("p1", call("gpt-4o", "acme", 2_000_000_000), call("gpt-4o", "globex", 2_000_000_000))
	usage.Correct("p1", call("o3", "acme", 1), call("o3", "acme", 1))

	text := scrape(t, m)
	by := func(customer string) string {
		return `gen_ai_provider_name="",gen_ai_response_model="gpt-4o",%smetadata_customer_id="` + customer +
			`",project="p1",%sstatus="SUCCESS",template="",version=""} `
	}
	for _, line := range []string{
		`promptspool_usage_requests_total{` + fmt.Sprintf(by("acme"), "", "") + "1",
		`promptspool_usage_cost_dollars_total{` + fmt.Sprintf(by("acme"), "", "") + "2.500000001",
		`gen_ai_client_token_usage_sum{` + fmt.Sprintf(by("acme"), `gen_ai_token_type="input",`, "") + "100",
		`gen_ai_client_operation_duration_seconds_sum{` + fmt.Sprintf(by("acme"), "", "") + "1.5",
		`promptspool_usage_corrections_total{direction="down",` +
			fmt.Sprintf(by("acme"), "", `quantity="cost_dollars",`) + "2.500000001",
		`promptspool_usage_corrections_total{direction="up",` +
			fmt.Sprintf(by("globex"), "", `quantity="requests",`) + "1",
		`promptspool_project_info{name="shop",project="p1"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, text)
		}
	}
	if strings.Contains(text, "o3") {
		t.Error("a call that stays what it was is counted")
	}
}

func TestUsageStaysWithinItsSeries(t *testing.T) {
	const most, calls = 3000, 200_000
	usage, m := counting(t, most, "customer")
	before := heap()
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range calls / 2 {
				c := call("gpt-4o", fmt.Sprint("customer", w, "-", i), 1)
				if i%1000 == 0 {
					c.By[UsedTemplate] = fmt.Sprint("template", i, strings.Repeat("é", 100))
				}
				usage.Count("p1", c)
				if i%10 == 0 {
					usage.Correct("p1", c, UsedCall{})
				}
			}
		})
	}
	writers.Wait()
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("usage takes %d bytes", grown)
	}

	requests, models, series := 0.0, 0, 0
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "promptspool_usage") || strings.HasPrefix(name, "gen_ai") {
			series += len(f.GetMetric())
			if f.GetType() == dto.MetricType_SUMMARY {
				// Its sum and its count.
				series += len(f.GetMetric())
			}
		}
		if f.GetName() != "promptspool_usage_requests_total" {
			continue
		}
		for _, s := range f.GetMetric() {
			requests += s.GetCounter().GetValue()
			if s.GetLabel()[1].GetValue() == "gpt-4o" {
				models++
			}
		}
	}
	if requests != calls || models < 50 || series > most {
		t.Errorf("%v requests are counted, of the model in %d series of %d", requests, models, series)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestKeysThatShareALabelAreRefused(t *testing.T) {
	for want, keys := range map[string][]string{
		"metadata_a_b": {"a.b", "a-b"},
		"more than 8":  {"1", "2", "3", "4", "5", "6", "7", "8", "9"},
	} {
		if _, err := NewUsage(keys, 1000); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q: %v", keys, err)
		}
	}
}
