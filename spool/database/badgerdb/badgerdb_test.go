package badgerdb_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
	"promptspool/spool/disk/disktest"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	badgerdb.CloseWithin(300 * time.Millisecond)
	os.Exit(m.Run())
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// open opens a database that is checked and closed when the test ends.
func open(t *testing.T, dir string) *badgerdb.DB {
	t.Helper()
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeChecked(t, db) })

	return db
}

// closeChecked checks that the database is consistent, and closes it.
func closeChecked(t *testing.T, db *badgerdb.DB) {
	t.Helper()
	if err := db.Check(context.Background()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestArchiveOfManyWriters(t *testing.T) {
	databasetest.RunWriters(t, openWith((*badgerdb.DB).PackEagerly))
}

// openWith opens databases for a suite. Rows stand alone, unless they are packed into blocks
// as soon as possible.
func openWith(prepare func(*badgerdb.DB)) databasetest.Open {
	return func(t *testing.T) (archive.Store, func() archive.Store) {
		dir := t.TempDir()
		db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		prepare(db)
		t.Cleanup(func() { closeChecked(t, db) })

		return db, func() archive.Store {
			closeChecked(t, db)
			if db, err = badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet}); err != nil {
				t.Fatal(err)
			}
			prepare(db)
			return db
		}
	}
}

func TestAlerts(t *testing.T) {
	db := open(t, t.TempDir())
	db.PackEagerly()
	databasetest.RunAlerts(t, db)
}

// What only accounts.Store makes of these values has its suites there.
func TestSmallValues(t *testing.T) {
	keyedtest.Run(t, func(t *testing.T) keyed.Store { return open(t, t.TempDir()).Small() })
}

func TestSpansGoWithTheRetention(t *testing.T) {
	databasetest.RunSpanRetention(t, func(now time.Time) archive.Store {
		db, err := badgerdb.Open(badgerdb.Config{
			Dir:    t.TempDir(),
			Logger: quiet,
			Now:    func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeChecked(t, db) })
		return db
	})
}

// mustApply folds events of an account.
func mustApply(t testing.TB, db *badgerdb.DB, account string, events ...archive.Event) {
	t.Helper()
	if _, err := db.Apply(t.Context(), account, events); err != nil {
		t.Fatal(err)
	}
}
