package frame_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"promptspool/spool/queue/frame"
)

// sealed returns the bytes of a frame around payload.
func sealed(t testing.TB, payload string) []byte {
	t.Helper()

	k := frame.EventKey{
		Seq:   5,
		Key:   7,
		Part:  1,
		Parts: 3,
		At:    time.Unix(1, 2),
	}

	return sealedAs(frame.Frame{EventKey: k, Payload: []byte(payload)})
}

// sealedAs returns the bytes of f as they are written to a file.
func sealedAs(f frame.Frame) []byte {
	header := f.Header()

	return append(header[:], f.Payload...)
}

func TestAFrameComesBack(t *testing.T) {
	f, err := frame.Decode(append(sealed(t, "payload"), "what follows"...))
	if err != nil {
		t.Fatal(err)
	}

	if f.Seq != 5 || f.Key != 7 || f.Part != 1 || f.Parts != 3 ||
		!f.At.Equal(time.Unix(1, 2)) || string(f.Payload) != "payload" {
		t.Errorf("decoded %+v", f)
	}
}

func TestAnyFlippedBitOfAFrameIsSeen(t *testing.T) {
	whole := sealed(t, "payload")

	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		if _, err := frame.Decode(b); err == nil {
			t.Errorf("a frame with bit %d flipped decodes", i)
		}
	}

	for n := range whole {
		if _, err := frame.Decode(whole[:n]); !errors.Is(err, frame.ErrDamaged) {
			t.Errorf("a frame cut to %d bytes: %v, want ErrDamaged", n, err)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(sealed(f, ""))
	f.Add(sealed(f, "payload"))
	f.Add([]byte(frame.Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := frame.Decode(b)
		if err != nil {
			return
		}

		again := sealedAs(got)
		if !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("a valid frame is written back differently: %x, read from %x", again, b)
		}
	})
}
