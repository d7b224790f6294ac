package postgres_test

import (
	"testing"
	"time"

	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
	"promptspool/spool/database/postgres"
)

// What only accounts.Store makes of these values has its suites there.
func TestSmallValues(t *testing.T) {
	keyedtest.Run(t, func(t *testing.T) keyed.Store { return open(t, postgres.Reused(t)).Small() })
}

func TestFleet(t *testing.T) {
	databasetest.RunFleet(t, func(t *testing.T, now func() time.Time) databasetest.Fleet {
		db, err := postgres.Open(t.Context(), postgres.Config{DSN: postgres.Reused(t), Logger: quiet, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	})
}
