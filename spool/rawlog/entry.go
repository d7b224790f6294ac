package rawlog

import (
	"bytes"
	"encoding/binary"
	"iter"
	"unsafe"

	"promptspool/spool/disk"
)

// Layout of an entry in Badger's value log and write-ahead log (Badger 4.9.6, structs.go
// and memtable.go), after a header of 20 bytes: meta, user meta, length of key, length of
// value and expiry as varints, key, value, CRC32C big-endian of the whole. A key ends in
// 8 bytes of version.
const (
	// HeaderBytes is the length of a log's header.
	HeaderBytes  = 20
	versionBytes = 8
	keyBytesMax  = 1 << 16

	metaTransaction    = 1 << 6
	metaTransactionEnd = 1 << 7
)

// Entry is one entry of a log. Its Key aliases the log's data.
type Entry struct {
	Meta byte
	Key  []byte // without version
	At   int    // offset in the log
	End  int    // offset of what follows

	plain bool // without user metadata and expiry, as we write them
}

// EndsTransaction reports whether the entry is the mark at the end of a transaction.
func (e Entry) EndsTransaction() bool { return e.Meta&metaTransactionEnd != 0 }

// IsPlain reports whether the header of a log begins like that of an unencrypted one. The
// number of the encryption key, 8 bytes, is 0 there. Badger does not open a log with
// another number.
func IsPlain(data []byte) bool {
	return bytes.Equal(data[:min(8, len(data))], make([]byte, min(8, len(data))))
}

// Entries yields the entries of a log up to the first one that does not verify, as Badger
// does.
func Entries(data []byte) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for at := HeaderBytes; ; {
			e, ok := entryAt(data, at)
			if !ok || !yield(e) {
				return
			}
			at = e.End
		}
	}
}

// entryAt reads the entry at an offset of a log, if it is whole.
func entryAt(data []byte, at int) (Entry, bool) {
	e, ok := outlineAt(data, at)
	if !ok {
		return e, false
	}

	sumAt := e.End - 4
	return e, binary.BigEndian.Uint32(data[sumAt:]) == disk.Checksum(data[at:sumAt])
}

// outlineAt reads the header of an entry without verifying anything.
func outlineAt(data []byte, at int) (Entry, bool) {
	if at+2 >= len(data) {
		return Entry{}, false
	}

	// Lengths of key and value, and when it expires, which ours never do.
	h := at + 2
	var lengths [3]uint64
	for i := range lengths {
		n, size := binary.Uvarint(data[h:])
		if size <= 0 {
			return Entry{}, false
		}
		lengths[i], h = n, h+size
	}

	// The lengths may be garbage. Bound each before adding them, or the sum could
	// overflow.
	keyBytes, valueBytes := lengths[0], lengths[1]
	if keyBytes < versionBytes || keyBytes > keyBytesMax || valueBytes > 1<<31 ||
		uint64(h)+keyBytes+valueBytes+4 > uint64(len(data)) {
		return Entry{}, false
	}

	return Entry{
		Meta:  data[at],
		Key:   data[h : h+int(keyBytes)-versionBytes],
		At:    at,
		End:   h + int(keyBytes+valueBytes) + 4,
		plain: data[at+1] == 0 && lengths[2] == 0,
	}, true
}

func addressOf(data []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(data)) }
