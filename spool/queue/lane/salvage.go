package lane

import (
	"bytes"
	"encoding/binary"
	"slices"

	"promptspool/spool/queue/frame"
	"promptspool/spool/rawlog"
)

// salvage finds the whole events of a damaged segment, and returns how many its header
// promises, or 0 if the header is damaged, too.
func salvage(path string) (events []event, promised int, err error) {
	err = rawlog.Map(path, func(data []byte, _ []rawlog.Span) error {
		events, promised = salvageFrom(data)
		return nil
	})
	return events, promised, err
}

func salvageFrom(data []byte) (events []event, promised int) {
	if len(data) >= segmentHeaderBytes {
		count := int(binary.BigEndian.Uint32(data[4:]))
		if bytes.Equal(data[:segmentHeaderBytes], segmentHeader(count)) {
			promised = count
		}
	}

	// Look for every frame that verifies, wherever it is: the length of a damaged one
	// cannot be trusted to lead to the next.
	var open event
	parts := uint16(0) // of the open event
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(frame.Magic))
		if i < 0 {
			break
		}
		at += i

		f, err := frame.Decode(data[at:])
		if err != nil {
			at++
			continue
		}

		// An event counts when its last part follows all others. A part in between that
		// is damaged makes the rest of it useless.
		if f.Part == 0 {
			open, parts = event{key: frame.EventKey{Seq: f.Seq, Parts: f.Parts, Key: f.Key, At: f.At}}, 0
		}
		if f.Seq == open.key.Seq && f.Part == parts {
			open.wrapped = append(open.wrapped, f.Payload...)
			if parts++; parts == f.Parts {
				open.key.Bytes = uint32(len(open.wrapped))
				events = append(events, open)
			}
		}
		at += frame.HeaderBytes + len(f.Payload)
	}
	return slices.Clip(events), promised
}
