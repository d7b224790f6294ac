package api_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
)

// auditLog keeps what was noted.
type auditLog struct{ entries []string }

func (l *auditLog) Audit(_ context.Context, _ string, e wire.AuditEntry) error {
	l.entries = append(l.entries, e.Action+" "+e.Target+": "+e.Detail)

	return nil
}

// emptyExporter finds nothing.
type emptyExporter struct{}

func (emptyExporter) ExportEvents(
	_ context.Context, _ wire.Identity, _ wire.Search, _ func([]wire.Event) error, mark func(string) error,
) error {
	return mark("")
}

// A cursor must not keep an export out of the log.
func TestContinuedExportsAreNotedOnceInAnHour(t *testing.T) {
	log := &auditLog{}
	s, addr := startTCP(t, func(c *api.Config) {
		c.Querier, c.Exporter, c.Audit = querier{}, emptyExporter{}, log
	})
	for _, body := range []string{`{"cursor":"x"}`, `{"cursor":"y"}`, `{}`} {
		req, _ := http.NewRequestWithContext(t.Context(), "POST",
			"http://"+addr+"/api/public/v2/requests/export", strings.NewReader(body))
		req.Header.Set("X-API-KEY", "full")
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(res.Body)
		if _ = res.Body.Close(); err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %d %s, %v", body, res.StatusCode, said, err)
		}
	}

	want := []string{"export requests events: continued, all", "export requests events: all"}
	if !slices.Equal(log.entries, want) {
		t.Errorf("the audit log has %q, want %q", log.entries, want)
	}
}
