//go:build !race

package badgerdb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// counted is the account "a", of whose records statistics are asked.
type counted struct {
	*testing.T
	db    *badgerdb.DB
	seed  *rand.Rand
	hours []int // of each request, since databasetest.Start
}

func requestID(n int) string { return databasetest.ID(100_000_000 + n) }

func (c *counted) apply(hour int, kind wire.Kind, request int, body string) {
	c.Helper()
	e := databasetest.Event(c, hour*3600+request, kind, requestID(request), body)
	mustApply(c, c.db, "a", e)
}

// log logs n requests, some hours apart, each with a metadata value of its own.
func (c *counted) log(n, hoursMax int) {
	c.Helper()
	hour := 0
	if len(c.hours) > 0 {
		hour = c.hours[len(c.hours)-1]
	}
	for range n {
		hour += c.seed.IntN(hoursMax)
		i := len(c.hours)
		usage := "null"
		if c.seed.IntN(2) == 0 {
			usage = fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":7}`, 10+c.seed.IntN(100))
		}
		c.apply(hour, wire.KindRequest, i, fmt.Sprintf(`{"function_name":"openai.chat.completions.create",`+
			`"kwargs":{"model":"gpt-4o"},`+
			`"request_response":{"model":%q,"usage":%s},`+
			`"request_start_time":1000,"request_end_time":%d,"status":%q,"tags":["tag-%d"],`+
			`"metadata":{"user":"user-%d","session":"%d"},"prompt_id":"template-%d","prompt_version":1}`,
			[]string{"gpt-4o", "gpt-4o-mini"}[c.seed.IntN(2)], usage, 1000+c.seed.IntN(20),
			[]string{"SUCCESS", "SUCCESS", "ERROR"}[c.seed.IntN(3)], c.seed.IntN(3), c.seed.IntN(4), i, c.seed.IntN(3)))
		c.hours = append(c.hours, hour)
	}
}

// agrees compares the statistics of several spans of time with those of the rows that a scan
// finds.
func (c *counted) agrees(what string) {
	c.Helper()
	last := c.hours[len(c.hours)-1]
	for _, span := range [][2]int{
		{-1, last + 1}, {0, last}, {last / 4, last / 2}, {last / 2, last/2 + 30}, {last - 3, last},
	} {
		at := func(hour int) time.Time { return databasetest.Start.Add(time.Duration(hour) * time.Hour) }
		asked := wire.StatisticsQuery{FilterGroup: &wire.Filter{Filters: []wire.Filter{
			databasetest.Condition("accepted_at", "", "gte", at(span[0])),
			databasetest.Condition("accepted_at", "", "lte", at(span[1])),
		}}}
		q, err := query.Compile(wire.Search{FilterGroup: asked.FilterGroup})
		if err != nil {
			c.Fatal(err)
		}
		rows := c.rows(q)
		for _, asked.Bucket = range []string{"", "hour", "day"} {
			want, _, err := databasetest.Statistics(rows, asked)
			if err != nil {
				c.Fatal(err)
			}
			if diff := cmp.Diff(want, c.sums(asked)); diff != "" {
				c.Fatalf("%s, hours %v, bucket %q (-want +got):\n%s", what, span, asked.Bucket, diff)
			}
		}
	}
}

// rows returns the rows that a scan finds.
func (c *counted) rows(q query.Query) (rows []wire.Row) {
	c.Helper()
	keep := func(row *wire.Row) (bool, error) {
		rows = append(rows, rowcode.Clone(row))
		return true, nil
	}
	if _, err := c.db.Scan(c.Context(), "a", q, rowcode.AllColumns, keep); err != nil {
		c.Fatal(err)
	}
	return rows
}

// sums returns the statistics that the database answers.
func (c *counted) sums(asked wire.StatisticsQuery) wire.Analytics {
	c.Helper()
	a := records.New(records.Config{
		Store:   c.db,
		Metrics: metrics.New("server", "test"),
		Logger:  quiet,
		Now:     func() time.Time { return databasetest.Start.Add(1e4 * time.Hour) },
	})
	sums, err := a.Analyze(c.Context(), wire.Identity{Account: "a"}, asked)
	if err != nil {
		c.Fatal(err)
	}
	return sums
}

func (c *counted) checks(what string) {
	c.Helper()
	if err := c.db.Check(c.Context()); err != nil {
		c.Errorf("%s: %v", what, err)
	}
}

func TestSummariesOfBlocksSayWhatTheirRowsSay(t *testing.T) {
	c := &counted{T: t, db: open(t, t.TempDir()), seed: rand.New(rand.NewPCG(1, 2))}
	c.db.PackEagerly()
	c.log(80, 3)
	c.agrees("packed")

	c.log(60, 40)
	c.agrees("over months")

	for n := 0; n < 140; n += 9 {
		c.apply(2000, wire.KindScore, n, fmt.Sprintf(`{"score":%d}`, n%100))
	}
	c.agrees("scored late")

	c.apply(2001, wire.KindScore, 0, `{"score":99}`)
	c.agrees("the oldest scored")

	for _, n := range []int{4, 27, 50, 73, 96, 119, 0, 139} {
		if _, err := archive.Delete(t.Context(), c.db, "a", wire.Deletion{RequestID: requestID(n)}); err != nil {
			t.Fatal(err)
		}
	}
	c.agrees("some gone")
}

// A block of an earlier version counts no failed calls without tokens, until it is made again.
func TestSummariesOfBeforeLackACount(t *testing.T) {
	c := &counted{T: t, db: open(t, t.TempDir()), seed: rand.New(rand.NewPCG(3, 4))}
	c.db.PackEagerly()
	c.log(80, 3)
	c.db.AgeBlocks(t)
	c.checks("aged")
	now := func(rows []wire.Row) wire.Totals {
		sums, _, err := databasetest.Statistics(rows, wire.StatisticsQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return sums.Overall
	}

	want := now(c.rows(query.Query{}))
	before := c.sums(wire.StatisticsQuery{Bucket: "day"}).Overall
	if want.Unbilled < 10 || before.Unbilled > 5 || before.Unpriced+before.Unbilled != want.Unpriced+want.Unbilled {
		t.Errorf("of %d and %d calls, %d and %d are counted",
			want.Unpriced, want.Unbilled, before.Unpriced, before.Unbilled)
	}

	// Of a block in which a row is hidden, all rows are counted one by one.
	rows := c.rows(query.Query{})
	hidden := slices.IndexFunc(rows[20:], func(r wire.Row) bool { return r.Status == "ERROR" && r.InputTokens == nil })
	mustApply(t, c.db, "a", databasetest.Event(t, 9e6, wire.KindScore, rows[20+hidden].RequestID, `{"score":50}`))
	after := c.sums(wire.StatisticsQuery{Bucket: "day"}).Overall
	if after.Unbilled <= before.Unbilled || after.Unpriced+after.Unbilled != want.Unpriced+want.Unbilled {
		t.Errorf("with a hidden row, %d and %d are counted", after.Unpriced, after.Unbilled)
	}

	c.db.Renew(t.Context())
	c.agrees("renewed")
	c.checks("renewed")
}
