package databasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// RunWritten checks that what a store writes for an event does not grow with the event's
// record. written returns how many bytes it has written so far.
func RunWritten(t *testing.T, s archive.Store, events int, written func() int64) {
	record, random := ID(1000), rand.New(rand.NewPCG(1, 2)) // for ids that do not compress
	apply(t, s, account, Event(t, 0, wire.KindRequest, record, requestBody("x")))
	grow := func(from, to int) (bytes int64) {
		begun := written()
		for n := from; n < to; n++ {
			e := Event(t, n+1, wire.KindScore, record, fmt.Sprintf(`{"score":%d}`, n%100))
			if n%4 == 0 {
				e = Event(t, n+1, wire.KindMetadata, record, fmt.Sprintf(`{"metadata":{"step":"%d"}}`, n))
			}
			e.ID = fmt.Sprintf("%s-%04x-%012x", ID(0)[:18], 0x8000|random.IntN(0x4000), random.Uint64N(1<<48))
			apply(t, s, account, e)
		}
		return written() - begun
	}

	// Three times as many events. If each wrote the whole record, the rest would write
	// fifteen times as much.
	first := grow(0, events/4)
	if rest := grow(events/4, events); rest > 6*first {
		t.Errorf("the first %d events wrote %d bytes, and the other %d wrote %d",
			events/4, first, events-events/4, rest)
	}

	state, _, err := s.Record(context.Background(), account, record)
	if err != nil || len(state.History) != 1+events {
		t.Errorf("the record has %d of %d events (%v)", len(state.History), 1+events, err)
	}
}
