package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

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

func TestTablesAreMadeWholeOrNotAtAll(t *testing.T) {
	dsn := postgrestest.DSN(t)
	execute(t, dsn, `CREATE TABLE small_values (of_somebody_else int)`) // the last that is made
	if db, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet}); err == nil {
		_ = db.Close()
		t.Fatal("a table is there already, and gives no error")
	}

	execute(t, dsn, `DROP TABLE small_values`)
	open(t, dsn)
}

func TestTablesOfAnotherVersionAreRefused(t *testing.T) {
	dsn := postgrestest.DSN(t)
	open(t, dsn)
	execute(t, dsn, `UPDATE promptspool_schema SET number = 17`)
	_, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "schema 17") || !strings.Contains(err.Error(), "requests export") {
		t.Errorf("tables of another version: %v", err)
	}
}
