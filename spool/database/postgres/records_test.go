package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

const account = "account-a"

// idAt returns the nth id that a clock made at that moment.
func idAt(at time.Time, n int) string {
	ms := uint64(at.UnixMilli())

	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, n)
}

// eventAt returns an event of a record, accepted at that moment.
func eventAt(t testing.TB, at time.Time, kind wire.Kind, requestID string, n int, body string) archive.Event {
	t.Helper()

	return databasetest.Decode(t, wire.Event{
		ID:         idAt(at, 1_000_000+n),
		Kind:       kind,
		RequestID:  requestID,
		AcceptedAt: at,
		Sidecar:    "host-a",
		Body:       json.RawMessage(body),
	}, at)
}

// requestAt returns the request of a record whose id is of the same moment.
func requestAt(t testing.TB, at time.Time, n int) archive.Event {
	t.Helper()
	body := fmt.Sprintf(`{"function_name":"f","session_id":"one","tags":["number %d"],"kwargs":{}}`, n)

	return eventAt(t, at, wire.KindRequest, idAt(at, n), n, body)
}

func apply(t testing.TB, db archive.Store, events ...archive.Event) []wire.Result {
	t.Helper()
	results, err := db.Apply(context.Background(), account, events)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// total returns how many records the account has, and checks that a search lists them all.
func total(t testing.TB, db archive.Store) (found int) {
	t.Helper()
	q, err := query.Compile(wire.Search{PerPage: 100})
	if err != nil {
		t.Fatal(err)
	}
	page, err := db.Search(context.Background(), account, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Rows) != page.Total {
		t.Errorf("%d rows are listed of %d", len(page.Rows), page.Total)
	}

	return page.Total
}

// at opens a database whose clock stands still.
func at(t testing.TB, dsn string, now time.Time) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(context.Background(), postgres.Config{
		DSN:    dsn,
		Logger: quiet,
		Now:    func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Check(context.Background()); err != nil {
			t.Errorf("Check: %v", err)
		}
		_ = db.Close()
	})
	return db
}

var monday = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const week = 7 * 24 * time.Hour

func TestWeeksGoWhenAllOfThemIsTooOld(t *testing.T) {
	dsn := postgres.Empty(t)
	now := monday.Add(10 * week)
	db := at(t, dsn, now) // checked when the test ends
	db.InSmallSteps()
	for n := range 8 {
		apply(t, db, requestAt(t, monday.Add(time.Duration(n)*week), n))
	}
	// A week is dropped with its deltas.
	scored := monday.Add(2 * week)
	for n := range 2 {
		apply(t, db, eventAt(t, scored, wire.KindScore, idAt(scored, 2), 200+n,
			`{"request_id":"`+idAt(scored, 2)+`","score":1}`))
	}

	// A late record of the first week stays; an orphan of the second is dropped.
	apply(t, db, eventAt(t, now, wire.KindRequest, idAt(monday, 100), 100, `{"function_name":"f"}`))
	apply(t, db, eventAt(t, monday.Add(week), wire.KindScore, idAt(monday.Add(week), 101), 101,
		`{"request_id":"`+idAt(monday.Add(week), 101)+`","score":1}`))
	if err := db.SummarizeAccount(context.Background(), account); err != nil {
		t.Fatal(err)
	}

	tooOld := archive.Retention{Age: now.Sub(monday.Add(4 * week))}
	dropped, err := archive.Retain(context.Background(), db, tooOld, now)
	if err != nil || dropped != 5 {
		t.Errorf("%d were dropped, want 4 records and an orphan (%v)", dropped, err)
	}
	if n := total(t, db); n != 5 {
		t.Errorf("%d are left, want the 4 of the weeks that are not over and the late one", n)
	}
	q := rollup.Query{Names: []string{"one"}, Sort: rollup.FactOf("turns"), Limit: 1}
	page, err := db.Rollups(t.Context(), account, q)
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Of[rollup.Turns] != 4 {
		t.Errorf("the session is %+v, %v; want the 4 calls that are left of it", page, err)
	}
	if n := partitions(t, dsn, "records_w20260309"); n != 0 {
		t.Error("the partition of a week that is too old is still there")
	}
	if n := partitions(t, dsn, "records_w20260302"); n != 1 {
		t.Error("the partition of the late record is gone")
	}

	// A record that still arrives for a dropped week is accepted, and dropped the next time.
	apply(t, db, requestAt(t, monday.Add(2*week), 102))
	if n := total(t, db); n != 6 {
		t.Errorf("%d are there after one came late, want 6", n)
	}
	if dropped, err := archive.Retain(context.Background(), db, tooOld, now); err != nil || dropped != 1 {
		t.Errorf("%d were dropped the next time (%v), want the one that came late", dropped, err)
	}
}

