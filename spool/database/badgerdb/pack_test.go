package badgerdb

import (
	"encoding/json"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/databasetest"
)

// smallRequest returns a small request with an id of its own.
func smallRequest(t *testing.T) archive.Event {
	t.Helper()
	e, err := archive.Decode(wire.Event{
		ID:         wire.NewID(),
		Kind:       wire.KindRequest,
		RequestID:  wire.NewID(),
		AcceptedAt: time.Now(),
		Body:       json.RawMessage(`{"function_name":"f"}`),
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}

	return e
}

// The writer of a single row does not wait while other rows are packed, even if its row
// completes a block.
func TestAWriteDoesNotWaitForPacking(t *testing.T) {
	db := openIn(t, t.TempDir())
	k := keysOf("a")

	write := func() {
		t.Helper()
		mustApply(t, db, "a", smallRequest(t))
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

	// The writer of a batch waits: the rows to pack are its own.
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

func TestASearchOfTextsEndsWithItsTimeAndGoesOn(t *testing.T) {
	db := openIn(t, t.TempDir())
	db.PackEagerly()
	const n = 40
	for i := range n {
		e := databasetest.Event(t, i, wire.KindRequest, databasetest.ID(1000+i),
			`{"function_name":"openai.chat.completions.create",`+
				`"kwargs":{"messages":[{"role":"user","content":"needle"}]}}`)
		if i > 0 {
			e = databasetest.Event(t, i, wire.KindRequest, databasetest.ID(1000+i), `{"function_name":"f"}`)
		}
		mustApply(t, db, "a", e)
	}

	q, err := query.Compile(wire.Search{FilterGroup: new(databasetest.Condition("text", "", "contains", "eedl"))})
	if err != nil {
		t.Fatal(err)
	}
	q.Budget = time.Nanosecond

	for steps := 1; steps <= n; steps++ {
		page, err := db.Search(t.Context(), "a", q)
		if err != nil {
			t.Fatal(err)
		}
		if page.Stopped == nil {
			if len(page.Rows) != 1 || page.Rows[0].RequestID != databasetest.ID(1000) || steps == 1 {
				t.Errorf("after %d steps the search found %+v", steps, page.Rows)
			}
			return
		}
		if q.After != nil && q.After.Compare(*page.Stopped) >= 0 {
			t.Fatalf("the search stopped at %v, and the time before at %v", page.Stopped, q.After)
		}
		if len(page.Rows) > 0 {
			return // found, and stopped after it
		}
		q.After = page.Stopped
	}
	t.Error("the search never ends")
}
