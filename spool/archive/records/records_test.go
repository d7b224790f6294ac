package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/disk/disktest"
)

// chat is the body of a request.
const chat = `{"function_name":"openai.chat.completions.create","kwargs":{"model":"gpt-4"},"request_response":{}}`

func TestMain(m *testing.M) {
	disktest.InMemory()
	os.Exit(m.Run())
}

// server is an archive over a real database. Its clock stands still, an hour after
// databasetest.Start, unless the test sets another.
type server struct {
	*records.Service
	metrics *metrics.Metrics
	id      wire.Identity
}

func newServer(t *testing.T, settings ...func(*records.Config)) server {
	t.Helper()
	return serverOver(openStore(t), settings...)
}

// openStore opens a database that is checked and closed when the test ends.
func openStore(t *testing.T) *badgerdb.DB {
	t.Helper()
	db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Check(context.Background()), db.Close()); err != nil {
			t.Error(err)
		}
	})

	return db
}

func serverOver(store archive.Store, settings ...func(*records.Config)) server {
	m := metrics.New("server", "test")
	c := records.Config{
		Store:   store,
		Metrics: m,
		Logger:  slog.New(slog.DiscardHandler),
		Name:    "the server",
		Now:     func() time.Time { return databasetest.Start.Add(time.Hour) },
	}
	for _, set := range settings {
		set(&c)
	}

	return server{records.New(c), m, wire.Identity{Account: "account-a", KeyID: "k1", Verified: true}}
}

// with sets the registry that knows which version a link means.
func with(v records.Versions) func(*records.Config) {
	return func(c *records.Config) { c.Versions = v }
}

// at sets a clock.
func at(now func() time.Time) func(*records.Config) {
	return func(c *records.Config) { c.Now = now }
}

// write returns the nth event of the record databasetest.ID(1000), accepted n seconds after the
// start.
func write(n int, kind wire.Kind, body string) wire.Event {
	return wire.Event{
		ID:         databasetest.ID(n),
		Kind:       kind,
		RequestID:  databasetest.ID(1000),
		AcceptedAt: databasetest.Start.Add(time.Duration(n) * time.Second),
		Body:       json.RawMessage(body),
	}
}

func (s server) record(t *testing.T, events ...wire.Event) []wire.Result {
	t.Helper()
	results, err := s.Record(t.Context(), s.id, events)
	if err != nil {
		t.Fatal(err)
	}

	return results
}

// counted returns the value of promptspool_archive_events_total for a result.
func (s server) counted(t *testing.T, result string) float64 {
	t.Helper()
	families, err := s.metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "promptspool_archive_events_total" && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric for %s", result)

	return 0
}

func TestEachEventOfABatchHasItsResult(t *testing.T) {
	s := newServer(t)
	badID := write(5, wire.KindScore, `{}`)
	badID.ID = "x"

	results := s.record(t,
		write(1, "embedding", `{}`),
		write(2, wire.KindScore, `{"score":50}`),
		write(3, wire.KindScore, `[]`),
		write(2, wire.KindScore, `{"score":50}`),
		badID,
		write(4, wire.KindRequest, chat),
	)

	var got []wire.ResultCode
	for i, r := range results {
		got = append(got, r.Code)
		refused := r.Code == wire.ResultLater || r.Code == wire.ResultInvalid
		if refused != (r.Reason != "") {
			t.Errorf("result %d, %s, has the reason %q", i, r.Code, r.Reason)
		}
	}
	want := []wire.ResultCode{
		wire.ResultLater,
		wire.ResultAccepted,
		wire.ResultInvalid,
		wire.ResultDuplicate,
		wire.ResultInvalid,
		wire.ResultAccepted,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}

	for code, want := range map[string]float64{"accepted": 2, "duplicate": 1, "invalid": 2, "later": 1} {
		if got := s.counted(t, code); got != want {
			t.Errorf("the metric counts %v %s, want %v", got, code, want)
		}
	}

	rec, err := s.Request(t.Context(), s.id, strings.ToUpper(databasetest.ID(1000)))
	if err != nil || len(rec.Events) != 2 || rec.Events[0].Sidecar != "the server" {
		t.Errorf("the record is %+v (%v)", rec, err)
	}
}

func TestNobodyWithoutAnAccountSeesAnothersRecords(t *testing.T) {
	s := newServer(t)
	s.record(t, write(1, wire.KindRequest, chat))
	if _, err := s.Request(t.Context(), s.id, databasetest.ID(1000)); err != nil {
		t.Fatal(err)
	}

	if _, err := s.Request(t.Context(), wire.Identity{}, databasetest.ID(1000)); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("the record of another project: %v", err)
	}
	page, err := s.Search(t.Context(), wire.Identity{}, wire.Search{})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("the records of another project: %+v (%v)", page.Items, err)
	}
}

