package api_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api"
	"promptspool/api/wire"
)

// pages answers searches with the rows of a cursor. The page at "broken" fails.
type pages struct {
	querier
	rows map[string][]wire.Row // by cursor
	next map[string]string
}

func (p pages) Search(_ context.Context, _ wire.Identity, s wire.Search) (wire.SearchPage, error) {
	if s.PerPage != wire.PageItemsMax || s.Cursor == "broken" {
		return wire.SearchPage{}, errors.New("the disk is broken")
	}

	page := wire.SearchPage{Success: true, Items: p.rows[s.Cursor]}
	if next := p.next[s.Cursor]; next != "" {
		page.NextCursor = &next
	}

	return page, nil
}

// exported returns the lines of an export.
func exported(t *testing.T, p pages, body string) (lines [][]string, status int, err error) {
	t.Helper()
	s, addr := startTCP(t, func(c *api.Config) { c.Querier, c.Exporter = p, exporter{} })
	req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/api/public/v2/requests/export",
		strings.NewReader(body))
	req.Header.Set("X-API-KEY", "full")
	res, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	raw, err := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusOK && res.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("it is %s", res.Header.Get("Content-Type"))
	}
	lines, _ = csv.NewReader(strings.NewReader(string(raw))).ReadAll()

	return lines, res.StatusCode, err
}

// exporter has nothing.
type exporter struct{}

func (exporter) ExportEvents(
	_ context.Context, _ wire.Identity, _ wire.Search, _ func([]wire.Event) error, mark func(string) error,
) error {
	return mark("")
}

func TestAnExportAsCSV(t *testing.T) {
	row := func(id string) wire.Row { return wire.Row{RequestID: id, Status: "SUCCESS"} }
	p := pages{
		rows: map[string][]wire.Row{"": {row("r1"), row("r2")}, "c1": nil, "c2": {row("r3")}},
		next: map[string]string{"": "c1", "c1": "c2"},
	}
	ids := func(lines [][]string) (got []string) {
		for _, l := range lines {
			got = append(got, l[1]+" "+l[len(l)-1])
		}
		return got
	}

	lines, _, err := exported(t, p, `{"format":"csv"}`)
	if diff := cmp.Diff([]string{"request_id cursor", "r1 ", "r2 c1", "r3 "}, ids(lines)); err != nil || diff != "" {
		t.Errorf("all (%v) (-want +got):\n%s", err, diff)
	}
	lines, _, err = exported(t, p, `{"format":"csv","cursor":"c1"}`)
	if diff := cmp.Diff([]string{"r3 "}, ids(lines)); err != nil || diff != "" {
		t.Errorf("behind a cursor (%v) (-want +got):\n%s", err, diff)
	}

	// An answer that cannot be finished must not look like one that is.
	p.next["c1"] = "broken"
	lines, status, err := exported(t, p, `{"format":"csv"}`)
	if err == nil || status != http.StatusOK || len(lines) != 3 {
		t.Errorf("cut: %d, %d lines, %v", status, len(lines), err)
	}

	for body, want := range map[string]int{
		`{"format":"xml"}`:                   422,
		`{"format":7}`:                       422,
		`{"format":"csv","cursor":"broken"}`: 500,
	} {
		if _, status, _ := exported(t, p, body); status != want {
			t.Errorf("%s: %d, not %d", body, status, want)
		}
	}
}

func TestACSVExportHoldsNoFormulas(t *testing.T) {
	n, price, latency, version, name := int64(3), 2.75e-6, 1.25, int64(4), "\r=1+1"
	row := wire.Row{
		RequestID:     "r1",
		ListTime:      time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC),
		AcceptedAt:    time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		FunctionName:  "+x",
		Provider:      "\t=x",
		Engine:        "=cmd|'/c calc'!A0",
		Status:        "-1",
		ErrorType:     "@sum",
		FinishReason:  "|x",
		Latency:       &latency,
		InputTokens:   &n,
		Price:         &price,
		PromptName:    &name,
		PromptVersion: &version,
		Tags:          []string{"@a", "b,c"},
		Metadata:      []wire.MetadataRow{{Key: "k", Value: "v\"w"}},
		Scores:        []wire.Score{{Name: "=a", Score: 1}},
		Sidecar:       "host\nb",
		InputExcerpt:  "=1+1",
		OutputExcerpt: "@",
	}

	lines, _, err := exported(t, pages{rows: map[string][]wire.Row{"": {row}}}, `{"format":"csv"}`)
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}

	want := []string{
		"2026-03-01T11:59:00Z", "r1", "2026-03-01T12:00:00Z", "'+x", "'\t=x", "'=cmd|'/c calc'!A0", "'-1", "'@sum", "",
		"'|x", "1.25", "3",
		"", "", "", "0.00000275", "'\r=1+1", "4", "", "'=a=1", "'@a,b,c", `k=v"w`, "", "host\nb",
		"'=1+1", "'@", "",
	}
	if diff := cmp.Diff(want, lines[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fmt.Sprint(lines[0]) != fmt.Sprint(wire.CSVColumns) {
		t.Errorf("the heading is %v", lines[0])
	}
}
