package badgerdb

import (
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
)

// A deletion by metadata looks at every span with metadata. Whatever stops it there, the
// requests are gone.
func TestADeletionThatFailsAtASpanHasDeletedTheRequests(t *testing.T) {
	db := harmed(t)
	span, request := archivetest.ID(1001), archivetest.ID(1002)
	_, err := db.Apply(t.Context(), "a", []archive.Event{
		archivetest.Event(t, 4, wire.KindMetadata, span, `{"metadata":{"user":"bob"}}`),
		archivetest.Event(t, 5, wire.KindRequest, request, `{"function_name":"f","metadata":{"user":"ann"}}`),
	})
	if err != nil {
		t.Fatal(err)
	}

	k, _ := keysOf("a")
	id, _ := parseUUID(span)
	err = db.commit.do(t.Context(), 0, func(*badger.Txn) ([]write, error) {
		return []write{{k.record(id), []byte("{")}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	before := archivetest.Start.Add(time.Hour)
	sum, err := db.Delete(t.Context(), "a", wire.Deletion{Key: "user", Value: "ann", Before: before})
	if err == nil || sum.Records != 1 {
		t.Errorf("a deletion that fails at a span deleted %d requests, want 1, %v", sum.Records, err)
	}
}
