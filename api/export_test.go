package api_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
)

// waitingExporter gives one mark and waits until it may go on, or until its caller has gone.
type waitingExporter struct{ goOn chan bool }

func (e waitingExporter) ExportEvents(ctx context.Context, _ wire.Identity, _ wire.Search, _ func([]wire.Event) error,
	mark func(string) error) error {
	if err := mark("behind"); err != nil {
		return err
	}
	select {
	case <-e.goOn:
	case <-ctx.Done():
		return ctx.Err()
	}

	return mark("")
}

func TestAKeyHasOneExportAtATime(t *testing.T) {
	e := waitingExporter{make(chan bool)}
	s, addr := startTCP(t, func(c *api.Config) { c.Querier, c.Exporter = querier{}, e })
	export := func() *http.Response {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/api/public/v2/requests/export", nil)
		req.Header.Set("X-API-KEY", "full")
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}

	first := export()
	second := export()
	if second.StatusCode != 429 {
		t.Fatalf("a second: %d", second.StatusCode)
	}
	said, _ := io.ReadAll(second.Body)
	if second.Header.Get("Retry-After") == "" || !strings.Contains(string(said), "already have an export") {
		t.Errorf("a second: Retry-After %q, %s", second.Header.Get("Retry-After"), said)
	}

	// Whoever has read the first to its end may have the next.
	for range 20 {
		e.goOn <- true
		if said, err := io.ReadAll(first.Body); err != nil || !strings.Contains(string(said), `"done":true`) {
			t.Fatalf("the first: %s, %v", said, err)
		}
		if first = export(); first.StatusCode != 200 {
			t.Fatalf("one behind the other: %d", first.StatusCode)
		}
	}
	e.goOn <- true
}
