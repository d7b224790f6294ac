package lane_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/lane"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	os.Exit(m.Run())
}

var errClosed = errors.New("closed")

// owner stands for the spool that owns the lanes. It counts what they report.
type owner struct {
	*lane.Lanes
	dir         string
	lost        int
	dropped     int
	quarantined []string
	failure     error
}

// open opens the lanes in dir and closes them after the test.
func open(t *testing.T, dir string, bytesMax int64) *owner {
	t.Helper()
	o := &owner{dir: dir}
	lanes, err := lane.Open(lane.Config{
		Dir:          dir,
		BytesMax:     bytesMax,
		Logger:       slog.New(slog.DiscardHandler),
		CheckFailed:  func() error { return o.failure },
		Fail:         func(err error) error { o.failure = err; return err },
		CountLost:    func(_ lane.Lane, events int, _ string) { o.lost += events },
		NoteDisk:     func(int64) {},
		CountDropped: func(events int) { o.dropped += events },
		Quarantine: func(name string) error {
			o.quarantined = append(o.quarantined, name)
			return os.Rename(filepath.Join(dir, name), filepath.Join(t.TempDir(), "set aside"))
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	o.Lanes = lanes
	t.Cleanup(func() { lanes.Close(errClosed) })

	return o
}

// bury moves events, each with its sequence as key and second, to the dead letters.
func (o *owner) bury(t *testing.T, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		e := frame.Entry{
			Seq:  seq,
			Key:  uint32(seq),
			At:   time.Unix(int64(seq), 0).UTC(),
			Data: []byte("event"),
		}
		if err := o.Move(lane.Dead, time.Unix(100, 0), []lane.Entry{{Entry: e, Reason: "why"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// wantSequences checks which events a lane holds and counts, and that all can be read.
func (o *owner) wantSequences(t *testing.T, l lane.Lane, want ...uint64) {
	t.Helper()
	var got []uint64
	for e, err := range o.All(l) {
		if err != nil {
			t.Error(err)
		}
		got = append(got, e.Seq)
	}

	if !slices.Equal(got, want) || o.Events(l) != len(want) {
		t.Errorf("the %s lane holds %v and counts %d; want %v", l, got, o.Events(l), want)
	}
}

func TestReleasedEventsAreGoneAlsoAfterACrash(t *testing.T) {
	o := open(t, t.TempDir(), 1<<20)

	var batch []lane.Entry
	for seq := range uint64(5) {
		e := frame.Entry{Seq: seq + 1, Key: 7, Data: []byte("held")}
		batch = append(batch, lane.Entry{Entry: e, Reason: "why"})
	}
	if err := o.Move(lane.Held, time.Unix(100, 0), batch); err != nil {
		t.Fatal(err)
	}
	o.bury(t, 3, 9)

	err := errors.Join(o.Release(lane.Held, []uint64{1, 3, 99}), o.Release(lane.Dead, []uint64{9}))
	if err != nil {
		t.Fatal(err)
	}

	// Nothing was closed: the files are as a crash leaves them.
	again := open(t, o.dir, 1<<20)
	for _, o := range []*owner{o, again} {
		o.wantSequences(t, lane.Held, 2, 4, 5)
		o.wantSequences(t, lane.Dead, 3)
	}

	err = errors.Join(o.Release(lane.Held, []uint64{2, 4, 5}), o.Release(lane.Dead, []uint64{3}))
	if err != nil {
		t.Fatal(err)
	}

	left, _ := os.ReadDir(filepath.Join(o.dir, "lanes"))
	if keys := o.Keys(lane.Held, lane.Dead); len(left) != 0 || len(keys) != 0 || o.lost+again.lost != 0 {
		t.Errorf("empty lanes still have files %v and keys %v; %d events counted as lost",
			left, keys, o.lost+again.lost)
	}
}

func TestClosedLanesSayWhy(t *testing.T) {
	o := open(t, t.TempDir(), 1<<20)
	o.bury(t, 1)
	o.Close(errClosed)

	if err := o.Release(lane.Dead, []uint64{1}); !errors.Is(err, errClosed) {
		t.Errorf("Release on closed lanes: %v", err)
	}
	for _, err := range o.All(lane.Dead) {
		if !errors.Is(err, errClosed) {
			t.Errorf("reading closed lanes: %v", err)
		}
	}
}

// PeekFolder and Open must find the same events in a damaged lane.
func TestADamagedLaneIsCountedAndSetAside(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a bit of a length":  func(path string) error { return flipBit(path, 12+30, 1) },
		"a bit of a magic":   func(path string) error { return flipBit(path, 12, 1) },
		"cut in the middle":  func(path string) error { return os.Truncate(path, 40) },
		"cut to nothing":     func(path string) error { return os.Truncate(path, 0) },
		"a bit of a payload": func(path string) error { return flipBit(path, 12+38+12, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, t.TempDir(), 1<<20)
			o.bury(t, 1, 2)
			o.Close(errClosed)
			if err := damage(filepath.Join(o.dir, "lanes", "dead-0000000000000001")); err != nil {
				t.Fatal(err)
			}

			folder, err := lane.PeekFolder(o.dir)
			if err != nil {
				t.Fatal(err)
			}
			if folder.AtLeast(lane.Dead) != 2 || folder.AtLeast(lane.Held) != 0 {
				t.Errorf("at least %d dead letters and %d held events, want 2 and 0",
					folder.AtLeast(lane.Dead), folder.AtLeast(lane.Held))
			}
			peeked := whole(folder.All(lane.Dead))

			o = open(t, o.dir, 1<<20)
			read := whole(o.All(lane.Dead))
			failed := o.Events(lane.Dead) - read
			if read != 1 || peeked != 1 || failed+o.lost != 1 ||
				o.lost != o.Lost(lane.Dead) || len(o.quarantined) != o.lost {
				t.Errorf("%d events are read, %d peeked at, %d fail, %d are counted as lost; set aside: %v",
					read, peeked, failed, o.lost, o.quarantined)
			}

			o.bury(t, 3) // the lanes still take events
		})
	}
}

// whole counts the events of a lane that can be read.
func whole(events func(func(lane.Entry, error) bool)) (n int) {
	for _, err := range events {
		if err == nil {
			n++
		}
	}
	return n
}

// flipBit inverts one bit of a file.
func flipBit(path string, offset int64, bit int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[offset] ^= 1 << bit

	return os.WriteFile(path, b, 0o600)
}