func partitions(t testing.TB, dsn, name string) (n int) {
	t.Helper()
	if err := postgrestest.Connect(t, dsn).QueryRow(context.Background(),
		`SELECT count(*) FROM pg_class WHERE relname = $1`, name).Scan(&n); err != nil {
		t.Fatal(err)
	}

	return n
}

func TestAMissingPartitionLosesNothing(t *testing.T) {
	dsn := postgres.Empty(t)
	db := at(t, dsn, monday)
	for _, table := range []string{"records", "record_states", "record_bodies"} {
		execute(t, dsn, `DROP TABLE `+table+`_w20260302`)
	}

	// The server believes that they exist, so new records go to the default partition, where
	// they are found.
	apply(t, db, requestAt(t, monday, 1), requestAt(t, monday.Add(time.Hour), 2))
	if n := total(t, db); n != 2 {
		t.Errorf("%d of 2 are found", n)
	}

	if err := db.MakeAhead(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := partitions(t, dsn, "records_w20260302"); n != 1 {
		t.Error("the partition was not made again")
	}
	var strays int
	if err := postgrestest.Connect(t, dsn).QueryRow(context.Background(),
		`SELECT count(*) FROM records_default`).Scan(&strays); err != nil || strays != 0 {
		t.Errorf("%d records were left behind (%v)", strays, err)
	}
	apply(t, db, requestAt(t, monday.Add(2*time.Hour), 3))
	if n := total(t, db); n != 3 {
		t.Errorf("%d of 3 are found after they moved", n)
	}
}

func TestIdsOfNoClockAreKept(t *testing.T) {
	db := at(t, postgres.Empty(t), monday)
	ids := []string{
		"00000000-0000-7000-8000-000000000001",
		"ffffffff-ffff-7fff-bfff-ffffffffffff",
		idAt(monday.Add(50*week), 3),
		idAt(monday.Add(-30*52*week), 4),
	}
	for i, id := range ids {
		apply(t, db, eventAt(t, monday.Add(time.Duration(i)*time.Second), wire.KindRequest, id, i,
			`{"function_name":"f","tags":["x"]}`))
	}

	if n := total(t, db); n != len(ids) {
		t.Errorf("%d of %d are found", n, len(ids))
	}
	for _, id := range ids {
		_, body, err := db.Record(context.Background(), account, id)
		if err != nil || !strings.Contains(string(body), `"x"`) {
			t.Errorf("record %s: %q (%v)", id, body, err)
		}
	}
}

func TestRequestsAreFoundByTheirIds(t *testing.T) {
	db := at(t, postgres.Empty(t), monday)
	var rows []wire.Row
	var ids []string
	for n := range 6 {
		e := requestAt(t, monday.Add(-time.Duration(n)*3*24*time.Hour), n)
		apply(t, db, e)
		state, _, err := db.Record(context.Background(), account, e.RequestID)
		if err != nil {
			t.Fatal(err)
		}
		row, _ := state.Row()
		rows, ids = append(rows, row), append(ids, e.RequestID)
	}

	waits := idAt(monday, 50)
	apply(t, db, eventAt(t, monday, wire.KindScore, waits, 50, `{"request_id":"`+waits+`","score":1}`))
	in := func(ids ...string) wire.Filter {
		return databasetest.Condition("request_id", "", "in", append([]string{}, ids...))
	}
	tagged := func(operator string) wire.Filter {
		return databasetest.Condition("tags", "", operator, "number 4")
	}

	for name, f := range map[string]wire.Filter{
		"one":                     databasetest.Condition("request_id", "", "is", ids[2]),
		"several weeks":           in(ids[0], ids[5], ids[3]),
		"one that there is not":   in(idAt(monday, 70), ids[1]),
		"an orphan":               in(waits),
		"no id":                   in("x", "", strings.ToUpper(ids[1])),
		"none":                    in(),
		"an id and its tag":       {Filters: []wire.Filter{in(ids...), tagged("is")}},
		"an id and another's tag": {Filters: []wire.Filter{in(ids[1]), tagged("contains")}},
		"an id or a tag":          {Logic: "OR", Filters: []wire.Filter{in(ids[1]), tagged("is")}},
		"all others":              databasetest.Condition("request_id", "", "not_in", ids[:2]),
	} {
		for _, order := range []string{"", "accepted_at"} {
			q, err := query.Compile(wire.Search{FilterGroup: &f, PerPage: 3, SortBy: order})
			if err != nil {
				t.Fatal(err)
			}
			want := databasetest.Select(q, rows, func(row *wire.Row) *query.Subject { return &query.Subject{Row: row} })
			got, err := db.Search(context.Background(), account, q)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%s, by %q (%v) (-want +got):\n%s", name, order, err, diff)
			}
		}
	}
}

