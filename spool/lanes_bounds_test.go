package spool_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"promptspool/spool"
)

func buried(t *testing.T, s *spool.Spool, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		if err := s.Bury("why", spool.Entry{Seq: seq, Key: uint32(seq), Data: []byte("event")}); err != nil {
			t.Fatal(err)
		}
	}
}

func sequences(entries []spool.LaneEntry) (seqs []uint64) {
	for _, e := range entries {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

func TestReleasedEventsAreGoneAlsoAfterACrash(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var batch []spool.Entry
	for seq := range uint64(5) {
		batch = append(batch, spool.Entry{Seq: seq + 1, Key: 7, Data: []byte("held")})
	}
	if err := s.Hold(7, "why", batch); err != nil {
		t.Fatal(err)
	}
	buried(t, s, 3, 9)
	if err := errors.Join(s.Release(spool.LaneHeld, []uint64{1, 3, 99}), s.Release(spool.LaneDead, []uint64{9})); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*spool.Spool{"running": s, "after a crash": open(t, copyDir(t, dir))} {
		held, dead := sequences(lane(t, s, spool.LaneHeld)), sequences(lane(t, s, spool.LaneDead))
		if len(held) != 3 || held[0] != 2 || held[1] != 4 || held[2] != 5 || len(dead) != 1 || dead[0] != 3 {
			t.Errorf("%s: held %v, dead %v", name, held, dead)
		}
		if st := s.Status(); st.Held != 3 || st.Dead != 1 {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if err := errors.Join(s.Release(spool.LaneHeld, []uint64{2, 4, 5}), s.Release(spool.LaneDead, []uint64{3})); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "lanes")); len(left) != 0 || len(s.Keys()) != 0 {
		t.Errorf("left of empty lanes: %v, keys %v", left, s.Keys())
	}
}

func TestFullLanesRefuseUntilSomethingIsReleased(t *testing.T) {
	s := open(t, t.TempDir(), bytesMax(1<<20))
	large := bytes.Repeat([]byte("x"), 100<<10)
	seq, err := uint64(1), error(nil)
	for ; err == nil && seq < 10; seq++ {
		err = s.Bury("why", spool.Entry{Seq: seq, Data: large})
	}
	if !errors.Is(err, spool.ErrLanesFull) || seq != 4 { // a quarter of 1 MiB is two and a half of them
		t.Fatalf("event %d: %v", seq-1, err)
	}
	if err := s.Release(spool.LaneDead, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Bury("why", spool.Entry{Seq: 3, Data: large}); err != nil {
		t.Error(err)
	}
}

func TestADamagedLaneIsCountedAndSetAside(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a bit of a length":  func(path string) error { return flipBit(path, 12+30, 1) },
		"a bit of a magic":   func(path string) error { return flipBit(path, 12, 1) },
		"cut in the middle":  func(path string) error { return os.Truncate(path, 40) },
		"cut to nothing":     func(path string) error { return os.Truncate(path, 0) },
		"a bit of a payload": func(path string) error { return flipBit(path, 12+38+12, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			buried(t, s, 1, 2)
			closeSpool(t, s)
			if err := damage(filepath.Join(dir, "lanes", "dead-0000000000000001")); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir)
			read, failed := 0, 0
			for _, err := range s.Lane(spool.LaneDead) {
				if err != nil {
					failed++
				} else {
					read++
				}
			}
			if st := s.Status(); read != 1 || failed+int(st.Gaps) != 1 {
				t.Errorf("%d events are read, %d fail, %d are counted as lost", read, failed, st.Gaps)
			}
			buried(t, s, 3)
		})
	}
}
