package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive/postgres"
	"promptspool/spool/archive/postgres/postgrestest"
)

// files returns migrations that follow those which the database knows. Of the known ones, only
// the names matter: their text would fail if it were executed again.
func files(t *testing.T, dsn string, more ...string) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	conn := postgrestest.Connect(t, dsn)
	rows, _ := conn.Query(context.Background(), `SELECT name FROM promptspool_schema ORDER BY number`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		f["migrations/"+name+".sql"] = &fstest.MapFile{
			Data: []byte("-- works with 1\nSELECT nothing FROM nowhere"),
		}
	}
	for i, sql := range more {
		f["migrations/"+number(len(names)+i+1)+"_more.sql"] = &fstest.MapFile{Data: []byte(sql)}
	}

	return f
}

func number(n int) string { return fmt.Sprintf("%04d", n) }

func execute(t testing.TB, dsn string, sql string) {
	t.Helper()
	if _, err := postgrestest.Connect(t, dsn).Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestServersThatStartTogetherMakeTheTablesOnce(t *testing.T) {
	dsn := postgrestest.DSN(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
			if err != nil {
				t.Error(err)
				return
			}
			_ = db.Close()
		})
	}
	wg.Wait()
}

func TestAMigrationThatFailsLeavesNothing(t *testing.T) {
	dsn := postgrestest.DSN(t)
	db := open(t, dsn)
	err := db.MigrateTo(context.Background(), files(t, dsn,
		"-- works with 1\nCREATE TABLE half (x int);\nSELECT nothing FROM nowhere;"))
	if err == nil {
		t.Fatal("a migration that fails gives no error")
	}

	// Once it is mended, it is executed from its beginning, and so is the next.
	if err := db.MigrateTo(context.Background(), files(t, dsn,
		"-- works with 1\nCREATE TABLE half (x int);",
		"-- works with 2\nALTER TABLE half ADD y int;")); err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, "INSERT INTO half (x, y) VALUES (1, 2)")
}

func TestTablesOfANewerVersionAreRefusedUnlessTheyWorkWithThis(t *testing.T) {
	dsn := postgrestest.DSN(t)
	open(t, dsn)

	// A rollout: the newer server has made its tables beside these.
	execute(t, dsn, `INSERT INTO promptspool_schema (number, name, works_with, applied_at) `+
		`VALUES (90, 'a newer one', 2, '2026-01-01')`)
	open(t, dsn)

	execute(t, dsn, `INSERT INTO promptspool_schema (number, name, works_with, applied_at) `+
		`VALUES (91, 'another', 91, '2026-01-01')`)
	_, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "Start the newer version again") {
		t.Errorf("tables of a version that this one cannot know were opened: %v", err)
	}
}

func TestTablesOfAVersionThatWasNeverReleasedAreRefused(t *testing.T) {
	dsn := postgrestest.DSN(t)
	open(t, dsn)
	execute(t, dsn, `UPDATE promptspool_schema SET name = '0001_records' WHERE number = 1`)
	_, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "requests export") {
		t.Errorf("tables of a version that was never released were opened: %v", err)
	}
}