func TestServersThatFoldTheSameRecordsLoseNothing(t *testing.T) {
	dsn := postgres.Empty(t)
	databasetest.RunTogether(t, at(t, dsn, monday), at(t, dsn, monday), at(t, dsn, monday))
}

func TestAnEditOfWhatHasLostABodyFails(t *testing.T) {
	dsn := postgres.Empty(t)
	db := open(t, dsn)
	for n := range 3 {
		at := monday.Add(time.Duration(n) * time.Hour)
		apply(t, db, eventAt(t, at, wire.KindRequest, idAt(at, n), n,
			`{"function_name":"f","kwargs":{"prompt":"asked"}}`))
	}

	execute(t, dsn, `DELETE FROM record_bodies WHERE request_id = '`+idAt(monday.Add(time.Hour), 1)+`'`)

	for n := range 3 {
		looked, id := false, idAt(monday.Add(time.Duration(n)*time.Hour), n)
		_, err := archive.Edit(t.Context(), db, account, []string{id}, false,
			func(*archive.State, map[string]json.RawMessage) (bool, error) {
				looked = true
				return false, nil
			})
		if looked != (n != 1) || wire.IsCode(err, wire.CodeInternal) != (n == 1) {
			t.Errorf("record %d: %v", n, err)
		}
	}
}

