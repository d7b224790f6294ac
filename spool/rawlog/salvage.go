package rawlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"

	"promptspool/spool/disk"
)

const (
	metaDelete = 1 << 0
	metaMarks  = metaTransaction | metaTransactionEnd
)

// Whole yields the entries of a log that verify, including those after the parts that
// cannot be read.
//
// Badger stops at the first entry that does not verify, and cuts off or deletes what
// follows.
func Whole(data []byte, bad []Span) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for at := HeaderBytes; ; {
			if e, ok := entryAt(data, at); ok {
				if !yield(e) {
					return
				}
				at = e.End
				continue
			}

			// If there is no bad block after this place, the log ends here. Otherwise the
			// next whole entry is after that block.
			for len(bad) > 0 && bad[0].End <= int64(at) {
				bad = bad[1:]
			}
			if len(bad) == 0 {
				return
			}

			var found bool
			at, found = nextEntry(data, int(bad[0].End))
			if !found {
				return
			}
			bad = bad[1:]
		}
	}
}

// nextEntry finds the first whole entry at or after an offset.
func nextEntry(data []byte, at int) (int, bool) {
	for ; at < len(data); at++ {
		// Most offsets are not an entry, and a checksum of garbage may be over many
		// megabytes. So look at the header first.
		if e, ok := outlineAt(data, at); !ok || !e.plain {
			continue
		}
		if _, ok := entryAt(data, at); ok {
			return at, true
		}
	}
	return 0, false
}

// A filler replaces what cannot be read in a value log: an entry that nothing refers to.
const (
	fillerKey         = "unreadable" + "\x00\x00\x00\x00\x00\x00\x00\x00" // ends in a version
	fillerHeaderBytes = 9
	fillerBytesMin    = fillerHeaderBytes + len(fillerKey) + crc32.Size
)

// filler makes an entry of this many bytes, marked as deleted. The length of its value
// takes the same number of bytes for every size, which Badger reads as well as the
// shortest form.
func filler(bytes int) ([]byte, error) {
	if bytes < fillerBytesMin {
		return nil, errors.New("a part of a value log that cannot be read is smaller than any entry")
	}

	// Of its value only the length matters: what cannot be read stays as zeros.
	value := uint32(bytes - fillerBytesMin)
	b := make([]byte, 0, bytes)
	b = append(b, metaDelete, 0, byte(len(fillerKey)))
	// A varint of five bytes, whatever the number: all but the last have the top bit set.
	for range 4 {
		b = append(b, byte(value)|0x80)
		value >>= 7
	}
	b = append(b, byte(value), 0)
	b = append(b, fillerKey...)

	return seal(b[:bytes-crc32.Size]), nil
}

// seal appends an entry's checksum.
func seal(entry []byte) []byte {
	return binary.BigEndian.AppendUint32(entry, disk.Checksum(entry))
}

// SalvageValueLog writes a new value log: each whole entry at its old offset, and fillers
// in between.
//
// Badger takes the result for undamaged, and so does its garbage collection, which would
// otherwise delete everything after the first damaged entry. Reading an event that was
// lost is a checksum error.
func SalvageValueLog(w io.Writer, data []byte, bad []Span) error {
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(header(data)); err != nil {
		return err
	}

	// Offsets must stay the same, because the keys refer to them.
	end := HeaderBytes
	for e := range Whole(data, bad) {
		if e.At > end {
			b, err := filler(e.At - end)
			if err != nil {
				return err
			}
			if _, err := out.Write(b); err != nil {
				return err
			}
		}

		if _, err := out.Write(data[e.At:e.End]); err != nil {
			return err
		}
		end = e.End
	}
	return out.Flush()
}

// SalvageWriteAheadLog writes a new write-ahead log that holds the whole entries of a
// damaged one.
//
// Badger drops a transaction that lacks anything, and all transactions after it. So the
// entries are no longer part of one. Only what was being written when the process ended
// is left out.
func SalvageWriteAheadLog(w io.Writer, data []byte, bad []Span) error {
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(header(data)); err != nil {
		return err
	}

	// Of a transaction whose end has not come yet.
	var open []Entry
	end := HeaderBytes
	flush := func() {
		for _, e := range open {
			entry := append([]byte(nil), data[e.At:e.End-crc32.Size]...)
			entry[0] &^= metaMarks
			// Flush returns its error.
			_, _ = out.Write(seal(entry))
		}
		open = open[:0]
	}

	for e := range Whole(data, bad) {
		if e.At > end {
			// The end of the transaction may have been in what cannot be read.
			flush()
		}
		end = e.End
		if e.EndsTransaction() {
			flush()
			continue
		}

		open = append(open, e)
		// Outside of a transaction, an entry is whole by itself.
		if e.Meta&metaTransaction == 0 {
			flush()
		}
	}

	// The same when nothing whole follows the last bad block.
	if len(bad) > 0 && bad[len(bad)-1].End > int64(end) {
		flush()
	}

	return out.Flush()
}

// header returns the header of a log, or zeros if it is missing: none of it is needed.
func header(data []byte) []byte {
	h := make([]byte, HeaderBytes)
	copy(h, data)
	return h
}
