package api

import (
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
)

// fakeTime is a system clock that a test sets.
type fakeTime struct{ t time.Time }

func (f *fakeTime) now() time.Time { return f.t }

func TestTicksAndTheirIdsNeverGoBack(t *testing.T) {
	system := &fakeTime{time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)}
	c := NewClock(system.now)
	var ids []string
	last := time.Time{}

	tick := func() {
		t.Helper()

		at := c.Tick()
		if !at.After(last) {
			t.Fatalf("%v follows %v", at, last)
		}
		if now := c.Now(); now.Before(at) {
			t.Fatalf("now is %v, and %v was given out", now, at)
		}
		last = at
		ids = append(ids, wire.NewIDAt(at))
	}

	for range 5000 { // more than a millisecond's worth without the clock moving
		tick()
	}
	system.t = system.t.Add(-time.Hour)
	for range 100 {
		tick()
	}
	system.t = system.t.Add(2 * time.Hour)
	tick()
	if last != system.t {
		t.Errorf("the clock is right again, and a tick says %v at %v", last, system.t)
	}

	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("ids go back, or repeat")
	}
	for _, id := range ids {
		if _, err := wire.ParseID(id); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}

	// After a restart with a clock that is behind.
	system.t = system.t.Add(-time.Minute)
	c = NewClock(system.now)
	c.StartAfter(last)
	tick()
	c.StartAfter(last.Add(-time.Hour))
	tick()
}
