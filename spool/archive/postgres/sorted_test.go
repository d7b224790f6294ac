package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/postgrestest"
	"promptspool/spool/archive/query"
)

// An earlier version made summaries without tops. A sorted list is the same without them.
func TestSummariesOfAnEarlierVersionGetTheirTops(t *testing.T) {
	dsn := empty(t)
	db := at(t, dsn, monday.Add(time.Hour))
	db.InSmallSteps()
	var batch []archive.Event
	for n := range 12 {
		id := idAt(monday.Add(time.Duration(n)*time.Minute), n)
		body := fmt.Sprintf(`{"function_name":"f","status":%q}`, []string{"SUCCESS", "ERROR"}[n%2])
		batch = append(batch, eventAt(t, monday.Add(time.Duration(n)*time.Minute), wire.KindRequest, id, n, body))
	}
	apply(t, db, batch...)

	sorted := func() (ids []string) {
		t.Helper()
		q, err := query.Compile(wire.Search{SortBy: "status", PerPage: 8})
		if err != nil {
			t.Fatal(err)
		}
		page, err := db.Search(t.Context(), account, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			ids = append(ids, row.RequestID)
		}
		return ids
	}
	without := func() (n int) {
		t.Helper()
		if err := postgrestest.Connect(t, dsn).QueryRow(t.Context(),
			`SELECT count(*) FROM summaries WHERE tops IS NULL`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	if err := db.SummarizeAccount(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	want := sorted()
	execute(t, dsn, `UPDATE summaries SET tops = NULL`)
	if n := without(); n < 3 {
		t.Fatalf("%d summaries have no tops, so the test proves nothing", n)
	}
	if diff := cmp.Diff(want, sorted()); diff != "" {
		t.Errorf("without tops (-want +got):\n%s", diff)
	}

	// A summary that does not cover its rows, as if another server had just made it, is left.
	var second int64
	if err := postgrestest.Connect(t, dsn).QueryRow(t.Context(),
		`SELECT newest FROM summaries ORDER BY newest DESC OFFSET 1 LIMIT 1`).Scan(&second); err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, fmt.Sprintf(`UPDATE summaries SET row_count = row_count + 1 WHERE newest = %d`, second))
	if err := db.Summarize(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := without(); n != 1 {
		t.Errorf("%d summaries have no tops, want the one that does not cover its rows", n)
	}
	if diff := cmp.Diff(want, sorted()); diff != "" {
		t.Errorf("with a summary without tops between others (-want +got):\n%s", diff)
	}

	execute(t, dsn, fmt.Sprintf(`UPDATE summaries SET row_count = row_count - 1 WHERE newest = %d`, second))
	if err := db.Summarize(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := without(); n > 0 {
		t.Errorf("%d summaries have no tops", n)
	}
	if diff := cmp.Diff(want, sorted()); diff != "" {
		t.Errorf("with new tops (-want +got):\n%s", diff)
	}
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
