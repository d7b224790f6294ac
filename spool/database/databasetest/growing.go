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
	g := newGrowing(t, s)

	begun := written()
	g.grow(t, events/4)
	first := written() - begun
	g.grow(t, events-events/4)
	rest := written() - begun - first

	// Three times as many events. If each wrote the whole record, the rest would write
	// fifteen times as much.
	if rest > 6*first {
		t.Errorf("the first %d events wrote %d bytes, and the other %d wrote %d",
			events/4, first, events-events/4, rest)
	}

	state, _, err := s.Record(context.Background(), account, g.record)
	if err != nil || len(state.History) != 1+events {
		t.Errorf("the record has %d of %d events (%v)", len(state.History), 1+events, err)
	}
}

// WriteScores writes events of one record, mostly scores, one by one.
func WriteScores(b *testing.B, s archive.Store, events int) {
	newGrowing(b, s).grow(b, events)
}

// growing is a record that gets small events, one by one.
type growing struct {
	store  archive.Store
	record string
	random *rand.Rand // for ids that do not compress
	n      int
}

func newGrowing(t testing.TB, s archive.Store) *growing {
	g := &growing{store: s, record: ID(1000), random: rand.New(rand.NewPCG(1, 2))}
	g.apply(t, Event(t, 0, wire.KindRequest, g.record, requestBody("x")))
	return g
}

func (g *growing) grow(t testing.TB, events int) {
	for range events {
		g.n++
		e := Event(t, g.n, wire.KindScore, g.record, fmt.Sprintf(`{"score":%d}`, g.n%100))
		if g.n%4 == 0 {
			e = Event(t, g.n, wire.KindMetadata, g.record, fmt.Sprintf(`{"metadata":{"step":"%d"}}`, g.n))
		}

		e.ID = fmt.Sprintf("%s-%04x-%012x", ID(0)[:18], 0x8000|g.random.IntN(0x4000), g.random.Uint64N(1<<48))
		g.apply(t, e)
	}
}

func (g *growing) apply(t testing.TB, e archive.Event) {
	results, err := g.store.Apply(context.Background(), account, []archive.Event{e})
	if err != nil || results[0].Code != wire.ResultAccepted {
		t.Fatalf("event %d: %+v, %v", g.n, results, err)
	}
}
