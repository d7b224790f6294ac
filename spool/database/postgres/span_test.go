package postgres_test

import (
	"testing"
	"time"

	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
)

func TestSpansGoWithTheRetention(t *testing.T) {
	databasetest.RunSpanRetention(t, func(now time.Time) archive.Store { return at(t, postgres.Empty(t), now) })
}

// Whatever the database answers, nothing of it may end the server.
func TestALookAtSpansThatFailsIsAnError(t *testing.T) {
	dsn := postgres.Empty(t)
	db := open(t, dsn)
	execute(t, dsn, `ALTER TABLE record_states RENAME COLUMN span_at TO gone`)

	states, next, err := db.OffList(t.Context(), account, archive.TaggedSpans, "", 10)
	if err == nil || len(states) > 0 || next != "" {
		t.Errorf("it found %d spans, and more behind %q, %v", len(states), next, err)
	}
}
