package spool

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"promptspool/spool/rawlog"
)

func sealed(t testing.TB, payload string) []byte {
	t.Helper()
	b := splitFrames([]byte(payload))[0]
	sealFrame(b, frame{seq: 5, key: 7, part: 1, parts: 3, at: time.Unix(1, 2)})
	return b
}

func TestAFrameComesBack(t *testing.T) {
	f, err := decodeFrame(append(sealed(t, "payload"), "what follows"...))
	if err != nil {
		t.Fatal(err)
	}
	if f.seq != 5 || f.key != 7 || f.part != 1 || f.parts != 3 || !f.at.Equal(time.Unix(1, 2)) || string(f.payload) != "payload" {
		t.Errorf("%+v", f)
	}
}

func TestAnyFlippedBitOfAFrameIsSeen(t *testing.T) {
	whole := sealed(t, "payload")
	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		if _, err := decodeFrame(b); err == nil {
			t.Errorf("bit %d", i)
		}
	}
	for n := range whole {
		if _, err := decodeFrame(whole[:n]); !errors.Is(err, errFrame) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

func TestAnEventIsSpreadOverFramesInItsOwnPlace(t *testing.T) {
	source := make([]byte, 3*framePart+5)
	for i := range source {
		source[i] = byte(i * 7 >> 3)
	}
	for _, size := range []int{0, 1, framePart - 1, framePart, framePart + 1, 2 * framePart, len(source)} {
		room := frameCount(size) * frameHeaderBytes
		for _, spare := range []int{room - 1, room, room + 100} {
			data := append(make([]byte, 0, size+spare), source[:size]...)
			frames := spreadFrames(data)
			if len(frames) != frameCount(size) {
				t.Fatalf("%d bytes are %d frames", size, len(frames))
			}
			var got []byte
			for _, b := range frames {
				sealFrame(b, frame{seq: 1, parts: uint16(len(frames)), at: time.Unix(1, 0)})
				f, err := decodeFrame(b)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, f.payload...)
			}
			if !bytes.Equal(got, source[:size]) {
				t.Errorf("%d bytes with %d of room are not what they were", size, spare)
			}
			if inPlace := &frames[0][0] == &data[:cap(data)][0]; inPlace != (cap(data) >= size+room) {
				t.Errorf("%d bytes with %d of room: in place %v", size, spare, inPlace)
			}
		}
	}
}

func TestANewerFrameSaysSo(t *testing.T) {
	b := sealed(t, "payload")
	b[5]++
	b[37]++ // its checksum is of the newer version
	if _, err := decodeFrame(b); !errors.Is(err, errFrameNewer) {
		t.Errorf("%v", err)
	}
}

// Nobody has a newer promptspool to start again: to ask for one would stop the spool for good.
func TestAFrameWithADamagedVersionIsNoNewerOne(t *testing.T) {
	for bit := range 16 {
		b := sealed(t, "payload")
		b[4+bit/8] ^= 1 << (bit % 8)
		if _, err := decodeFrame(b); !errors.Is(err, errFrame) {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
}

func TestAnEventThatLacksAFrameIsNotWhole(t *testing.T) {
	var log []byte
	add := func(seq uint64, part, parts uint16) {
		b := splitFrames([]byte("payload"))[0]
		sealFrame(b, frame{seq: seq, part: part, parts: parts, at: time.Unix(1, 0)})
		log = append(log, b...)
	}
	add(1, 1, 2)
	add(1, 0, 2)
	add(2, 0, 3)
	add(2, 2, 3)
	add(3, 0, 2)
	add(4, 1, 2)
	ev := evidence{events: make(map[uint64][]frameRef)}
	if err := ev.examineValueLog("", log); err != nil {
		t.Fatal(err)
	}
	if ev.dropIncomplete(); len(ev.events) != 1 || len(ev.events[1]) != 2 {
		t.Errorf("%v", ev.events)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(sealed(f, ""))
	f.Add(sealed(f, "payload"))
	f.Add([]byte(frameMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeFrame(b)
		if err != nil {
			return
		}
		again := splitFrames(got.payload)[0]
		sealFrame(again, got)
		if !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("a frame that verifies is written differently: %x, %x", again, b)
		}
	})
}

// FuzzRaw gives any bytes to the reader of Badger's files: it must end, and find nothing that does not verify.
func FuzzRaw(f *testing.F) {
	f.Add(append(make([]byte, rawlog.HeaderBytes), "\x40\x00\x24\x0c\x00"...))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Add(append(make([]byte, rawlog.HeaderBytes), sealed(f, "payload")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		ev := evidence{events: make(map[uint64][]frameRef)}
		if err := ev.examineValueLog("", b); err != nil && !errors.Is(err, errFrameNewer) {
			t.Error(err)
		}
		for e := range rawlog.Entries(b) {
			if e.End > len(b) {
				t.Errorf("an entry ends at %d of %d", e.End, len(b))
			}
		}
		lastCommitted(b)
	})
}
