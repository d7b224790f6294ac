package lane_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/lane"
)

// Of these lanes a key's dead letters of limits may use 128 KiB: five events of 21 KB, which
// take six blocks each.
const limitedBytesMax = 2 << 20

// moveLimited moves events of a key, whose record is at a limit, to the dead letters, each
// by itself.
func (o *owner) moveLimited(t *testing.T, key uint32, first, last uint64) {
	t.Helper()
	for seq := first; seq <= last; seq++ {
		e := lane.Entry{Entry: frame.Entry{Seq: seq, Key: key, Data: make([]byte, 21_000)}, Reason: "full"}
		if err := o.buryLimited([]lane.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
}

// buryLimited moves events, whose record is at a limit, to the dead letters.
func (o *owner) buryLimited(letters []lane.Entry) error {
	for i := range letters {
		letters[i].AtLimit = true
	}
	return o.Move(lane.Dead, time.Unix(100, 0), letters)
}

// move moves one event of 21 KB to a lane.
func (o *owner) move(l lane.Lane, seq uint64) error {
	e := lane.Entry{Entry: frame.Entry{Seq: seq, Key: 9, Data: make([]byte, 21_000)}, Reason: "why"}
	return o.Move(l, time.Unix(100, 0), []lane.Entry{e})
}

func TestBeyondAKeysShareItsOldestLettersOfLimitsAreDropped(t *testing.T) {
	o := open(t, t.TempDir(), limitedBytesMax)
	o.moveLimited(t, 7, 1, 8)
	o.moveLimited(t, 8, 11, 13)
	if err := o.move(lane.Dead, 9); err != nil {
		t.Fatal(err)
	}

	o.wantSequences(t, lane.Dead, 4, 5, 6, 7, 8, 9, 11, 12, 13)
	if o.dropped != 3 || o.lost != 0 {
		t.Errorf("%d are counted as dropped and %d as lost; want 3 and none", o.dropped, o.lost)
	}
	o.moveLimited(t, 7, 1, 2) // once more, as after a crash
	o.wantSequences(t, lane.Dead, 4, 5, 6, 7, 8, 9, 11, 12, 13)
	for e := range o.All(lane.Dead) {
		if e.AtLimit != (e.Seq != 9) {
			t.Errorf("event %d: at a limit is %v", e.Seq, e.AtLimit)
		}
	}

	// The files are as a crash leaves them. One that goes is noticed as of any lane.
	if err := os.Remove(filepath.Join(o.dir, "lanes", "limit-000000000000000c")); err != nil {
		t.Fatal(err)
	}
	again := open(t, o.dir, limitedBytesMax)
	again.wantSequences(t, lane.Dead, 4, 5, 6, 7, 8, 9, 11, 13)
	again.moveLimited(t, 7, 14, 14)
	again.wantSequences(t, lane.Dead, 5, 6, 7, 8, 9, 11, 13, 14)
	if again.lost != 1 || again.dropped != 1 {
		t.Errorf("after a restart %d are lost and %d dropped; want one of each", again.lost, again.dropped)
	}

	// They are released as other dead letters are.
	if err := again.Release(lane.Dead, []uint64{5, 6, 9, 13}); err != nil {
		t.Fatal(err)
	}
	again.wantSequences(t, lane.Dead, 7, 8, 11, 14)
}

// After a crash the oldest come again together with new ones, which are not dropped for them.
func TestTheNewestLettersOfLimitsStayAlsoBesideSomeThatComeAgain(t *testing.T) {
	o := open(t, t.TempDir(), limitedBytesMax)
	o.moveLimited(t, 7, 1, 8)

	var again []lane.Entry
	for _, seq := range []uint64{1, 2, 3, 9} {
		e := frame.Entry{Seq: seq, Key: 7, Data: make([]byte, 7_000)}
		again = append(again, lane.Entry{Entry: e, Reason: "full"})
	}
	if err := o.buryLimited(again); err != nil {
		t.Fatal(err)
	}
	o.wantSequences(t, lane.Dead, 4, 5, 6, 7, 8, 9)
}

// Batches are answered in any order. An older letter that comes later does not take a newer one
// with it when it is dropped.
func TestALetterOfALimitIsDroppedOnlyWithOlderOnes(t *testing.T) {
	o := open(t, t.TempDir(), limitedBytesMax)
	newest := lane.Entry{Entry: frame.Entry{Seq: 9, Key: 7, Data: make([]byte, 7_000)}, Reason: "full"}
	if err := o.buryLimited([]lane.Entry{newest}); err != nil {
		t.Fatal(err)
	}
	o.moveLimited(t, 7, 1, 8)
	o.wantSequences(t, lane.Dead, 4, 5, 6, 7, 8, 9)
}

func TestManyLettersOfLimitsAreFewFiles(t *testing.T) {
	o := open(t, t.TempDir(), 64<<20)
	var letters []lane.Entry
	for seq := range uint64(1000) {
		e := frame.Entry{Seq: seq + 1, Key: 7, Data: []byte("event")}
		letters = append(letters, lane.Entry{Entry: e, Reason: string(rune('a' + seq%26))})
	}
	for range 2 { // the second time, as after a crash before the Ack
		if err := o.buryLimited(letters); err != nil {
			t.Fatal(err)
		}
	}

	files, err := os.ReadDir(filepath.Join(o.dir, "lanes"))
	if err != nil || len(files) != 1 || o.Events(lane.Dead) != 1000 {
		t.Errorf("%d events are in %d files (error %v); want 1000 in one", o.Events(lane.Dead), len(files), err)
	}
	for e := range o.All(lane.Dead) {
		if e.Reason != letters[e.Seq-1].Reason {
			t.Fatalf("event %d is there for %q; want %q", e.Seq, e.Reason, letters[e.Seq-1].Reason)
		}
	}
}

func TestLettersOfLimitsThatComeOneByOneShareFiles(t *testing.T) {
	o := open(t, t.TempDir(), 64<<20)
	var want []uint64
	for seq := range uint64(300) {
		e := frame.Entry{Seq: seq + 1, Key: uint32(7 + seq%2), Data: bytes.Repeat([]byte("x"), 300)}
		if err := o.buryLimited([]lane.Entry{{Entry: e, Reason: "full"}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, seq+1)
	}

	again := open(t, o.dir, 64<<20)
	for _, o := range []*owner{o, again} {
		var got []uint64
		for e, err := range o.All(lane.Dead) {
			if err != nil || e.Reason != "full" || len(e.Data) != 300 || e.Key != uint32(7+(e.Seq-1)%2) {
				t.Errorf("%+v, %v", e, err)
			}
			got = append(got, e.Seq)
		}
		if slices.Sort(got); !slices.Equal(got, want) || o.Events(lane.Dead) != len(want) || o.lost+o.dropped > 0 {
			t.Errorf("%d events are there, and %d counted; want %d", len(got), o.Events(lane.Dead), len(want))
		}
	}
	if files, err := os.ReadDir(filepath.Join(o.dir, "lanes")); err != nil || len(files) > 12 {
		t.Errorf("they are in %d files (error %v)", len(files), err)
	}
}

func TestALetterOfALimitThatIsLargerThanTheShareTakesThePlaceOfNoOther(t *testing.T) {
	o := open(t, t.TempDir(), limitedBytesMax)
	o.moveLimited(t, 7, 1, 2)

	large := lane.Entry{Entry: frame.Entry{Seq: 3, Key: 7, Data: bytes.Repeat([]byte("x"), 128<<10)}}
	if err := o.buryLimited([]lane.Entry{large}); err != nil {
		t.Fatal(err)
	}
	o.wantSequences(t, lane.Dead, 1, 2)
	if o.dropped != 1 {
		t.Errorf("%d are counted as dropped; want the large one", o.dropped)
	}
}

func TestLettersOfLimitsGiveWayToOthersWhenTheLanesAreFull(t *testing.T) {
	o := open(t, t.TempDir(), limitedBytesMax)
	fits := limitedBytesMax / (24 << 10)
	for i := range uint64(30) { // twice as many as fit
		o.moveLimited(t, uint32(100+i), 1+i*5, 5+i*5)
	}
	if n := o.Events(lane.Dead); n != fits || o.dropped != 150-fits {
		t.Fatalf("the lanes hold %d and %d were dropped; want %d and %d", n, o.dropped, fits, 150-fits)
	}

	// Held events and other dead letters find as much space as if there were none of them. The
	// oldest go first.
	for i := range fits {
		l := lane.Held
		if i%2 == 0 {
			l = lane.Dead
		}
		if err := o.move(l, uint64(1001+i)); err != nil {
			t.Fatalf("moving event %d of %d: %v", i+1, fits, err)
		}
		if i == 9 {
			for e := range o.All(lane.Dead) {
				if want := uint64(150 - fits + 10 + 1); e.Seq != want {
					t.Errorf("the oldest letter is %d; want %d", e.Seq, want)
				}
				break
			}
		}
	}
	if err := o.move(lane.Held, 2001); !errors.Is(err, lane.ErrFull) {
		t.Errorf("an event that does not fit: %v", err)
	}

	// Now there is no space for letters of limits, which nothing waits for.
	o.moveLimited(t, 7, 3001, 3002)
	if o.dropped != 152 || o.Events(lane.Held)+o.Events(lane.Dead) != fits || o.lost != 0 {
		t.Errorf("%d were dropped; the lanes hold %d held and %d dead events; %d are lost",
			o.dropped, o.Events(lane.Held), o.Events(lane.Dead), o.lost)
	}
}
