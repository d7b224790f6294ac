package queue_test

import (
	"bytes"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/spool/queue"
)

// lane reads all events of a lane, of a spool or of a folder.
func lane(t testing.TB, of interface {
	Lane(queue.Lane) iter.Seq2[queue.LaneEntry, error]
}, lane queue.Lane) []queue.LaneEntry {
	t.Helper()
	var all []queue.LaneEntry
	for e, err := range of.Lane(lane) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}

	return all
}

// letter returns an event as it goes to the dead letters.
func letter(reason string, e queue.Entry) queue.LaneEntry {
	return queue.LaneEntry{Entry: e, Reason: reason}
}

func buried(t *testing.T, s *queue.Queue, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		e := queue.Entry{Seq: seq, Key: uint32(seq), Data: []byte("event")}
		if err := s.Bury(letter("why", e)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLanesKeepWhatIsMovedThere(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	clock := func(c *queue.Config) { c.Now = func() time.Time { return now } }
	s := open(t, dir, clock)
	appendAll(t, s, 1, "one")
	appendAll(t, s, 2, "two", "three")
	all := readAll(t, s)

	later := now.Add(time.Hour)
	now = later
	if err := s.Hold(2, "key refused", all[1:]); err != nil {
		t.Fatal(err)
	}
	if err := s.Bury(letter("not JSON", all[0])); err != nil {
		t.Fatal(err)
	}

	now = now.Add(time.Hour)
	if err := s.Hold(2, "key refused again", all[1:]); err != nil {
		t.Fatal(err)
	}
	ack(t, s, 3)

	held := []queue.LaneEntry{
		{Entry: all[1], Reason: "key refused", MovedAt: later},
		{Entry: all[2], Reason: "key refused", MovedAt: later},
	}
	dead := []queue.LaneEntry{{Entry: all[0], Reason: "not JSON", MovedAt: later}}

	check := func(s *queue.Queue) {
		t.Helper()
		if diff := cmp.Diff(held, lane(t, s, queue.LaneHeld)); diff != "" {
			t.Errorf("held (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(dead, lane(t, s, queue.LaneDead)); diff != "" {
			t.Errorf("dead (-want +got):\n%s", diff)
		}
		if st := s.Status(); st.Held != 2 || st.Dead != 1 {
			t.Errorf("status %+v", st)
		}
		if diff := cmp.Diff([]uint32{1, 2}, s.Keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	}

	check(s)
	crashed := copyDir(t, dir)
	closeSpool(t, s)
	for name, dir := range map[string]string{"a crash": crashed, "a stop": dir} {
		t.Run("looked at after "+name, func(t *testing.T) {
			f := look(t, dir)
			want := [][]queue.LaneEntry{held, dead}
			got := [][]queue.LaneEntry{lane(t, f, queue.LaneHeld), lane(t, f, queue.LaneDead)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the lanes (-want +got):\n%s", diff)
			}
			r, err := f.Check(t.Context())
			if err != nil || !r.Sound() || r.Lanes[0].Events != 2 || r.Lanes[1].Events != 1 {
				t.Errorf("%+v, %v", r.Lanes, err)
			}
			if st, err := f.Status(t.Context()); err != nil || st.Held != 2 || st.Dead != 1 {
				t.Errorf("status %+v, %v", st, err)
			}
		})
		check(open(t, dir))
	}
}

func TestLanesTakeAQuarterOfTheDisk(t *testing.T) {
	s := open(t, t.TempDir(), bytesMax(1<<20))
	large := bytes.Repeat([]byte("x"), 100<<10)

	seq, err := uint64(1), error(nil)
	for ; err == nil && seq < 10; seq++ {
		err = s.Bury(letter("why", queue.Entry{Seq: seq, Data: large}))
	}
	if !errors.Is(err, queue.ErrLanesFull) || seq != 4 { // a quarter of 1 MiB is two and a half of them
		t.Fatalf("event %d: %v", seq-1, err)
	}

	if err := s.Release(queue.LaneDead, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Bury(letter("why", queue.Entry{Seq: 3, Data: large})); err != nil {
		t.Error(err)
	}
}

func TestHoldRefusesAnotherKeysEvent(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Hold(1, "why", []queue.Entry{{Seq: 1, Key: 2}}); err == nil {
		t.Error("an event of key 2 was held for key 1")
	}
}
