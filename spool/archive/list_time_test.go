package archive_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/badgerdb"
)

// overtaken is a store whose records move past the first deletion.
type overtaken struct {
	*badgerdb.DB
	deletions int
}

func (s *overtaken) Delete(ctx context.Context, account string, d wire.Deletion) (wire.Deleted, error) {
	if s.deletions++; s.deletions == 1 {
		return wire.Deleted{}, nil
	}
	return s.DB.Delete(ctx, account, d)
}

func TestADeletionFindsRecordsThatAreMovedMeanwhile(t *testing.T) {
	db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := &overtaken{DB: db}
	a := archive.New(archive.Config{
		Store:   s,
		Metrics: metrics.New("server", "test"),
		Logger:  slog.New(slog.DiscardHandler),
		Now:     func() time.Time { return archivetest.Start.Add(time.Hour) },
	})

	id := wire.Identity{Account: "account-a", Verified: true}
	e := write(1, wire.KindRequest, `{"function_name":"f","metadata":{"user":"ann"}}`)
	if _, err := a.Record(t.Context(), id, []wire.Event{e}); err != nil {
		t.Fatal(err)
	}
	d := wire.Deletion{Key: "user", Value: "ann"}
	if sum, err := a.Delete(t.Context(), id, d); err != nil || sum.Records != 1 {
		t.Errorf("%+v was deleted (%v)", sum, err)
	}

	// Once all records have their places, one walk is enough.
	if err := s.SetRenewal(t.Context(), archive.Renewal{Form: archive.FormNow, Done: true}); err != nil {
		t.Fatal(err)
	}
	s.deletions = 0
	if _, err := a.Delete(t.Context(), id, d); err != nil || s.deletions != 1 {
		t.Errorf("%d deletions (%v)", s.deletions, err)
	}
}

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
