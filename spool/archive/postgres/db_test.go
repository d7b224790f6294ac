package postgres_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"

	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/postgres"
	"promptspool/spool/archive/postgres/postgrestest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// open opens a database for one test.
func open(t testing.TB, dsn string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestOpeningMakesTheTablesOnce(t *testing.T) {
	dsn := postgrestest.DSN(t)
	open(t, dsn)
	open(t, dsn)
}

func TestArchive(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) (archive.Store, func() archive.Store) {
		dsn := postgrestest.DSN(t)
		db := open(t, dsn)
		return db, func() archive.Store {
			if err := db.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			return open(t, dsn)
		}
	})
}
