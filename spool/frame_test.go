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
	return sealedAs(frame{seq: 5, key: 7, part: 1, parts: 3, at: time.Unix(1, 2), payload: []byte(payload)})
}

func sealedAs(f frame) []byte {
	header := f.header()
	return append(header[:], f.payload...)
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

func TestALargeEventIsSpreadOverFramesWhereItStands(t *testing.T) {
	source := make([]byte, 3*framePart+5)
	for i := range source {
		source[i] = byte(i * 7 >> 3)
	}
	for _, sizes := range [][]int{
		{framePart + 1}, {2 * framePart}, {len(source)}, {0, len(source) - 1, 1}, {300, framePart, 2}, {100, 2*framePart + 38, 2},
		{spreadMin, spreadMin + 1, framePart, 38, 0}, {3, framePart + spreadMin + 38, 3}, {3, framePart + spreadMin + 39},
	} {
		rest := bytes.Clone(source)
		var parts [][]byte
		for _, size := range sizes {
			parts, rest = append(parts, rest[:size:size]), rest[size:]
		}
		want, frames := bytes.Join(parts, nil), spread(parts)

		var got []byte
		copied := 0
		for _, b := range frames {
			frame{seq: 1, parts: uint16(len(frames)), at: time.Unix(1, 0)}.seal(b)
			f, err := decodeFrame(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.payload) > framePart {
				t.Errorf("%v: a frame of %d bytes", sizes, len(f.payload))
			}
			got = append(got, f.payload...)
			if len(b) < spreadMin {
				copied += len(b)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%v: the bytes are not what they were", sizes)
		}
		if copied > 2*spreadMin {
			t.Errorf("%v: %d bytes were copied", sizes, copied)
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
		log = append(log, sealedAs(frame{seq: seq, part: part, parts: parts, at: time.Unix(1, 0), payload: []byte("payload")})...)
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
		again := sealedAs(got)
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
