//go:build !race

package badgerdb_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// account is an account with the records that its statistics are about.
type account struct {
	t       *testing.T
	db      *badgerdb.DB
	archive *records.Service
	id      wire.Identity
	begin   time.Time
	random  *rand.Rand
	hours   []int // since begin, of each request
}

// openAccount returns an account without records.
func openAccount(t *testing.T) *account {
	db := open(t, t.TempDir())
	db.PackEagerly()

	a := &account{
		t:      t,
		db:     db,
		id:     wire.Identity{Account: "a"},
		begin:  time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		random: rand.New(rand.NewPCG(1, 2)),
	}
	a.archive = records.New(records.Config{
		Store:   db,
		Metrics: metrics.New("server", "test"),
		Logger:  quiet,
		Now:     func() time.Time { return a.begin.Add(1e4 * time.Hour) },
	})

	return a
}

func (a *account) requestID(n int) string { return fmt.Sprintf("0195529c-1c00-7000-8000-%012d", n) }

// log logs n requests, some hours apart, each with a metadata value of its own.
func (a *account) log(n, hoursMax int) {
	a.t.Helper()
	at := 0
	for range n {
		if len(a.hours) > 0 {
			at = a.hours[len(a.hours)-1]
		}
		i := len(a.hours)
		a.hours = append(a.hours, at+a.random.IntN(hoursMax))
		status := []string{"SUCCESS", "SUCCESS", "ERROR"}[a.random.IntN(3)]

		body := fmt.Sprintf(`{"function_name":"openai.chat.completions.create",`+
			`"kwargs":{"model":"gpt-4o"},`+
			`"request_response":{"model":%q,"usage":{"prompt_tokens":%d,"completion_tokens":7}},`+
			"\n\t\t\t"+
			`"request_start_time":1000,"request_end_time":%d,"status":%q,"tags":["tag-%d"],`+
			`"metadata":{"user":"user-%d","session":"%d"},`+
			`"prompt_id":"template-%d","prompt_version":1}`,
			[]string{"gpt-4o", "gpt-4o-mini"}[a.random.IntN(2)], 10+a.random.IntN(100),
			1000+a.random.IntN(20), status, a.random.IntN(3),
			a.random.IntN(4), i,
			a.random.IntN(3))
		a.record(wire.Event{
			ID:         fmt.Sprintf("0195529c-1c00-7000-9000-%012d", i),
			Kind:       wire.KindRequest,
			RequestID:  a.requestID(i),
			AcceptedAt: a.begin.Add(time.Duration(a.hours[i]) * time.Hour),
			Sidecar:    "host",
			Body:       []byte(body),
		})
	}
}

// score scores the nth request.
func (a *account) score(n, score int) {
	a.t.Helper()
	a.record(wire.Event{
		ID:         fmt.Sprintf("0195529c-1c00-7000-a%03d-%012d", score, n),
		Kind:       wire.KindScore,
		RequestID:  a.requestID(n),
		AcceptedAt: a.begin.Add(2000 * time.Hour),
		Sidecar:    "host",
		Body:       fmt.Appendf(nil, `{"request_id":%q,"score":%d}`, a.requestID(n), score),
	})
}

// record records one event, which the archive must accept.
func (a *account) record(e wire.Event) {
	a.t.Helper()
	results, err := a.archive.Record(a.t.Context(), a.id, []wire.Event{e})
	if err != nil || results[0].Code != wire.ResultAccepted {
		a.t.Fatalf("the archive did not accept the event: %v, %v", results, err)
	}
}

// remove deletes the nth request.
func (a *account) remove(n int) {
	a.t.Helper()
	if _, err := a.archive.Delete(a.t.Context(), a.id, wire.Deletion{RequestID: a.requestID(n)}); err != nil {
		a.t.Fatal(err)
	}
}

// agrees compares the statistics of several spans of time with those computed from the rows
// that a scan finds.
func (a *account) agrees(what string) {
	a.t.Helper()
	last := a.hours[len(a.hours)-1]
	spans := [][2]int{
		{-1, last + 1},
		{0, last},
		{last / 4, last / 2},
		{last / 2, last/2 + 30},
		{last - 3, last},
	}
	for _, span := range spans {
		from := a.begin.Add(time.Duration(span[0]) * time.Hour)
		to := a.begin.Add(time.Duration(span[1]) * time.Hour)
		for _, bucket := range []string{"", "hour", "day"} {
			f := wire.Filter{Filters: []wire.Filter{
				databasetest.Condition("accepted_at", "", "gte", from),
				databasetest.Condition("accepted_at", "", "lte", to),
			}}
			q, err := query.Compile(wire.Search{FilterGroup: &f})
			if err != nil {
				a.t.Fatal(err)
			}

			var rows []wire.Row
			keep := func(row *wire.Row) (bool, error) {
				rows = append(rows, rowcode.Clone(row))
				return true, nil
			}
			if _, err := a.db.Scan(a.t.Context(), a.id.Account, q, rowcode.AllColumns, keep); err != nil {
				a.t.Fatal(err)
			}

			asked := wire.StatisticsQuery{FilterGroup: &f, Bucket: bucket}
			want, _, err := query.Statistics(rows, asked)
			if err != nil {
				a.t.Fatal(err)
			}
			got, err := a.archive.Analyze(a.t.Context(), a.id, asked)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				a.t.Fatalf("%s, hours %v, bucket %q (%v) (-want +got):\n%s", what, span, bucket, err, diff)
			}
		}
	}
}

func TestSummariesOfBlocksSayWhatTheirRowsSay(t *testing.T) {
	a := openAccount(t)
	a.log(80, 3)
	a.agrees("packed")

	a.log(60, 40)
	a.agrees("over months")

	for n := 0; n < 140; n += 9 {
		a.score(n, n%100)
	}
	a.agrees("scored late")

	a.score(0, 99)
	a.agrees("the oldest scored")

	for n := 4; n < 140; n += 23 {
		a.remove(n)
	}
	a.remove(0)
	a.remove(139)
	a.agrees("some gone")

	if err := a.db.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
