package postgres_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
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

// checked opens a database and checks that it agrees with itself when the test ends.
func checked(t testing.TB, dsn string) *postgres.DB {
	t.Helper()
	db := open(t, dsn)
	t.Cleanup(func() {
		if err := db.Check(context.Background()); err != nil {
			t.Errorf("Check: %v", err)
		}
	})
	return db
}

func TestArchive(t *testing.T) { databasetest.Run(t, openEmpty) }

// openEmpty opens a store for a scene, on a database of its own.
func openEmpty(t *testing.T) (archive.Store, func() archive.Store) {
	dsn := postgres.Reused(t)
	return openSummed(t, dsn), func() archive.Store { return openSummed(t, dsn) }
}

// summed is a database that summarises everything immediately, so that small scenes meet
// summaries.
type summed struct{ *postgres.DB }

func openSummed(t *testing.T, dsn string) summed {
	db := checked(t, dsn)
	db.InSmallSteps()
	return summed{db}
}

func (s summed) Apply(ctx context.Context, account string, events []archive.Event) ([]wire.Result, error) {
	results, err := s.DB.Apply(ctx, account, events)
	// The scenes of this one account have many records, or few.
	if random := account != "account-a"; err == nil && random {
		err = s.SummarizeAccount(ctx, account)
	}
	return results, err
}
