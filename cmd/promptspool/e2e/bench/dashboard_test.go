//go:build linux && bench

package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"promptspool/api/auth"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics"
	"promptspool/registry/prices"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// The dashboard's promises for each page.
const (
	firstByteMax = 150 * time.Millisecond // p95
	pageBytesMax = 20 << 10               // as served
)

// BenchmarkDashboard asks a real server for each of its pages and prints the time to the
// first byte and the weight, beside the floor: a page that reads nothing but who is
// signed in. PROMPTSPOOL_BENCH_RECORDS sets how many records the account has (50,000 by
// default), over twenty days that have just ended: 2,000,000 are in 200,000 sessions and
// traces of 40,000 users, and there is one more trace of 10,000 spans. PROMPTSPOOL_BENCH_SCORES, which is
// integers or floats, gives each record three scores of that kind, and short texts. PROMPTSPOOL_BENCH_PAGES
// leaves only pages whose names match it.
func BenchmarkDashboard(b *testing.B) {
	for range b.N {
		s := newPagesStage(b)
		fmt.Printf("\n%d records; first byte of %d calls each\n%-34s %9s %9s %9s %9s %10s %10s\n", s.records, pageCalls,
			"page", "first", "median", "p95", "max", "bytes", "as served")
		var worst time.Duration
		weight := 0
		for _, p := range s.pages(b) {
			if !regexp.MustCompile(os.Getenv("PROMPTSPOOL_BENCH_PAGES")).MatchString(p.name) {
				continue
			}
			got := s.ask(b, p.path)
			fmt.Printf("%-34s %9s %9s %9s %9s %10d %10d%s\n", p.name,
				harness.Rounded(got.first), harness.Rounded(got.median),
				harness.Rounded(got.p95), harness.Rounded(got.max),
				got.bytes, got.served, got.verdict())
			worst, weight = max(worst, got.p95), max(weight, got.served)
		}
		b.ReportMetric(float64(worst.Microseconds())/1000, "worst-p95-ms")
		b.ReportMetric(float64(weight)/1024, "heaviest-KiB")
	}
}

// pageCalls is how often each page is asked for.
const pageCalls = 40

// pagesStage is a server with many records and a person who is signed in.
type pagesStage struct {
	records int
	calls   *databasetest.Calls
	server  *harness.Node
	browser *http.Client
	cookie  string
}

func newPagesStage(b *testing.B) *pagesStage {
	b.Helper()
	s := &pagesStage{records: 50_000}
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_RECORDS")); err == nil {
		s.records = n
	}

	data := b.TempDir()
	s.fill(b, data)
	s.server = harness.BeginPlain(b, data, harness.FreePort(b), "server")
	b.Cleanup(s.server.Kill)
	if !s.server.Takes() {
		b.Fatal("the server does not start")
	}

	s.publish(b)
	s.signIn(b)
	return s
}

const (
	benchEmail    = "ann@example.com"
	benchPassword = "correct horse battery"
)

