package postgres_test

import (
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
)

func TestSpansGoWithTheRetention(t *testing.T) {
	databasetest.RunSpanRetention(t, func(now time.Time) archive.Store { return at(t, postgres.Empty(t), now) })
}

// A deletion by metadata looks at every span with metadata. Whatever stops it there, the
// requests are gone.
func TestADeletionThatFailsAtASpanHasDeletedTheRequests(t *testing.T) {
	dsn := postgres.Empty(t)
	db := open(t, dsn)
	span := idAt(monday, 1)
	apply(t, db,
		eventAt(t, monday, wire.KindSpan, span, 1, databasetest.SpanBody(strings.Repeat("ab", 16), 1, "step")),
		eventAt(t, monday, wire.KindMetadata, span, 2, `{"metadata":{"user":"bob"}}`),
		eventAt(t, monday, wire.KindRequest, idAt(monday, 2), 3, `{"function_name":"f","metadata":{"user":"ann"}}`))
	execute(t, dsn, `UPDATE record_states SET state = '' WHERE request_id = '`+span+`'`)

	sum, err := archive.Delete(t.Context(), db, account,
		wire.Deletion{Key: "user", Value: "ann", Before: monday.Add(time.Hour)})
	if err == nil || sum.Records != 1 {
		t.Errorf("a deletion that fails at a span deleted %d requests, want 1, %v", sum.Records, err)
	}
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
