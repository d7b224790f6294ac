package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

// walBytes returns how many bytes of write-ahead log the server has ever written, and the workers
// of a Citus.
func walBytes(t testing.TB, dsn string) (all int64) {
	for _, node := range nodes(t, dsn) {
		var n int64
		err := postgrestest.Connect(t, node).QueryRow(context.Background(),
			`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		all += n
	}

	return all
}

// nodes returns the connection strings of the workers of a Citus, and of the server itself.
func nodes(t testing.TB, dsn string) []string { return append(postgrestest.Workers(t, dsn), dsn) }

// It must not run in parallel with other tests, which write to the same server.
func TestALargeRecordIsNotWrittenWithEachEvent(t *testing.T) {
	dsn := postgres.Empty(t)
	db := checked(t, dsn)
	for _, node := range nodes(t, dsn) {
		execute(t, node, `CHECKPOINT`)
	}
	databasetest.RunWritten(t, db, 400, func() int64 { return walBytes(t, dsn) })
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
		states, next, err := db.OffList(context.Background(), account, archive.Orphaned, after, 100)
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
