package proxy

import (
	"context"
	"testing"
	"time"

	"promptspool/spool"
)

func TestWhileTheServerIsAwayOnlyWhatIsOnItsWayIsInMemory(t *testing.T) {
	now := time.Now()
	d := &dispatch{reach: new(reach), ledger: newLedger(1), queues: map[uint32]*queue{}, inFlight: 1}
	for seq := uint64(1); seq <= 6; seq++ {
		d.ledger.tail = seq + 1
		d.admit(now, d.queue(uint32(seq%2)), spool.Entry{Seq: seq, Data: make([]byte, 100)})
	}

	if d.inMemory != 600 {
		t.Fatalf("%d bytes are in memory, want 600", d.inMemory)
	}

	d.reach.away.Store(true)
	d.read(context.Background(), now)
	if d.inMemory != 0 || d.readingTail || d.rereading {
		t.Errorf("%d bytes are in memory, reading: %v, %v", d.inMemory, d.readingTail, d.rereading)
	}

	for key, q := range d.queues {
		if due, _ := q.due(now); len(q.events) > 0 || len(due) != 1 || due[0].high != due[0].low+4 {
			t.Errorf("of key %d %d events are in memory, and to be read again are %+v", key, len(q.events), due)
		}
	}
}
