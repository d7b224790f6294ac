package badgerdb

import (
	"encoding/binary"
	"time"

	"promptspool/spool/archive"
)

// goneRow is the value of a row that was deleted and still stands in a block: it hides that one.
var goneRow = []byte{0}

// mark is the value of the two keys that stand where a block begins, among the rows that stand alone. Behind them lie only rows
// that were packed, which Badger has to pass over one by one until it has compacted them away: an iterator that looks one
// key ahead never comes there.
var mark = []byte{1}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTexts(b []byte, texts []string) []byte {
	for _, s := range texts {
		b = appendText(b, s)
	}
	return b
}

// reader takes values off the front of bytes. After a fault it returns zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() { r.b, r.err = nil, archive.ErrRow }

func (r *reader) uvarint() uint64 {
	n, used := binary.Uvarint(r.b)
	if used <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[used:]
	return n
}

func (r *reader) varint() int64 {
	n, used := binary.Varint(r.b)
	if used <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[used:]
	return n
}

// take returns the next n bytes, which alias those that are read.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() string { return string(r.take(r.uvarint())) }

// rowPlace reads the time and the id out of a row's key, or of what follows the table in it.
func rowPlace(key []byte) (at time.Time, id uuid) {
	key = key[len(key)-placeBytes:]
	at = time.Unix(int64(^binary.BigEndian.Uint64(key)^1<<63), int64(^binary.BigEndian.Uint32(key[8:]))).UTC()
	for i := range id {
		id[i] = ^key[12+i]
	}
	return at, id
}

// placeBytes is the length of time and id in a key.
const placeBytes = 12 + 16
