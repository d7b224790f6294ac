package archive_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/badgerdb"
)

// broken is a store whose deletions break off.
type broken struct{ *badgerdb.DB }

func (broken) Delete(context.Context, string, wire.Deletion) (wire.Deleted, error) {
	return wire.Deleted{Records: 2, Events: 3}, context.DeadlineExceeded
}

func TestADeletionThatBreaksOffSaysWhatIsGone(t *testing.T) {
	a := archive.New(archive.Config{
		Store:   broken{},
		Metrics: metrics.New("server", "test"),
		Logger:  slog.New(slog.DiscardHandler),
		Now:     time.Now,
	})
	id := wire.Identity{Account: "account-a", Verified: true}
	sum, err := a.Delete(t.Context(), id, wire.Deletion{Key: "user", Value: "ann"})
	if err == nil || sum.AuditDetail() != "2 records, 3 events, incomplete" {
		t.Errorf("it says %q, %v", sum.AuditDetail(), err)
	}
}