func TestCheckFindsWhatDoesNotAgree(t *testing.T) {
	dsn := postgres.Empty(t)
	db := open(t, dsn)
	for n := range 3 {
		apply(t, db, requestAt(t, monday.Add(time.Duration(n)*time.Hour), n))
	}
	apply(t, db, eventAt(t, monday, wire.KindScore, idAt(monday, 50), 50,
		`{"request_id":"`+idAt(monday, 50)+`","score":1}`))
	apply(t, db, eventAt(t, monday, wire.KindSpan, idAt(monday, 51), 51,
		databasetest.SpanBody("52adf2cf8206e15bbdd5b2da7b55fa89", 1, "step")))
	db.InSmallSteps()

	// The first is written with the whole state, which may have deltas from then on.
	for n := range 2 {
		apply(t, db, eventAt(t, monday, wire.KindScore, idAt(monday, 0), 60+n,
			`{"request_id":"`+idAt(monday, 0)+`","score":1}`))
	}
	if err := db.SummarizeAccount(context.Background(), account); err != nil {
		t.Fatal(err)
	}
	if err := db.Check(context.Background()); err != nil {
		t.Fatal(err)
	}

	conn := postgrestest.Connect(t, dsn)
	change := func(sql string) {
		if _, err := conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	for _, harm := range []string{
		`DELETE FROM records`,
		`UPDATE records SET terms = '{1}'`,
		`UPDATE records SET at = at + 1`,
		`DELETE FROM record_bodies`,
		`UPDATE record_bodies SET body = body || 'x'`,
		`DELETE FROM record_states`,
		`UPDATE record_states SET orphan = NOT orphan`,
		`UPDATE record_states SET trace = NULL`,
		`UPDATE record_states SET span_at = span_at + 1`,
		`DELETE FROM record_deltas`,
		`UPDATE record_deltas SET after = after + 1`,
		`UPDATE record_deltas SET delta = '\x010178'`,
		`UPDATE record_deltas SET request_id = '01955295-0000-7000-8000-000000000000'`,
		`UPDATE account_weeks SET records = records + 1`,
		`UPDATE account_weeks SET spans = spans + 1`,
		`UPDATE account_weeks SET orphan_events = 0`,
		`UPDATE account_weeks SET newest = oldest - 1`,
		`DELETE FROM account_weeks`,
		`DELETE FROM rollups`,
		`UPDATE rollups SET errors = errors + 1`,
		`UPDATE rollups SET name = name || 'x'`,
		`UPDATE rollups SET turns = 0, spans = 0`,
		`DELETE FROM rollup_totals`,
		`UPDATE rollup_totals SET cost = cost + 1`,
		`UPDATE summaries SET bottom = newest`,
		`UPDATE summaries SET summary = 'x'`,
		`UPDATE summaries SET top_rows = substr(top_rows, 1, 20)`,
	} {
		t.Run(harm, func(t *testing.T) {
			table := strings.Fields(strings.NewReplacer("DELETE FROM", "", "UPDATE", "").Replace(harm))[0]
			change(`CREATE TABLE harmed AS TABLE ` + table + `; ` + harm)
			if err := db.Check(context.Background()); err == nil {
				t.Error("Check finds nothing wrong")
			}
			change(`DELETE FROM ` + table + `; INSERT INTO ` + table + ` TABLE harmed; DROP TABLE harmed`)
		})
	}
	// Each harm was the only one.
	if err := db.Check(context.Background()); err != nil {
		t.Errorf("after the repairs: %v", err)
	}
}

func TestSpansGoWithTheRetention(t *testing.T) {
	databasetest.RunSpanRetention(t, func(now time.Time) archive.Store { return at(t, postgres.Empty(t), now) })
}

// Whatever the database answers, nothing of it may end the server.
func TestALookAtSpansThatFailsIsAnError(t *testing.T) {
	dsn := postgres.Empty(t)
	db := open(t, dsn)
	execute(t, dsn, `ALTER TABLE record_states RENAME COLUMN span_at TO gone`)

	states, next, err := db.States(t.Context(), account, archive.TaggedSpans, "", 10)
	if err == nil || len(states) > 0 || next != "" {
		t.Errorf("it found %d spans, and more behind %q, %v", len(states), next, err)
	}
}

func TestAPageOfOrphansIsBoundedByBytes(t *testing.T) {
	const orphans = 6
	db := checked(t, postgres.Empty(t))
	db.InSmallSteps() // two of these are too many for a page
	for n := range orphans {
		id := idAt(monday, n)
		apply(t, db, eventAt(t, monday, wire.KindMetadata, id, n,
			`{"request_id":"`+id+`",`+
				`"metadata":{"a":"`+strings.Repeat("x", 1000)+`","b":"`+strings.Repeat("y", 1000)+`"}}`))
	}

	found, pages := 0, 0
	for after, more := "", true; more; pages++ {
		states, next, err := db.States(context.Background(), account, archive.Orphaned, after, 100)
		if err != nil || len(states) == 0 || len(states) > 2 {
			t.Fatalf("a page has %d orphans (%v)", len(states), err)
		}
		found += len(states)
		after, more = next, next != ""
	}
	if found != orphans {
		t.Errorf("%d pages have %d orphans, want %d", pages, found, orphans)
	}

	d := wire.Deletion{Key: "a", Value: strings.Repeat("x", 1000), Before: monday.Add(time.Hour)}
	if sum, err := archive.Delete(context.Background(), db, account, d); err != nil || sum.Records != orphans {
		t.Errorf("%d of %d are deleted (%v)", sum.Records, orphans, err)
	}
}

// In its long form a session has a million calls.
func TestTwoServersAddUpOneSession(t *testing.T) {
	calls, batch := 400, 50
	if os.Getenv("PROMPTSPOOL_SOAK") != "" {
		calls, batch = 1_000_000, 250
	}
	dsn := postgres.Empty(t)
	servers := []*postgres.DB{checked(t, dsn), checked(t, dsn)}
	work := make(chan int)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for first := range work {
				var events []archive.Event
				for n := first; n < first+batch; n++ {
					events = append(events, eventAt(t, monday.Add(time.Duration(n)*time.Millisecond), wire.KindRequest,
						idAt(monday, n), n, `{"function_name":"f","session_id":"one"}`))
				}
				apply(t, servers[w%2], events...)
			}
		})
	}
	for first := 0; first < calls; first += batch {
		work <- first
	}
	close(work)
	wg.Wait()

	q := rollup.Query{Names: []string{"one"}, Sort: rollup.FactOf("turns"), Limit: 1}
	page, err := servers[1].Rollups(t.Context(), account, q)
	last := monday.Add(time.Duration(calls-1) * time.Millisecond)
	want := rollup.Sums{First: monday.UnixMicro(), Last: last.UnixMicro()}
	want.Of[rollup.Turns] = int64(calls)
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Sums != want {
		t.Errorf("the session is %+v, %v; want %+v", page, err, want)
	}
}

func TestServersThatWatchTheSameCallsTellOnce(t *testing.T) {
	dsn := postgres.Empty(t)
	databasetest.RunAlerts(t, at(t, dsn, monday), at(t, dsn, monday), at(t, dsn, monday))
}
