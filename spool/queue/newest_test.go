package queue_test

import (
	"context"
	"testing"
	"time"

	"promptspool/spool/queue"
)

// A restart keeps the newest event's sequence and time, even if all events have been
// acknowledged or moved to a lane. The sidecar's clock starts there.
func TestTheNewestTimeOutlivesRestarts(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	now := at
	clock := func(c *queue.Config) { c.Now = func() time.Time { return now } }
	ctx := context.Background()

	s := open(t, dir, clock)
	if seq, newest := s.Newest(); seq != 0 || !newest.IsZero() {
		t.Errorf("the newest event of an empty spool: %d, %v", seq, newest)
	}

	for range 3 {
		if err := s.Append(ctx, 7, []byte("event")); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}

	entries, err := await(ctx, s, 1, 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(7, "no", entries[2:]); err != nil {
		t.Fatal(err)
	}

	if got := s.LaneKeys(queue.LaneHeld); len(got) != 1 || got[0] != 7 {
		t.Errorf("keys of the held lane: %v", got)
	}
	if got := s.LaneKeys(queue.LaneDead); len(got) != 0 {
		t.Errorf("keys of the dead letters: %v", got)
	}

	if err := s.Ack(3); err != nil {
		t.Fatal(err)
	}
	want := at.Add(2 * time.Minute)
	for range 3 {
		closeSpool(t, s)
		s = open(t, dir, clock)
		if seq, newest := s.Newest(); seq != 3 || !newest.Equal(want) {
			t.Errorf("the newest event after a restart: %d, %v; want 3, %v", seq, newest, want)
		}
	}
}
