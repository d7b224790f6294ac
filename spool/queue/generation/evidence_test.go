package generation

import (
	"bytes"
	"testing"
	"time"

	"promptspool/spool/queue/frame"
	"promptspool/spool/rawlog"
)

func sealed(t testing.TB, payload string) []byte {
	t.Helper()
	k := frame.EventKey{Seq: 5, Key: 7, Part: 1, Parts: 3, At: time.Unix(1, 2)}
	return sealedAs(frame.Frame{EventKey: k, Payload: []byte(payload)})
}

func sealedAs(f frame.Frame) []byte {
	header := f.Header()
	return append(header[:], f.Payload...)
}

func TestAnEventThatLacksAFrameIsNotWhole(t *testing.T) {
	var log []byte
	add := func(seq uint64, part, parts uint16) {
		k := frame.EventKey{Seq: seq, Part: part, Parts: parts, At: time.Unix(1, 0)}
		f := frame.Frame{EventKey: k, Payload: []byte("payload")}
		log = append(log, sealedAs(f)...)
	}
	add(1, 1, 2)
	add(1, 0, 2)
	add(2, 0, 3)
	add(2, 2, 3)
	add(3, 0, 2)
	add(4, 1, 2)
	ev := Evidence{events: make(map[uint64][]frameRef)}
	ev.examineValueLog("", log)
	if ev.dropIncomplete(); len(ev.events) != 1 || len(ev.events[1]) != 2 {
		t.Errorf("%v", ev.events)
	}
}

// FuzzRaw gives any bytes to the reader of Badger's files: it must end, and find nothing that does not verify.
func FuzzRaw(f *testing.F) {
	f.Add(append(make([]byte, rawlog.HeaderBytes), "\x40\x00\x24\x0c\x00"...))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Add(append(make([]byte, rawlog.HeaderBytes), sealed(f, "payload")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		ev := Evidence{events: make(map[uint64][]frameRef)}
		ev.examineValueLog("", b)
		for e := range rawlog.Entries(b) {
			if e.End > len(b) {
				t.Errorf("an entry ends at %d of %d", e.End, len(b))
			}
		}
		lastCommitted(b)
	})
}
