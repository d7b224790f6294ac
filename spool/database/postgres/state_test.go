package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/postgres"
)

func TestAPageOfOrphansIsBoundedByBytes(t *testing.T) {
	const orphans = 6
	db := checked(t, postgres.Empty(t))
	db.InSmallSteps() // two of these are too many for a page
	for n := range orphans {
		id := idAt(monday, n)
		apply(t, db, eventAt(t, monday, wire.KindMetadata, id, n,
			`{"request_id":"`+id+`",`+
				`"metadata":{"a":"`+strings.Repeat("x", 1000)+`","b":"`+strings.Repeat("y", 1000)+`"}}`))
	}

	found, pages := 0, 0
	for after, more := "", true; more; pages++ {
		states, next, err := db.OffList(context.Background(), account, archive.Orphaned, after, 100)
		if err != nil || len(states) == 0 || len(states) > 2 {
			t.Fatalf("a page has %d orphans (%v)", len(states), err)
		}
		found += len(states)
		after, more = next, next != ""
	}
	if found != orphans {
		t.Errorf("%d pages have %d orphans, want %d", pages, found, orphans)
	}

	d := wire.Deletion{Key: "a", Value: strings.Repeat("x", 1000), Before: monday.Add(time.Hour)}
	if sum, err := archive.Delete(context.Background(), db, account, d); err != nil || sum.Records != orphans {
		t.Errorf("%d of %d are deleted (%v)", sum.Records, orphans, err)
	}
}
