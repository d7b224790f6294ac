package metrics

import (
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// The names that dashboards and alarms go by, beside those of the Go runtime and the process.
var (
	ofBoth = []string{"promptspool_build_info", "promptspool_panics_total", "promptspool_shed_total", "promptspool_batch_bytes",
		"promptspool_config_generation", "promptspool_config_loaded_timestamp_seconds", "promptspool_config_reload_failures_total", "promptspool_limited_total"}
	ofSidecar = append([]string{
		"promptspool_clock_skew_seconds", "promptspool_redacted_total", "promptspool_dead_letters", "promptspool_forward_paused", "promptspool_forward_retries_total", "promptspool_forward_sent_total",
		"promptspool_held_events", "promptspool_lanes_full", "promptspool_spool_bytes", "promptspool_spool_commit_events", "promptspool_spool_disk_bytes",
		"promptspool_spool_events", "promptspool_spool_fsync_seconds", "promptspool_spool_gaps_total", "promptspool_spool_oldest_seconds",
		"promptspool_spool_outage_capacity_seconds", "promptspool_template_cache_total", "promptspool_upstream_up",
	}, ofBoth...)
	ofServer = append([]string{"promptspool_archive_apply_seconds", "promptspool_archive_events_total", "promptspool_archive_waiting_writes", "promptspool_orphan_requests", "promptspool_orphan_events"}, ofBoth...)
)

func TestARoleExportsItsMetricsFromTheStart(t *testing.T) {
	for role, names := range map[string][]string{"sidecar": ofSidecar, "server": ofServer} {
		var got []string
		text := scrape(t, New(role, "test"))
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); f[0] == "#" && f[1] == "TYPE" && strings.HasPrefix(f[2], "promptspool_") {
				got = append(got, f[2])
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(names)), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
		for _, name := range []string{"go_goroutines ", "process_open_fds "} {
			if !strings.Contains(text, "\n"+name) {
				t.Errorf("%s: %s is missing", role, name)
			}
		}
	}
}

func TestMetricsFollowTheRulesOfTheirNames(t *testing.T) {
	for _, role := range []string{"sidecar", "server"} {
		m := New(role, "test")
		m.HTTPRequests.WithLabelValues("track-request", "200") // has no series before the first call
		m.HTTPSeconds.WithLabelValues("track-request")
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
