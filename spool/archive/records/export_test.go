package records_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/database/databasetest"
)

func TestAnExportComesInPagesWithItsOrphansAtTheEnd(t *testing.T) {
	s := newServer(t)
	const records = 250
	for i := range records {
		e := write(2*i, wire.KindRequest, chat)
		e.RequestID = databasetest.ID(10_000 + i)
		o := write(2*i+1, wire.KindScore, `{"score":1}`)
		o.RequestID = databasetest.ID(20_000 + i)
		s.record(t, e, o)
	}

	// Each call ends at its first mark; the next continues after it.
	var ids []string
	search := wire.Search{}
	enough := wire.Errorf(wire.CodeConflict, "enough")
	calls := 0
	for done := false; !done && calls < 20; calls++ {
		err := s.ExportEvents(t.Context(), s.id, search, func(events []wire.Event) error {
			for _, e := range events {
				ids = append(ids, e.RequestID)
			}
			return nil
		}, func(cursor string) error {
			search.Cursor, done = cursor, cursor == ""
			return enough
		})
		if err != enough {
			t.Fatal(err)
		}
	}

	var want []string
	for i := range records {
		want = append(want, databasetest.ID(10_000+records-1-i)) // newest first
	}
	for i := range records {
		want = append(want, databasetest.ID(20_000+i))
	}
	if diff := cmp.Diff(want, ids); diff != "" || calls != 6 { // three pages, two of orphans, and one without spans
		t.Errorf("in %d calls (-want +got):\n%s", calls, diff)
	}
}
