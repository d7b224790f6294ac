package badgerdb_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"promptspool/api/auth"
	"promptspool/api/auth/authtest"
	"promptspool/registry"
	"promptspool/registry/registrytest"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

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

func TestArchive(t *testing.T) { inEachLayout(t, databasetest.Run) }

// inEachLayout runs a suite with rows that stand alone, and with rows that are packed into
// blocks as soon as possible.
func inEachLayout(t *testing.T, run func(*testing.T, databasetest.Open)) {
	layouts := map[string]func(*badgerdb.DB){
		"rows alone": func(*badgerdb.DB) {},
		"blocks":     (*badgerdb.DB).PackEagerly,
	}
	for name, prepare := range layouts {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T) (archive.Store, func() archive.Store) {
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
			})
		})
	}
}

func TestSmallValues(t *testing.T) {
	keyedtest.Run(t, func(t *testing.T) keyed.Store { return open(t, t.TempDir()).Small() })
}

func TestRegistry(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registry.Store { return open(t, t.TempDir()) })
}

func TestAuth(t *testing.T) {
	authtest.Run(t, func(t *testing.T) auth.Store { return open(t, t.TempDir()) })
}

func TestPeople(t *testing.T) {
	authtest.RunPeople(t, func(t *testing.T) auth.PeopleStore { return open(t, t.TempDir()) })
}

func TestFleet(t *testing.T) {
	databasetest.RunFleet(t, func(t *testing.T, now func() time.Time) databasetest.Fleet {
		db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: quiet, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeChecked(t, db) })
		return db
	})
}
