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
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api"
	"promptspool/api/wire"
)

const exportPath = "/api/public/v2/requests/export"

// waitingExporter gives one mark and waits until it may continue, or until its caller has left.
type waitingExporter struct {
	querier
	goOn chan bool
}

func (e waitingExporter) ExportEvents(
	ctx context.Context, _ wire.Identity, _ wire.Search, _ func([]wire.Event) error, mark func(string) error,
) error {
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
	e := waitingExporter{goOn: make(chan bool)}
	s, _ := startTCP(t, func(c *api.Config) { c.Records = e })
	export := func() *http.Response {
		t.Helper()
		res := s.send("POST", exportPath, "", "X-API-KEY", "full")
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}

	first := export()
	second := export()
	if second.StatusCode != 429 {
		t.Fatalf("a second: %d", second.StatusCode)
	}
	said, _ := io.ReadAll(second.Body)
	if second.Header.Get("Retry-After") == "" || !strings.Contains(string(said), "already have one export") {
		t.Errorf("a second: Retry-After %q, %s", second.Header.Get("Retry-After"), said)
	}

	// A caller who has read the first to its end may have the next.
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

// waitingScanner is a keeper whose scans wait until they are let go.
type waitingScanner struct {
	wire.Records
	asked chan wire.ScanQuery
	goOn  chan bool
}

func (w waitingScanner) Scan(
	ctx context.Context, _ wire.Identity, q wire.ScanQuery,
) (wire.Scanned, error) {
	w.asked <- q
	select {
	case <-w.goOn:
	case <-ctx.Done():
	}

	return wire.Scanned{
		Success: true,
		Kinds:   map[wire.SecretKind]int{},
		Items:   []wire.FoundSecret{},
		Done:    true,
	}, ctx.Err()
}

func TestAKeyHasOneScanForSecretsAtATime(t *testing.T) {
	w := waitingScanner{asked: make(chan wire.ScanQuery), goOn: make(chan bool, 1)}
	s := start(t, func(c *api.Config) { c.Records = w })
	scan := func(body string) answer {
		return s.call("POST", "/api/public/v2/requests/scan", body, "X-API-KEY", "full")
	}

	first := make(chan answer)
	go func() { first <- scan(`{"limit":2}`) }()
	if q := <-w.asked; q.Limit != 2 {
		t.Errorf("the query is %+v, want a limit of 2", q)
	}
	if a := scan(`{}`); a.Status != 429 || !strings.Contains(a.Message, "already have one scan") {
		t.Errorf("a second: %+v", a)
	}
	w.goOn <- true
	if a := <-first; a.Status != 200 {
		t.Errorf("the first: %+v", a)
	}

	for _, body := range []string{`{"limit":0}`, `{"limit":-1}`, `{"limit":1.5}`, `{"limit":"2"}`} {
		if a := scan(body); a.Status != 422 || a.Fields[0].Field != "limit" {
			t.Errorf("%s: %+v", body, a)
		}
	}
}

// relayed is a server's answer, or its refusal.
type relayed struct {
	api.Upstream
	answer  io.Reader
	refusal error
	asked   wire.Export
	closed  chan bool
}

func (r *relayed) OpenExport(_ context.Context, _ wire.Identity, e wire.Export) (io.ReadCloser, error) {
	r.asked = e

	return r, r.refusal
}

func (r *relayed) Read(p []byte) (int, error) { return r.answer.Read(p) }

func (r *relayed) Close() error {
	r.closed <- true

	return nil
}

// A sidecar passes the server's answer on as it is. Where that is cut, its own answer is cut, too.
func TestAnExportIsRelayed(t *testing.T) {
	const line = `{"export":{"cursor":"","done":true}}` + "\n"
	answer := func(whole bool) io.Reader {
		if whole {
			return strings.NewReader(line)
		}

		return io.MultiReader(strings.NewReader(line), iotest.ErrReader(errors.New("cut")))
	}
	for name, c := range map[string]struct {
		relay         relayed
		status        int
		kind, message string
		whole         bool
	}{
		"whole": {relayed{answer: answer(true)}, 200, "application/x-ndjson", line, true},
		"cut":   {relayed{answer: answer(false)}, 200, "application/x-ndjson", line, false},
		"refused": {
			relayed{refusal: wire.Errorf(wire.CodeUnavailable, "It is away.")},
			503, "application/json", "It is away.", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.relay.closed = make(chan bool, 1)
			s, _ := startTCP(t, func(config *api.Config) { config.Upstream = &c.relay })
			for range 2 { // the first one gives its place back
				res, text, err := s.read("POST", exportPath, `{"per_page":7}`, "X-API-KEY", "full")
				kind := res.Header.Get("Content-Type")
				if res.StatusCode != c.status || kind != c.kind || !strings.Contains(text, c.message) {
					t.Errorf("%d, %s, %q", res.StatusCode, kind, text)
				}
				if (err == nil) != c.whole {
					t.Errorf("the answer ends with %v", err)
				}
				if c.relay.asked.PerPage != 7 {
					t.Errorf("the server is asked for %+v", c.relay.asked)
				}

				if c.status == 200 {
					<-c.relay.closed
					c.relay.answer = answer(c.whole)
				}
			}
		})
	}
}

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
	s, _ := startTCP(t, func(c *api.Config) { c.Records = p })
	res, raw, err := s.read("POST", exportPath, body, "X-API-KEY", "full")
	if res.StatusCode == http.StatusOK && res.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("it is %s", res.Header.Get("Content-Type"))
	}
	lines, _ = csv.NewReader(strings.NewReader(raw)).ReadAll()

	return lines, res.StatusCode, err
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
		Scores:        []wire.Score{wire.IntegerScore("=a", 1)},
		FirstTokenMS:  &latency,
		SessionID:     "=1",
		UserID:        "+1",
		Environment:   "-1",
		TraceID:       "t",
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
		"'|x", "1.25", "1.25", "3",
		"", "", "", "", "0.00000275", "'\r=1+1", "4", "", "'=a=1", "'@a,b,c", `k=v"w`,
		"'=1", "'+1", "'-1", "t", "", "host\nb",
		"'=1+1", "'@", "",
	}
	if diff := cmp.Diff(want, lines[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fmt.Sprint(lines[0]) != fmt.Sprint(wire.CSVColumns) {
		t.Errorf("the heading is %v", lines[0])
	}
}

// strict takes the cursors of searches only, as a search does.
type strict struct{ querier }

func (strict) Search(_ context.Context, _ wire.Identity, s wire.Search) (wire.SearchPage, error) {
	if s.Cursor != "" {
		return wire.SearchPage{}, wire.Invalid(wire.FieldError{Field: "cursor", Reason: "is none of a search"})
	}
	return wire.SearchPage{Success: true, Items: []wire.Row{}}, nil
}

func TestAnExportIsTakenUpAgainPastTheLists(t *testing.T) {
	s, _ := startTCP(t, func(c *api.Config) { c.Records = strict{} })
	for cursor, status := range map[string]int{"i.": 200, "i.019ca945": 200, "elsewhere": 422} {
		res := s.send("POST", exportPath, `{"cursor":"`+cursor+`"}`, "X-API-KEY", "full")
		said, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("an export after %q: %d, %s", cursor, res.StatusCode, said)
		}
	}
}