// fill makes an account with a person and records.
func (s *pagesStage) fill(b *testing.B, data string) {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
	db, err := badgerdb.Open(badgerdb.Config{Dir: filepath.Join(data, "archive"), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	key, err := auth.New(auth.Config{Store: db}).Bootstrap(ctx, harness.AdminKey)
	if err != nil {
		b.Fatal(err)
	}

	people := auth.NewPeople(auth.PeopleConfig{Store: db})
	code, err := people.Setup(ctx)
	if err != nil {
		b.Fatal(err)
	}
	application := wire.Application{Email: benchEmail, Password: benchPassword, Code: code}
	if _, err := people.Join(ctx, application, "192.0.2.1"); err != nil {
		b.Fatal(err)
	}

	span := 20 * 24 * time.Hour
	begin := time.Now().Add(-span).Truncate(time.Second)
	s.calls = databasetest.NewCalls(b, begin, span/time.Duration(s.records))
	s.calls.Lived = true
	s.calls.Scores = os.Getenv("PROMPTSPOOL_BENCH_SCORES")
	s.calls.Short = s.calls.Scores != ""
	a := records.New(records.Config{
		Store:   db,
		Prices:  prices.BuiltIn(),
		Metrics: metrics.New("server", "bench"),
		Logger:  quiet,
	})
	const batch = 500

	begun, before := time.Now(), processor(b)
	for from := 0; from < s.records; from += 20 * batch {
		to := min(from+20*batch, s.records)
		var work sync.WaitGroup
		for part := from; part < to; part += batch {
			work.Go(func() {
				var events []wire.Event
				for n := part; n < min(part+batch, to); n++ {
					events = append(events, s.calls.Events(n)...)
				}
				if _, err := a.Record(ctx, wire.Identity{Account: key.AccountID}, events); err != nil {
					b.Error(err)
				}
			})
		}
		work.Wait()
	}
	s.fillTrace(b, a, wire.Identity{Account: key.AccountID})
	fillExperiment(b, a, wire.Identity{Account: key.AccountID})
	b.Logf("%d records made at %.0f/s, %s of the processor for each", s.records,
		float64(s.records)/time.Since(begun).Seconds(), (processor(b)-before)/time.Duration(s.records))
}

// processor returns the time that this process had of the processors.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// longTrace is a trace of 10,000 spans.
const longTrace = "5b8efff798038103d269b633813fc60c"

// fillTrace makes longTrace: each span is below one of the hundred before it.
func (s *pagesStage) fillTrace(b *testing.B, a *records.Service, id wire.Identity) {
	b.Helper()
	const spans, batch = 10_000, 500
	for first := 0; first < spans; first += batch {
		var events []wire.Event
		for n := first; n < first+batch; n++ {
			const body = `{"resource":{},"scope":{},"span":{"traceId":%q,"spanId":"%016x","parentSpanId":%q,` +
				`"name":"step %d","startTimeUnixNano":"%d","endTimeUnixNano":"%d"}}`
			parent, start := "", s.calls.At(s.records/2).Add(time.Duration(n)*time.Millisecond)
			if n > 0 {
				parent = fmt.Sprintf("%016x", n-n*7%min(n, 100))
			}
			events = append(events, wire.Event{
				ID:         s.calls.ID(s.records/2+n, 8),
				Kind:       wire.KindSpan,
				RequestID:  s.calls.ID(s.records/2+n, 9),
				AcceptedAt: start,
				Sidecar:    "host-a",
				Body: fmt.Appendf(nil, body, longTrace, n+1, parent, n, start.UnixNano(),
					start.Add(time.Second).UnixNano()),
			})
		}
		if _, err := a.Record(b.Context(), id, events); err != nil {
			b.Fatal(err)
		}
	}
}

// fillExperiment makes what two versions of template-3 answered to 10,000 rows, with a score each.
func fillExperiment(b *testing.B, a *records.Service, id wire.Identity) {
	b.Helper()
	const rows, batch = 10_000, 250
	for first := 0; first < rows; first += batch {
		var events []wire.Event
		add := func(kind wire.Kind, request, body string) {
			events = append(events, wire.Event{
				ID: wire.NewID(), Kind: kind, RequestID: request, AcceptedAt: time.Now(), Sidecar: "host-a",
				Body: []byte(body), Version: 1 + len(events)/2%2,
			})
		}
		for row := first; row < first+batch; row++ {
			for version := 1; version <= 2; version++ {
				request := wire.NewID()
				add(wire.KindRequest, request, fmt.Sprintf(`{"function_name":"promptspool.experiments.run",
					"provider_type":"openai",
					"kwargs":{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Row %d"}]},
					"request_response":{"model":"gpt-4o-mini","choices":[{"message":{"role":"assistant","content":
					"The answer of version %d to row %d, which says the same as the other one's."}}],
					"usage":{"prompt_tokens":100,"completion_tokens":20}},"request_start_time":%d.25,
					"request_end_time":%[4]d.75,"prompt_id":"template-3","prompt_version":%[2]d,
					"metadata":{"experiment":"large","row":"%[1]d"}}`, row, version, row, time.Now().Unix()))
				add(wire.KindScore, request, fmt.Sprintf(`{"name":"good","value":%g,"author":"judge"}`,
					float64(row*version%10)/10))
			}
		}
		if _, err := a.Record(b.Context(), id, events); err != nil {
			b.Fatal(err)
		}
	}
}

// publish makes the templates that the records name.
func (s *pagesStage) publish(b *testing.B) {
	b.Helper()
	for template := range databasetest.CallTemplates {
		for version := range databasetest.CallVersions {
			t := harness.ChatOf2KB(fmt.Sprint("template-", template))
			v := t["prompt_version"].(map[string]any)
			v["commit_message"] = fmt.Sprint("change ", version+1)
			model := v["metadata"].(map[string]any)["model"].(map[string]any)
			model["parameters"] = map[string]any{"temperature": float64(version) / 10}
			r := s.server.Call("POST", "/rest/prompt-templates", t, "X-API-KEY", harness.AdminKey)
			if r.Status != http.StatusCreated {
				b.Fatalf("publish: %d %s", r.Status, r.Body)
			}
		}
	}
}

// signIn gets the cookie of a session. It is kept as a text, for over plain HTTP Go's own
// jar would not send it.
func (s *pagesStage) signIn(b *testing.B) {
	b.Helper()
	s.browser = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	form := url.Values{"email": {benchEmail}, "password": {benchPassword}}
	res, err := s.browser.PostForm("http://"+s.server.Addr+"/sign-in", form)
	if err != nil {
		b.Fatal(err)
	}

	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("signing in gives %d", res.StatusCode)
	}
	s.cookie = res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
}

type benchPage struct{ name, path string }

// pages returns all pages, the heavier ones in several ways.
func (s *pagesStage) pages(b *testing.B) []benchPage {
	b.Helper()
	record := s.calls.ID(s.records/2, 0)
	all := []benchPage{
		{"floor: password", "/password"},
		{"overview, all time", "/?filter="},
		{"overview, 30 days", "/?filter=since:30d"},
		{"overview, 7 days", "/?filter=since:7d"},
		{"overview, 24 hours", "/?filter=since:24h"},
		{"overview, last hour", "/?filter=since:1h"},
		{"overview, by the hour", "/?filter=since:7d&bucket=hour"},
		{"overview, cost by user", "/?filter=since:30d&metric=cost&group=user"},
		{"overview, latency by version", "/?filter=since:30d&metric=p95&group=version"},
		{"overview, errors by a key", "/?filter=since:30d&metric=errors&group=metadata.user"},
		{"overview of a tag", "/?filter=tag:tag-7"},
		{"overview of a model", "/?filter=model:*mini*"},
		{"overview of a template", "/?filter=template:template-3"},
		{"requests", "/requests"}, {"requests of a tag", "/requests?filter=tag:tag-7"},
		{"requests of a rare tag", "/requests?filter=tag:" + url.QueryEscape(databasetest.RareTag)},
		{"requests of a user", "/requests?filter=metadata.user:user-3"},
		{"requests, slow ones", "/requests?filter=latency:%3E9s"},
		{"requests with a word", "/requests?filter=function"},
		{"requests by latency", "/requests?sort=latency_ms"},
		{"requests by cost, lowest first", "/requests?sort=cost&order=asc"},
		{"requests, oldest first", "/requests?sort=list_time&order=asc"},
		{"failures by latency", "/requests?filter=status%3Aerror&sort=latency_ms"},
		{"requests, all columns", "/requests?col=model&col=provider&col=template&col=latency&col=tokens&col=cost" +
			"&col=scores&col=status&col=tags&col=metadata&col=tools&col=finish&col=function&col=sidecar&col=groups"},
		{"a request", "/requests/" + record},
		{"templates", "/templates"},
		{"a template", "/template?name=template-3"},
		{"compare", "/template/compare?name=template-3&a=1&b=9"},
		{"experiment, 10,000 rows, 2 versions", "/template/experiment?name=template-3&experiment=large"},
		{"statistics, all time", "/template/statistics?name=template-3"},
		{"statistics, 7 days", "/template/statistics?name=template-3&span=since:7d"},
		{"backtest", "/template/backtest?name=template-3&v=9"},
		{"edit", "/template/edit?name=template-3"},
		{"sidecars", "/sidecars"},
		{"keys", "/keys"},
		{"people", "/people"},
		{"audit", "/audit"},
		{"sign in", "/sign-in"},
	}

	_, trace, user := s.calls.Session(s.records / 2)
	all = append(all,
		benchPage{"a trace", "/traces/" + trace},
		benchPage{"a trace of 10,000 spans", "/traces/" + longTrace},
		benchPage{"a user's sessions", "/sessions?filter=user:" + user})
	for _, list := range []string{"traces", "sessions", "users"} {
		for _, sort := range []string{
			"last_seen", "first_seen", "turns", "errors", "cost", "tokens", "mean_score", "duration_ms",
		} {
			all = append(all, benchPage{list + " by " + sort, "/" + list + "?sort=" + sort})
		}
		for name, line := range map[string]string{
			"with a cost": "cost:>0.01", "with a tag": "tag:tag-7",
		} {
			all = append(all, benchPage{list + " " + name, "/" + list + "?filter=" + url.QueryEscape(line)})
		}
	}

	if res, body := s.get(b, "/requests", nil, ""); res.StatusCode == http.StatusOK {
		_, rest, _ := strings.Cut(string(body), `href="/requests?cursor=`)
		cursor, _, _ := strings.Cut(rest, `"`)
		all = append(all, benchPage{"requests, second page", "/requests?cursor=" + cursor})
	}
	for name, list := range map[string]string{
		"a request of a list": "/requests", "a request of a tag": "/requests?filter=tag%3Atag-7",
		"a request of a list by latency": "/requests?sort=latency_ms",
	} {
		_, body := s.get(b, list, nil, "")
		if rows := recordHref.FindAllSubmatch(body, -1); len(rows) > 20 {
			all = append(all, benchPage{name, strings.ReplaceAll(string(rows[20][1]), "&amp;", "&")})
		}
	}
	return all
}

// recordHref is the address of a request in a list.
var recordHref = regexp.MustCompile(`href="(/requests/[0-9a-f]{8}-[^"]*)"`)

// pageFigures are the measurements of a page.
type pageFigures struct {
	first, median, p95, max time.Duration
	bytes, served           int
}

func (f pageFigures) verdict() string {
	said := ""
	if f.p95 > firstByteMax {
		said += "  SLOW"
	}
	if f.served > pageBytesMax {
		said += "  HEAVY"
	}
	return said
}

// ask measures a page. The first call is counted with the others.
func (s *pagesStage) ask(b *testing.B, path string) (f pageFigures) {
	b.Helper()
	var took []time.Duration
	for range pageCalls {
		var first time.Duration
		begun := time.Now()
		trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Since(begun) }}
		res, body := s.get(b, path, trace, "")
		if res.StatusCode != http.StatusOK {
			b.Fatalf("%s: %d\n%s", path, res.StatusCode, body)
		}
		took = append(took, first)
		f.bytes = len(body)
	}

	f.first = took[0]
	slices.Sort(took)
	f.median, f.p95, f.max = took[len(took)/2], took[(len(took)*95+99)/100-1], took[len(took)-1]
	_, served := s.get(b, path, nil, "gzip")
	f.served = len(served)
	return f
}

// get asks for a page. Without an encoding it takes what a browser takes, and unpacks it;
// otherwise it returns the body as it was served.
func (s *pagesStage) get(
	b *testing.B, path string, trace *httptrace.ClientTrace, encoding string,
) (*http.Response, []byte) {
	b.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+s.server.Addr+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	if trace != nil {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	}
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}

	r.Header.Set("Cookie", s.cookie)
	res, err := s.browser.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res, body
}
