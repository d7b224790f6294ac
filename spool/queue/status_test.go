package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"promptspool/metrics"
	"promptspool/spool/queue"
)

// People act on the gauges: they revoke a key when nothing waits. So a spool must not
// report 0 at its start, before it has counted.
func TestGaugesAreRightAsSoonAsTheSpoolIsOpen(t *testing.T) {
	dir := closed(t)
	m := metrics.New("sidecar", "test")
	open(t, dir, func(c *queue.Config) { c.Metrics = m })

	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	gauges := map[string]float64{}
	for _, f := range families {
		gauges[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	if gauges["promptspool_spool_events"] != 10 || gauges["promptspool_spool_bytes"] != 71 ||
		gauges["promptspool_spool_oldest_seconds"] <= 0 {
		t.Errorf("10 events of 71 bytes wait; the gauges are %v", gauges)
	}
}

// Events that are counted as lost do not wait, even if no event follows them.
func TestLostNewestEventsDoNotWait(t *testing.T) {
	for name, lost := range map[string]int{"some": 5, "all": 0} {
		t.Run(name, func(t *testing.T) {
			dir := closed(t)
			cutAt(t, dir, numbered(10)[lost])
			s := open(t, dir)

			whole := uint64(0)
			if lost > 0 {
				entries, err := await(t.Context(), s, 1, 100, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				whole = entries[len(entries)-1].Seq
			}

			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := await(ctx, s, whole+1, 100, 1<<20); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("reading what is lost: %v", err)
			}

			if whole > 0 {
				if err := s.Ack(whole); err != nil {
					t.Fatal(err)
				}
			}

			st := s.Status()
			if st.Events != 0 || st.Bytes != 0 || !st.Oldest.IsZero() ||
				st.Frontier != 11 || st.Gaps != uint64(10-lost) {
				t.Errorf("every intact event was acknowledged, and the status is %+v", st)
			}
			if err := s.Ack(whole); err != nil {
				t.Errorf("acknowledging again: %v", err)
			}

			appendAll(t, s, 7, "new")
			wantTexts(t, s, []string{"new"})
		})
	}
}

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
		if err := s.Append(7, []byte("event")); err != nil {
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
