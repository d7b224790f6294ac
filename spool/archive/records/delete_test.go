package records_test

import (
	"context"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// broken is a store in which the search for more to delete breaks off.
type broken struct{ *badgerdb.DB }

func (b broken) Having(
	ctx context.Context, account string, d wire.Deletion, after string,
) (ids []string, next string, err error) {
	if after != "" {
		return nil, "", context.DeadlineExceeded
	}
	ids, _, err = b.DB.Having(ctx, account, d, after)
	return ids, "more", err
}

func TestADeletionThatBreaksOffSaysWhatIsGone(t *testing.T) {
	db := openStore(t)
	s := serverOver(broken{db})
	e := databasetest.Event(t, 1, wire.KindRequest, databasetest.ID(1),
		`{"function_name":"f","metadata":{"user":"ann"}}`)
	if _, err := db.Apply(t.Context(), s.id.Account, []archive.Event{e}); err != nil {
		t.Fatal(err)
	}

	sum, err := s.Delete(t.Context(), s.id, wire.Deletion{Key: "user", Value: "ann"})
	if err == nil || sum.AuditDetail() != "1 record, 1 event, incomplete" {
		t.Errorf("it says %q, %v", sum.AuditDetail(), err)
	}
}
