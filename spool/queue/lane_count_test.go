package queue_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"promptspool/spool/queue"
)

// withLanes returns the folder of a closed spool with held events 1 to 5, in files of three
// and two, and dead letters 7 and 9.
func withLanes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)

	var held []queue.Entry
	for seq := range uint64(5) {
		held = append(held, queue.Entry{Seq: seq + 1, Key: 7, Data: []byte("held")})
	}
	for _, some := range [][]queue.Entry{held[:3], held[3:]} {
		if err := s.Hold(7, "why", some); err != nil {
			t.Fatal(err)
		}
	}

	buried(t, s, 7, 9)
	closeSpool(t, s)

	return dir
}

const (
	threeHeld = "lanes/held-0000000000000001"
	twoHeld   = "lanes/held-0000000000000004"
	oneDead   = "lanes/dead-0000000000000007"
)

// removed deletes a file or folder of the spool in dir.
func removed(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// wantLanes compares how many events the lanes hold, and how many are counted as lost.
func wantLanes(t *testing.T, s *queue.Queue, held, dead int, gaps uint64) {
	t.Helper()
	if st := s.Status(); st.Held != held || st.Dead != dead || st.Gaps != gaps {
		t.Errorf("%d held, %d dead, %d lost; want %d, %d, %d", st.Held, st.Dead, st.Gaps, held, dead, gaps)
	}
	if h, d := len(lane(t, s, queue.LaneHeld)), len(lane(t, s, queue.LaneDead)); h != held || d != dead {
		t.Errorf("%d held and %d dead events can be read; want %d, %d", h, d, held, dead)
	}
}

func TestALaneThatLostAFileIsCounted(t *testing.T) {
	for _, test := range []struct {
		name       string
		damage     func(t *testing.T, dir string)
		held, dead int
	}{
		{"nothing", func(*testing.T, string) {}, 5, 2},
		{"three held events", func(t *testing.T, dir string) { removed(t, dir, threeHeld) }, 2, 2},
		{"a dead letter", func(t *testing.T, dir string) { removed(t, dir, oneDead) }, 5, 1},
		{"both lanes", func(t *testing.T, dir string) { removed(t, dir, "lanes") }, 0, 0},
		{"a file cut to nothing", func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, threeHeld), 0); err != nil {
				t.Fatal(err)
			}
		}, 2, 2},
		{"the count", func(t *testing.T, dir string) { removed(t, dir, "lanes.count") }, 5, 2},
		{"a bit of the newer count", func(t *testing.T, dir string) { flipCount(t, dir, 0) }, 5, 2},
		{"a bit of the older count", func(t *testing.T, dir string) { flipCount(t, dir, 4096) }, 5, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := withLanes(t)
			test.damage(t, dir)
			lost := 7 - test.held - test.dead

			found, _ := checkDir(t, dir)
			if int(found.LostEvents()) != lost || found.Sound() != (lost == 0) ||
				found.Lanes[0].Events != test.held || found.Lanes[1].Events != test.dead {
				t.Errorf("the check of the stopped spool reports %+v", found.Lanes)
			}

			s := open(t, dir)
			wantLanes(t, s, test.held, test.dead, uint64(lost))
			r, err := s.Check(t.Context())
			if err != nil || int(r.LostEvents()) != lost || r.Sound() != (lost == 0) {
				t.Errorf("the check of the running spool reports %+v (error %v)", r.Lanes, err)
			}

			buried(t, s, 11)
			closeSpool(t, s)

			// The count is right again, whatever it was before.
			removed(t, dir, "lanes/dead-000000000000000b")
			wantLanes(t, open(t, dir), test.held, test.dead, 1)
		})
	}
}

func TestADamagedLaneIsNotSound(t *testing.T) {
	dir := withLanes(t)
	path := filepath.Join(dir, oneDead)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := flipBit(path, int64(bytes.Index(data, []byte("event"))), 4); err != nil {
		t.Fatal(err)
	}

	r, _ := checkDir(t, dir)
	if dead := r.Lanes[1]; r.Sound() || dead.Damaged != 1 || dead.Events != 1 {
		t.Errorf("%+v", r.Lanes)
	}
}

// flipCount damages one of the two slots of the count.
func flipCount(t *testing.T, dir string, slot int64) {
	t.Helper()
	if err := flipBit(filepath.Join(dir, "lanes.count"), slot+19, 2); err != nil {
		t.Fatal(err)
	}
}

func TestACrashBesideTheCountIsNoLoss(t *testing.T) {
	for name, change := range map[string]func(*queue.Queue) error{
		"moved, and not counted": func(s *queue.Queue) error {
			return s.Bury(letter("why", queue.Entry{Seq: 11}))
		},
		"counted, and not removed": func(s *queue.Queue) error {
			return s.Release(queue.LaneHeld, []uint64{1, 2, 3})
		},
		"counted, and not removed in part": func(s *queue.Queue) error {
			return s.Release(queue.LaneHeld, []uint64{2})
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := withLanes(t)
			dir := copyDir(t, before)
			s := open(t, dir)
			if err := change(s); err != nil {
				t.Fatal(err)
			}
			closeSpool(t, s)

			after := s.Status()
			from, to := dir, before // the count of before, the lanes of after
			if after.Held < 5 {
				from, to = before, dir // the count of after, the lanes of before
			}

			removed(t, to, "lanes")
			if err := os.Rename(filepath.Join(from, "lanes"), filepath.Join(to, "lanes")); err != nil {
				t.Fatal(err)
			}
			wantLanes(t, open(t, to), 5, max(2, after.Dead), 0)
		})
	}
}

func TestALaneFileThatGoesUnderARunningSpoolIsCountedOnce(t *testing.T) {
	dir := withLanes(t)
	s := open(t, dir)
	removed(t, dir, twoHeld)

	reported := 0
	for e, err := range s.Lane(queue.LaneHeld) {
		if err != nil && e.Seq == 0 {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("reading the lane reports the missing file %d times, want once", reported)
	}
	wantLanes(t, s, 3, 2, 2)

	removed(t, dir, threeHeld)
	if err := s.Release(queue.LaneHeld, []uint64{2}); err != nil {
		t.Error(err)
	}
	removed(t, dir, oneDead)
	if err := s.Bury(letter("again", queue.Entry{Seq: 7, Data: []byte("event")})); err != nil {
		t.Error(err)
	}
	wantLanes(t, s, 0, 2, 6)

	closeSpool(t, s)
	wantLanes(t, open(t, dir), 0, 2, 0)
}

func TestAFolderOfLanesWithAnythingElseIsRefused(t *testing.T) {
	dir := closed(t)
	if err := os.MkdirAll(filepath.Join(dir, "lanes"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lanes", "somebody"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "not a file of a lane")

	f := look(t, dir)
	for _, err := range f.Lane(queue.LaneHeld) {
		if err == nil {
			t.Error("the lane yields events")
		}
	}
	if r := check(t, f); r.Sound() {
		t.Errorf("the report calls the lanes sound: %+v", r.Lanes)
	}
}
