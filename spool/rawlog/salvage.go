package rawlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"
)

const (
	metaDelete = 1 << 0
	metaMarks  = metaTransaction | metaTransactionEnd
)

// Whole yields the entries of a log that verify, also those behind the parts that cannot be read.
// Badger stops at the first entry that does not verify, and cuts off or deletes what follows.
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

			// A log that ends here has no bad block behind this entry. Else the next whole entry is
			// behind that block.
			for len(bad) > 0 && bad[0].End <= int64(at) {
				bad = bad[1:]
			}
			if len(bad) == 0 {
				return
			}
			var found bool
			if at, found = nextEntry(data, int(bad[0].End)); !found {
				return
			}
			bad = bad[1:]
		}
	}
}

// nextEntry finds the first whole entry at or behind an offset.
func nextEntry(data []byte, at int) (int, bool) {
	for ; at < len(data); at++ {
		// Most that is no entry is not worth a checksum, which may be over many megabytes.
		if e, ok := outlineAt(data, at); !ok || !e.plain {
			continue
		}
		if _, ok := entryAt(data, at); ok {
			return at, true
		}
	}
	return 0, false
}

// A filler takes the place of what cannot be read in a value log: an entry that nothing refers to.
const (
	fillerKey         = "unreadable" + "\x00\x00\x00\x00\x00\x00\x00\x00" // ends in a version
	fillerHeaderBytes = 9
	fillerBytesMin    = fillerHeaderBytes + len(fillerKey) + crc32.Size
)

// filler makes an entry of so many bytes, marked as deleted. The length of its value has as many
// bytes for every size, which Badger reads as well as the shortest form.
func filler(bytes int) ([]byte, error) {
	if bytes < fillerBytesMin {
		return nil, errors.New("a part of a value log that cannot be read is smaller than any entry")
	}
	value := uint32(bytes - fillerBytesMin)
	b := make([]byte, 0, bytes)
	b = append(b, metaDelete, 0, byte(len(fillerKey)))
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
	return binary.BigEndian.AppendUint32(entry, crc32.Checksum(entry, castagnoli))
}

// SalvageValueLog writes a value log anew: each whole entry at its old offset, and fillers between
// them. Badger takes it for undamaged, and so does its garbage collection, which would else delete
// what follows the first damaged entry. To read what was lost is an error of its checksum.
func SalvageValueLog(w io.Writer, data []byte, bad []Span) error {
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(header(data)); err != nil {
		return err
	}
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

// SalvageWriteAheadLog writes a write-ahead log anew, with its whole entries. Badger drops a
// transaction of which anything is missing, and all that follow it. So the entries are no longer
// part of one; only what was being written when the process ended stays out.
func SalvageWriteAheadLog(w io.Writer, data []byte, bad []Span) error {
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(header(data)); err != nil {
		return err
	}

	var open []Entry // of a transaction of which the end has not come yet
	end := HeaderBytes
	flush := func() {
		for _, e := range open {
			entry := append([]byte(nil), data[e.At:e.End-crc32.Size]...)
			entry[0] &^= metaMarks
			_, _ = out.Write(seal(entry)) // Flush tells its error
		}
		open = open[:0]
	}
	for e := range Whole(data, bad) {
		if e.At > end {
			flush() // its end may have been in what cannot be read
		}
		end = e.End
		if e.EndsTransaction() {
			flush()
			continue
		}
		open = append(open, e)
		if e.Meta&metaTransaction == 0 {
			flush()
		}
	}
	if len(bad) > 0 && bad[len(bad)-1].End > int64(end) {
		flush()
	}

	return out.Flush()
}

// header is that of a log, zeros if it is missing: nothing of it is needed.
func header(data []byte) []byte {
	h := make([]byte, HeaderBytes)
	copy(h, data)
	return h
}
