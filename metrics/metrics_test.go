package metrics

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// started is a role's metrics with what exists only once a route is served.
func started(role string) *Metrics {
	m := New(role, "test")
	m.HTTPRequests.WithLabelValues("track-request", "200")
	m.HTTPSeconds.WithLabelValues("track-request")
	return m
}

func TestTheProcessIsMeasuredToo(t *testing.T) {
	for _, role := range []string{"sidecar", "server"} {
		text := scrape(t, started(role))
		for _, name := range []string{"go_goroutines ", "process_open_fds "} {
			if !strings.Contains(text, "\n"+name) {
				t.Errorf("%s: %s is missing", role, name)
			}
		}
	}
}

func TestMetricsFollowTheRulesOfTheirNames(t *testing.T) {
	for _, role := range []string{"sidecar", "server"} {
		m := started(role)
		// A help text, the unit in its place, counters that end in _total.
		problems, err := promlint.New(strings.NewReader(scrape(t, m))).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", role, p.Metric, p.Text)
		}
	}
}

func TestNoFieldIsNil(t *testing.T) {
	for _, role := range []string{"sidecar", "server"} {
		v := reflect.ValueOf(New(role, "test")).Elem()
		for i := range v.NumField() {
			if v.Field(i).IsNil() {
				t.Errorf("%s: %s is nil", role, v.Type().Field(i).Name)
			}
		}
	}
}

func TestTwoRolesInOneProcessCountApart(t *testing.T) {
	sidecar, server := New("sidecar", "test"), New("server", "test")
	sidecar.Panics.Inc()
	server.SpoolEvents.Set(7) // the other role's: counts, and is not exported
	wantLine(t, sidecar, "promptspool_panics_total 1")
	wantLine(t, server, "promptspool_panics_total 0")
	if strings.Contains(scrape(t, server), "promptspool_spool_events") {
		t.Error("a server exports a spool")
	}
}

func TestTheStartIsNoAlarm(t *testing.T) {
	wantLine(t, New("sidecar", "test"), "promptspool_spool_outage_capacity_seconds +Inf")
	wantLine(t, New("sidecar", "test"), `promptspool_forward_retries_total{reason="network"} 0`)
	wantLine(t, New("server", "1.2"), `promptspool_build_info{role="server",version="1.2"} 1`)
}

func wantLine(t *testing.T, m *Metrics, line string) {
	t.Helper()
	if text := scrape(t, m); !strings.Contains(text, "\n"+line+"\n") {
		t.Errorf("the line %q is missing from:\n%s", line, text)
	}
}

// scrape is what Prometheus gets.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}
