package badgerdb

import (
	"encoding/json"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// smallRequest is a request of its own.
func smallRequest(t *testing.T) archive.Event {
	t.Helper()
	e, err := archive.Decode(wire.Event{
		ID: wire.NewID(), Kind: wire.KindRequest, RequestID: wire.NewID(), AcceptedAt: time.Now(),
		Body: json.RawMessage(`{"function_name":"f"}`),
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}

	return e
}

// Whoever writes one row does not wait while the rows of others are packed, not even if it is the one by which there are
// enough.
func TestAWriteDoesNotWaitForPacking(t *testing.T) {
	db := openIn(t, t.TempDir())
	k, err := keysOf("a")
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		if _, err := db.Apply(t.Context(), "a", []archive.Event{smallRequest(t)}); err != nil {
			t.Fatal(err)
		}
	}
	enough := func() {
		db.packMu.Lock()
		defer db.packMu.Unlock()
		db.unpacked[k] = db.packing.every - 1
	}

	db.packOne.Lock() // others are packing
	enough()
	write()
	enough()
	write()
	db.packOne.Unlock()

	// A batch is: its rows are what there is to pack.
	db.packers.Wait()
	var batch []archive.Event
	for range db.packing.every / packedByFew {
		batch = append(batch, smallRequest(t))
	}
	db.packOne.Lock()
	enough()
	done := make(chan error)
	go func() {
		_, err := db.Apply(t.Context(), "a", batch)
		done <- err
	}()
	reached := func() bool {
		db.packMu.Lock()
		defer db.packMu.Unlock()
		return db.unpacked[k] == 0
	}
	for !reached() {
		select {
		case err := <-done:
			t.Fatalf("a batch did not wait for packing: %v", err)
		default:
		}
	}
	db.packOne.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
