package generation

import (
	"bytes"
	"testing"
	"time"

	"promptspool/spool/queue/frame"
)

func TestALargeEventIsSpreadOverFramesWhereItStands(t *testing.T) {
	source := make([]byte, 3*frame.PartBytes+5)
	for i := range source {
		source[i] = byte(i * 7 >> 3)
	}
	for _, sizes := range [][]int{
		{frame.PartBytes + 1},
		{2 * frame.PartBytes},
		{len(source)},
		{0, len(source) - 1, 1},
		{300, frame.PartBytes, 2},
		{100, 2*frame.PartBytes + 38, 2},
		{spreadMin, spreadMin + 1, frame.PartBytes, 38, 0},
		{3, frame.PartBytes + spreadMin + 38, 3},
		{3, frame.PartBytes + spreadMin + 39},
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
			frame.Frame{EventKey: frame.EventKey{Seq: 1, Parts: uint16(len(frames)), At: time.Unix(1, 0)}}.Seal(b)
			f, err := frame.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Payload) > frame.PartBytes {
				t.Errorf("%v: a frame of %d bytes", sizes, len(f.Payload))
			}
			got = append(got, f.Payload...)
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
