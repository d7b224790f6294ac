package records_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
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
	mustApply(t, db, s.id.Account, e)

	sum, err := s.Delete(t.Context(), s.id, wire.Deletion{Key: "user", Value: "ann"})
	if err == nil || sum.AuditDetail() != "1 record, 1 event, incomplete" {
		t.Errorf("it says %q, %v", sum.AuditDetail(), err)
	}
}

// scanned is a store that notices if it is asked for a record while a scan runs.
type scanned struct {
	*badgerdb.DB
	scanning, asked atomic.Bool
}

func (s *scanned) Scan(ctx context.Context, account string, q query.Query, want rowcode.Columns,
	fn func(row *wire.Row) (bool, error)) (*query.Position, error) {
	s.scanning.Store(true)
	defer s.scanning.Store(false)

	return s.DB.Scan(ctx, account, q, want, fn)
}

func (s *scanned) Record(ctx context.Context, account, requestID string) (archive.State, json.RawMessage, error) {
	s.asked.Store(s.asked.Load() || s.scanning.Load())

	return s.DB.Record(ctx, account, requestID)
}

// A store that waits for exclusive access waits for the scan. If the scan waited for a record,
// and the record for the store, nothing would be read or written any more.
func TestNoRecordIsReadWithinAScan(t *testing.T) {
	store := &scanned{DB: openStore(t)}
	s := serverOver(store)

	// More than are read at a time.
	var events []wire.Event
	for n := range 150 {
		e := write(n, wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{"choices":[`+
			`{"message":{"role":"assistant","content":"{\"v\":\"`+databasetest.ID(n)+`\"}"}}]}}`)
		e.RequestID = databasetest.ID(1000 + n)
		events = append(events, e)
	}
	s.record(t, events...)

	got, err := s.Suggest(t.Context(), s.id, wire.SuggestQuery{Field: "output", Key: "v", Prefix: "0"})
	if err != nil || len(got.Values) == 0 || !got.Complete && len(got.Values) < 10 {
		t.Errorf("Suggest returns %+v, %v", got, err)
	}
	if store.asked.Load() {
		t.Error("the store was asked for a record during a scan")
	}
}
