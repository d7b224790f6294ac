//go:build !race

package postgres_test

import (
	"context"
	"testing"

	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

func TestLargeArchive(t *testing.T) {
	databasetest.RunLarge(t, func(t *testing.T) (archive.Store, func() archive.Store) {
		dsn := postgres.Empty(t)
		return checked(t, dsn), func() archive.Store { return checked(t, dsn) }
	})
}

func TestArchive(t *testing.T) { databasetest.Run(t, openEmpty) }

func TestArchiveDrawn(t *testing.T) {
	databasetest.RunDrawn(t, databasetest.PackingBodies(openEmpty), 5)
}

// A copy to and from another kind of database is in the end-to-end tests.
func TestMove(t *testing.T) {
	here := func(t *testing.T) databasetest.Server { return checked(t, postgres.Reused(t)) }
	databasetest.RunMove(t, here, here)
}

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

func TestNothingOfADeletedSessionIsLeftInTheTables(t *testing.T) {
	dsn := postgres.Empty(t)
	db := checked(t, dsn)
	databasetest.RunLargeSession(t, db, 2000)
	// What record_calls keeps until its week goes has no content.
	for _, table := range []string{
		"record_states", "record_deltas", "records", "record_bodies", "rollups", "rollup_totals",
	} {
		left := 0
		err := postgrestest.Connect(t, dsn).QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&left)
		if err != nil || left > 0 {
			t.Errorf("%d rows of %s are left, %v", left, table, err)
		}
	}
}

func TestUsageIsWhatStatisticsSay(t *testing.T) {
	dsn := postgres.Empty(t)
	var db *postgres.DB
	databasetest.RunUsage(t, 10, func(usage *metrics.Usage) archive.Store {
		if db != nil {
			_ = db.Close()
		}
		var err error
		db, err = postgres.Open(t.Context(), postgres.Config{DSN: dsn, Logger: quiet, Usage: usage})
		if err != nil {
			t.Fatal(err)
		}
		return db
	})
	_ = db.Close()
}
