package postgres_test

import (
	"testing"
	"time"

	"promptspool/api/auth"
	"promptspool/api/auth/authtest"
	"promptspool/registry"
	"promptspool/registry/registrytest"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
	"promptspool/spool/database/postgres"
)

func TestSmallValues(t *testing.T) {
	keyedtest.Run(t, func(t *testing.T) keyed.Store { return open(t, empty(t)).Small() })
}

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
	databasetest.RunFleet(t, func(t *testing.T, now func() time.Time) databasetest.Fleet {
		db, err := postgres.Open(t.Context(), postgres.Config{DSN: empty(t), Logger: quiet, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	})
}
