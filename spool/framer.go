package spool

import (
	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/frame"
)

// framer makes the frames of a commit. An event of usual size is copied into one frame,
// in a buffer that the next commit reuses. Owned by the goroutine that is committing (the
// leader).
type framer struct{ buffer []byte }

// framerBytesMax bounds the buffer that is kept: what 64 writers of 4 KB fill.
const framerBytesMax = 384 << 10

// set adds the frames of one event to a transaction, which reads them until it is
// committed: they do not change until reset.
func (m *framer) set(txn *badger.Txn, k frame.EventKey, e event) error {
	frames := e.parts
	if !e.framed {
		frames = [][]byte{m.join(e)}
	}

	k.Parts = uint16(len(frames))
	for i, b := range frames {
		k.Part = uint16(i)
		frame.Frame{Seq: k.Seq, Key: k.Key, Part: k.Part, Parts: k.Parts, At: k.At}.Seal(b)
		if err := txn.Set(k.Encode(), b); err != nil {
			return err
		}
	}

	return nil
}

// join copies the parts of an event into the buffer, behind room for a header.
func (m *framer) join(e event) []byte {
	size := frame.HeaderBytes + e.bytes
	if size > cap(m.buffer)-len(m.buffer) {
		// Do not grow by append: the transaction still refers to the frames in the old
		// buffer.
		m.buffer = make([]byte, 0, max(size, min(2*cap(m.buffer), framerBytesMax)))
	}

	b := m.buffer[len(m.buffer) : len(m.buffer)+frame.HeaderBytes : len(m.buffer)+size]
	for _, part := range e.parts {
		b = append(b, part...)
	}
	m.buffer = m.buffer[:len(m.buffer)+size]

	return b
}

// reset takes the buffer back, once the transaction is over.
func (m *framer) reset() {
	if m.buffer = m.buffer[:0]; cap(m.buffer) > framerBytesMax {
		m.buffer = nil
	}
}

// spreadMin is how long a part must be to become frames in place; a shorter one is
// copied.
const spreadMin = 64 << 10

// spread turns an event that is too large to be copied into frames with empty headers. It
// takes over the bytes of parts: each header overwrites the first bytes of a piece, which
// move to the end of the small frame before it.
//
//	parts   {"id":...,"body":     {"model":"gpt-4o", ...   }
//	frames  [header {"id":...,"body":{"model":"gpt-4] [header o", ...] [header }]
func spread(parts [][]byte) (frames [][]byte) {
	small := make([]byte, frame.HeaderBytes)
	for _, part := range parts {
		for len(part) > spreadMin {
			n := min(len(part), frame.HeaderBytes+frame.PartBytes)
			frames = append(frames, append(small, part[:frame.HeaderBytes]...), part[:n:n])
			small, part = make([]byte, frame.HeaderBytes), part[n:]
		}
		small = append(small, part...)
	}
	if len(small) > frame.HeaderBytes {
		frames = append(frames, small)
	}

	return frames
}
