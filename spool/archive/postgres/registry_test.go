package postgres_test

import (
	"context"
	"testing"
	"time"

	"promptspool/api/auth"
	"promptspool/api/auth/authtest"
	"promptspool/registry"
	"promptspool/registry/registrytest"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/badgerdb"
	"promptspool/spool/archive/postgres"
)

func TestRegistry(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registry.Store { return open(t, empty(t)) })
}

func TestAuth(t *testing.T) {
	authtest.Run(t, func(t *testing.T) auth.Store { return open(t, empty(t)) })
}

func TestPeople(t *testing.T) {
	authtest.RunPeople(t, func(t *testing.T) auth.PeopleStore { return open(t, empty(t)) })
}

func TestFleet(t *testing.T) {
	archivetest.RunFleet(t, func(t *testing.T, now func() time.Time) archivetest.Fleet {
		db, err := postgres.Open(t.Context(), postgres.Config{DSN: empty(t), Logger: quiet, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	})
}

func TestMove(t *testing.T) {
	here := func(t *testing.T) archivetest.Server {
		db := open(t, empty(t))
		t.Cleanup(func() {
			if err := db.Check(context.Background()); err != nil {
				t.Errorf("Check: %v", err)
			}
		})
		return db
	}
	inFolder := func(t *testing.T) archivetest.Server {
		db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Check(context.Background()); err != nil {
				t.Errorf("Check: %v", err)
			}
			_ = db.Close()
		})
		return db
	}
	t.Run("from Badger", func(t *testing.T) { archivetest.RunMove(t, inFolder, here) })
	t.Run("to Badger", func(t *testing.T) { archivetest.RunMove(t, here, inFolder) })
}
