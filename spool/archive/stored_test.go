package archive_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

func encoded(t rapid.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func foldAll(events []archive.Event) *archive.State {
	s := new(archive.State)
	for _, e := range events {
		s.Fold(e)
	}

	return s
}

// reread returns a state as it comes back from a store.
func reread(t rapid.TB, s *archive.State) *archive.State {
	t.Helper()
	again := new(archive.State)
	if err := json.Unmarshal([]byte(encoded(t, s)), again); err != nil {
		t.Fatal(err)
	}

	return again
}

func TestStatesJoinedInAnyOrderAreTheEventsFoldedIntoOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := distinct(databasetest.Events(t, 1, 20))
		want := encoded(t, foldAll(events))

		parts := make([][]archive.Event, rapid.IntRange(1, 6).Draw(t, "parts"))
		for _, e := range events {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "part")
			parts[i] = append(parts[i], e)
		}
		var states []*archive.State
		for _, part := range rapid.Permutation(parts).Draw(t, "order") {
			if len(part) > 0 {
				states = append(states, reread(t, foldAll(part)))
			}
		}

		base := states[0]
		for rest := states[1:]; len(rest) > 0; { // some together, some one by one
			n := rapid.IntRange(1, len(rest)).Draw(t, "together")
			base.Join(rest[:n]...)
			rest = rest[n:]
		}
		if got := encoded(t, base); got != want {
			t.Fatalf("joined:\n%s\nfolded:\n%s", got, want)
		}
	})
}

// distinct returns the events without repetitions.
func distinct(events []archive.Event) []archive.Event {
	known := make(map[string]bool)
	return slices.DeleteFunc(slices.Clone(events), func(e archive.Event) bool {
		defer func() { known[e.ID] = true }()
		return known[e.ID]
	})
}

// disk holds what a Store has of one record.
type disk struct {
	whole  []byte
	deltas []archive.Delta
}

func (d *disk) read(t rapid.TB, min int) archive.Stored {
	t.Helper()
	if d.whole == nil {
		return archive.Stored{}
	}
	s, err := archive.ReadStored(d.whole, len(d.whole) >= min)
	if err == nil {
		err = s.Join(d.deltas)
	}
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func (d *disk) write(t rapid.TB, s *archive.Stored) (bytes int) {
	t.Helper()
	value, after, err := s.Encode()
	switch {
	case err != nil:
		t.Fatal(err)
	case after == 0:
		d.whole, d.deltas = value, nil
	default:
		d.deltas = append(d.deltas, archive.Delta{After: after, Value: value})
	}

	return len(value)
}

func TestWhatIsStoredInPartsIsReadAsIfItWereWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		min := rapid.SampledFrom([]int{1, 2000, archive.DeltaMin}).Draw(t, "min")
		var d disk
		var want archive.State
		for _, batch := range databasetest.Batches(t, databasetest.Events(t, 1, 20)) {
			s := d.read(t, min)
			for _, e := range batch {
				if a, b := s.Take(e), want.Take(e); a != b {
					t.Fatalf("Take returns %+v, want %+v", a, b)
				}
			}
			if len(s.History) > 0 {
				d.write(t, &s)
			}

			if s.WeightAtMost() < s.Weight() || s.Bytes() != reread(t, &s.State).Bytes() {
				t.Fatalf("a weight of %d counts as %d", s.Weight(), s.WeightAtMost())
			}
		}

		s := d.read(t, min)
		if got, want := encoded(t, &s.State), encoded(t, &want); got != want {
			t.Fatalf("read:\n%s\nfolded:\n%s", got, want)
		}
	})
}

func TestOnlyLargeStatesHaveDeltas(t *testing.T) {
	const events, min = 200, 4000
	var d disk
	written, most := 0, 0
	for i := range events {
		s := d.read(t, min)
		s.Take(event(t, i, wire.KindScore, `{"score":1}`))
		size := d.write(t, &s)
		written += size

		beside := 0
		for _, delta := range d.deltas {
			beside += len(delta.Value)
		}
		if len(d.deltas) > 0 && len(d.whole) < min {
			t.Fatalf("after %d events there is a delta beside a state of %d bytes", i, len(d.whole))
		}
		if beside > len(d.whole)/2+size {
			t.Fatalf("after %d events there are %d bytes of deltas beside %d", i, beside, len(d.whole))
		}
		most = max(most, len(d.deltas))
	}

	// Each event has less than 500 bytes. Writing the whole state each time would take 5 MB.
	if most < 10 || written > 4*500*events {
		t.Errorf("%d bytes were written, with at most %d deltas", written, most)
	}
}

func TestDeltasThatDoNotBelongToAStateAreDamage(t *testing.T) {
	whole := encoded(t, foldAll([]archive.Event{event(t, 1, wire.KindScore, `{"score":1}`)}))
	delta := encoded(t, foldAll([]archive.Event{event(t, 2, wire.KindScore, `{"score":2}`)}))
	other := encoded(t, foldAll([]archive.Event{
		databasetest.Event(t, 2, wire.KindScore, databasetest.ID(1001), `{"score":2}`),
	}))

	for name, deltas := range map[string][]archive.Delta{
		"the first is missing": {{After: 2, Value: []byte(delta)}},
		"another record's":     {{After: 1, Value: []byte(other)}},
		"without an event":     {{After: 1, Value: []byte(`{"request_id":"` + databasetest.ID(1000) + `"}`)}},
		"no JSON":              {{After: 1, Value: []byte(`{`)}},
	} {
		s, err := archive.ReadStored([]byte(whole), true)
		if err == nil {
			err = s.Join(deltas)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