func TestARequestThatIsNotThereSaysWhy(t *testing.T) {
	s := newServer(t)
	s.record(t, write(1, wire.KindScore, `{"score":1}`), write(2, wire.KindScore, `{"score":2}`))
	for _, c := range []struct{ id, says string }{
		{"12345", "UUIDv7"},
		{databasetest.ID(7), "no request"},
		{databasetest.ID(1000), "has not arrived yet. 2 events for it arrived already"},
	} {
		_, err := s.Request(t.Context(), s.id, c.id)
		if !wire.IsCode(err, wire.CodeNotFound) || !strings.Contains(wire.AsError(err).Message, c.says) {
			t.Errorf("%s: %v, want not found and %q", c.id, err, c.says)
		}
	}
}

// registry knows the template "greeting" with the id 7. Version 2 replaced version 1 a second
// after the start; the label prod points to version 1.
type registry struct{ fault error }

func (r registry) VersionAt(_ context.Context, _, ident string, sel wire.Selector, at time.Time) (string, int, error) {
	if r.fault != nil {
		return "", 0, r.fault
	}

	switch {
	case ident != "greeting" && ident != "7":
		return "", 0, wire.Errorf(wire.CodeNotFound, "There is none.")
	case sel.Version > 2, sel.Label != "" && sel.Label != "prod":
		return "greeting", 0, nil
	case sel.Label == "prod":
		return "greeting", 1, nil
	case sel.Version > 0:
		return "greeting", sel.Version, nil
	case at.Before(databasetest.Start.Add(time.Second)):
		return "greeting", 1, nil
	}

	return "greeting", 2, nil
}

func TestALinkMeansTheVersionOfItsTime(t *testing.T) {
	for _, c := range []struct {
		name     string
		versions records.Versions
		second   int
		resolved int // by the sidecar
		body     string
		want     string
		version  int // 0: unknown
	}{
		{"latest, before the second version", registry{}, 0, 0, `{"prompt_name":"greeting"}`, "greeting", 1},
		{"latest, after it", registry{}, 2, 0, `{"prompt_name":"greeting"}`, "greeting", 2},
		{"by its label", registry{}, 2, 0, `{"prompt_name":"greeting","label":"prod"}`, "greeting", 1},
		{"by its label, which wins over the version", registry{}, 2, 0,
			`{"prompt_name":"greeting","label":"prod","version":2}`, "greeting", 1},
		{"by an unknown label", registry{}, 2, 0,
			`{"prompt_name":"greeting","label":"x","version":2}`, "greeting", 0},
		{"by its id", registry{}, 2, 0, `{"prompt_name":7}`, "greeting", 2},
		{"by its id, with a version", registry{}, 2, 0, `{"prompt_name":"7","version":1}`, "greeting", 1},
		{"by a version that is not there", registry{}, 2, 0,
			`{"prompt_name":"greeting","version":9}`, "greeting", 9},
		{"by its id, with a version that is not there", registry{}, 2, 0,
			`{"prompt_name":7,"version":9}`, "greeting", 9},
		{"of an unknown template", registry{}, 2, 0, `{"prompt_name":"other"}`, "other", 0},
		{"as the sidecar resolved it", registry{}, 2, 1, `{"prompt_name":"greeting"}`, "greeting", 1},
		{"as the sidecar resolved its label", registry{}, 2, 2,
			`{"prompt_name":"7","label":"prod"}`, "greeting", 2},
		{"without a registry", nil, 2, 0, `{"prompt_name":"7"}`, "7", 0},
		{"without a registry, with a version", nil, 2, 0,
			`{"prompt_name":"greeting","version":3}`, "greeting", 3},
		{"as the sidecar resolved it, with the registry away", registry{errors.New("away")}, 2, 1,
			`{"prompt_name":"greeting"}`, "greeting", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, with(c.versions))
			link := write(c.second, wire.KindPrompt, c.body)
			link.Version = c.resolved

			// A request has the same link in members of other names.
			members := strings.NewReplacer(
				`"prompt_name"`, `"prompt_id"`,
				`"version"`, `"prompt_version"`,
				`"label"`, `"prompt_label"`,
			)
			own := write(9, wire.KindRequest,
				strings.Replace(members.Replace(c.body), "{", `{"function_name":"f",`, 1))
			own.RequestID, own.AcceptedAt, own.Version = databasetest.ID(1001), link.AcceptedAt, c.resolved
			s.record(t, link, write(8, wire.KindRequest, chat), own)

			for _, id := range []string{link.RequestID, own.RequestID} {
				rec, err := s.Request(t.Context(), s.id, id)
				if err != nil {
					t.Fatal(err)
				}
				version := 0
				if rec.Prompt.Version != nil {
					version = *rec.Prompt.Version
				}
				if rec.Prompt.Name != c.want || version != c.version {
					t.Errorf("%s is linked to %s version %d, want %s version %d",
						id, rec.Prompt.Name, version, c.want, c.version)
				}
			}
		})
	}
}

func TestNothingIsFoldedWhileTheRegistryCannotAnswer(t *testing.T) {
	away := wire.Unavailable(time.Second, "away")
	s := newServer(t, with(registry{away}))

	_, err := s.Record(t.Context(), s.id, []wire.Event{
		write(1, wire.KindRequest, chat),
		write(2, wire.KindPrompt, `{"prompt_name":"greeting"}`),
	})
	if !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
	if page, err := s.Search(t.Context(), s.id, wire.Search{}); err != nil || page.Total != 0 {
		t.Errorf("total %d (%v), want none", page.Total, err)
	}
}

