package proxy

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"promptspool/metrics"
	"promptspool/spool/queue"
)

func TestWhileTheServerIsAwayOnlyWhatIsOnItsWayIsInMemory(t *testing.T) {
	now := time.Now()
	d := &dispatch{
		Forwarder: &Forwarder{sender: &sender{reach: new(reach)}},
		ledger:    newLedger(1),
		queues:    map[uint32]*keyQueue{},
		inFlight:  1,
	}
	for seq := uint64(1); seq <= 6; seq++ {
		d.ledger.tail = seq + 1
		d.admit(now, d.queue(uint32(seq%2)), queue.Entry{Seq: seq, Data: make([]byte, 100)})
	}

	if d.inMemory != 600 {
		t.Fatalf("%d bytes are in memory, want 600", d.inMemory)
	}

	d.reach.away.Store(true)
	d.read(context.Background(), now)
	if d.inMemory != 0 || d.reading || d.waiting {
		t.Errorf("%d bytes are in memory; reading: %v, waiting: %v", d.inMemory, d.reading, d.waiting)
	}

	for key, q := range d.queues {
		if due, _ := q.due(now); len(q.events) > 0 || len(due) != 1 || due[0].high != due[0].low+4 {
			t.Errorf("of key %d %d events are in memory, and to be read again are %+v", key, len(q.events), due)
		}
	}
}

// The newest generation of the spool is gone. Its events can never be read, and nothing is
// written that would take their place.
func TestAReadingOfWhatIsLostHoldsUpNoOther(t *testing.T) {
	config := queue.Config{
		Dir:             t.TempDir(),
		GenerationBytes: 900, // a few events
		Metrics:         metrics.New("sidecar", "test"),
		Logger:          slog.New(slog.DiscardHandler),
	}
	spool, err := queue.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := spool.Append(7, []byte("event")); err != nil {
			t.Fatal(err)
		}
	}
	if err := spool.Close(); err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(config.Dir, "gen-*"))
	if err != nil || len(folders) < 2 {
		t.Fatalf("%d generations, %v", len(folders), err)
	}
	if err := os.RemoveAll(slices.Max(folders)); err != nil {
		t.Fatal(err)
	}
	if spool, err = queue.Open(config); err != nil {
		t.Fatal(err)
	}
	defer spool.Close()

	d := newDispatch(&Forwarder{sender: &sender{spool: spool, reach: new(reach), pacer: newPacer(spool.Next)}})
	kept := 0
	for d.ledger.tail < spool.Next() {
		now := time.Now()
		d.readTailAt = now
		d.read(t.Context(), now)
		if !d.reading {
			t.Fatalf("nothing is read at %d of %d", d.ledger.tail, spool.Next())
		}

		r := <-d.readings
		kept += len(r.events)
		if err := d.receive(t.Context(), now, r); err != nil {
			t.Fatal(err)
		}
	}
	if kept == 0 || kept == 10 || d.ledger.tail != 11 {
		t.Errorf("%d events were read, and the tail is at %d", kept, d.ledger.tail)
	}
}