func TestASearchAnswersInPages(t *testing.T) {
	s := newServer(t)
	page, err := s.Search(t.Context(), s.id, wire.Search{})
	if err != nil || page.Items == nil || len(page.Items) != 0 ||
		page.HasNext || page.NextCursor != nil || page.PerPage != 10 {
		t.Errorf("an empty archive answers %+v (%v)", page, err)
	}

	var events []wire.Event
	for i := range 5 {
		e := write(i, wire.KindRequest, chat)
		e.RequestID = databasetest.ID(1000 + i)
		events = append(events, e)
	}
	s.record(t, events...)

	first, err := s.Search(t.Context(), s.id, wire.Search{PerPage: 2})
	if err != nil || first.Total != 5 || first.Pages != 3 ||
		!first.HasNext || *first.NextNum != 2 || first.Items[0].ID != databasetest.ID(1004) {
		t.Fatalf("the first page is %+v (%v)", first, err)
	}
	second, err := s.Search(t.Context(), s.id, wire.Search{PerPage: 2, Cursor: *first.NextCursor})
	if err != nil || second.Total != 5 || !second.HasNext || second.NextNum != nil ||
		second.Items[0].ID != databasetest.ID(1002) {
		t.Errorf("the page after the cursor is %+v (%v)", second, err)
	}
	last, err := s.Search(t.Context(), s.id, wire.Search{PerPage: 2, Page: 3})
	if err != nil || last.HasNext || last.NextNum != nil || last.NextCursor != nil ||
		!last.HasPrev || len(last.Items) != 1 {
		t.Errorf("the last page is %+v (%v)", last, err)
	}

	beyond, err := s.Search(t.Context(), s.id, wire.Search{PerPage: 2, Page: 9})
	if err != nil || beyond.Total != 5 || len(beyond.Items) != 0 || beyond.HasNext {
		t.Errorf("a page beyond the last is %+v (%v)", beyond, err)
	}
	if _, err := s.Search(t.Context(), s.id, wire.Search{Cursor: "nonsense"}); !wire.IsCode(err, wire.CodeInvalid) {
		t.Errorf("an invalid cursor gives %v, want %s", err, wire.CodeInvalid)
	}
}

func TestAnExportOfEverythingComesInPagesByID(t *testing.T) {
	s := newServer(t)
	const records = 250
	for i := range records {
		e := write(2*i, wire.KindRequest, chat)
		e.RequestID = databasetest.ID(10_000 + i)
		o := write(2*i+1, wire.KindScore, `{"score":1}`)
		o.RequestID = databasetest.ID(20_000 + i)
		s.record(t, e, o)
	}

	// Each call ends at its first mark; the next continues after it.
	var ids []string
	search := wire.Search{}
	enough := wire.Errorf(wire.CodeConflict, "enough")
	calls := 0
	for done := false; !done && calls < 20; calls++ {
		err := s.ExportEvents(t.Context(), s.id, search, func(events []wire.Event) error {
			for _, e := range events {
				ids = append(ids, e.RequestID)
			}
			return nil
		}, func(cursor string) error {
			search.Cursor, done = cursor, cursor == ""
			return enough
		})
		if err != enough {
			t.Fatal(err)
		}
	}

	var want []string
	for _, first := range []int{20_000, 10_000} {
		for i := range records {
			want = append(want, databasetest.ID(first+records-1-i))
		}
	}
	if diff := cmp.Diff(want, ids); diff != "" || calls != 6 { // five full pages, and the end
		t.Errorf("in %d calls (-want +got):\n%s", calls, diff)
	}
}

// mustApply folds events of an account.
func mustApply(t testing.TB, db archive.Store, account string, events ...archive.Event) {
	t.Helper()
	if _, err := db.Apply(t.Context(), account, events); err != nil {
		t.Fatal(err)
	}
}

// Statistics that name a score say how far its authors agree.
func TestStatisticsCompareTheAuthorsOfAScore(t *testing.T) {
	s := newServer(t)
	s.record(t, write(0, wire.KindRequest, chat),
		write(1, wire.KindScore, `{"name":"tone","value":"rude","author":"ann"}`),
		write(2, wire.KindScore, `{"name":"tone","value":"rude","author":"judge"}`),
		write(3, wire.KindScore, `{"name":"other","value":"rude","author":"judge"}`))

	for name, want := range map[string]*wire.ScoreAgreement{
		"":        nil,
		"other":   {Pairs: []wire.AuthorPair{}}, // [] in JSON, not null
		"missing": nil,
		"tone":    {Pairs: []wire.AuthorPair{{A: "ann", B: "judge", Both: 1, Equal: 1}}},
	} {
		got, err := s.Analyze(t.Context(), s.id, wire.StatisticsQuery{ScoreAgreement: name})
		if diff := cmp.Diff(want, got.ScoreAgreement); diff != "" || err != nil {
			t.Errorf("%q: %s, %v", name, diff, err)
		}
	}
}
