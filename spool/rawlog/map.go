// Package rawlog reads Badger's value log and write-ahead log without Badger, and changes
// nothing. It also passes on what Badger logs.
//
// Badger reads its files through mappings, where a block that the disk cannot read ends
// the process. This package finds such a block by reading, and puts zeros in its place.
package rawlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"os"
	"runtime/debug"

	"github.com/dgraph-io/ristretto/v2/z"

	"promptspool/spool/disk"
)

// BlockBytes is the unit in which a file is unreadable: a page, because pages are mapped.
const BlockBytes = 4096

// probeBytes is the size of a read. It fits in a processor's cache, so that probing what
// is in the page cache costs little.
const probeBytes = 128 << 10

// Span is the bytes From <= offset < End of a file.
type Span struct{ From, End int64 }

// Map calls fn with the content of a file and with the parts of it that cannot be read.
//
// Those parts are zeros in data. The holes at the end of the file are left out, because
// Badger makes its files larger than what they hold. fn must not keep data, which is a
// mapping, or a copy if some of it cannot be read.
func Map(path string, fn func(data []byte, bad []Span) error) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	size, err := disk.DataEnd(file)
	if err != nil || size == 0 {
		return err
	}
	bad, err := probe(file, Span{0, size})
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		data, err := readWithout(bad, file, size)
		if err != nil {
			return err
		}
		return fn(data, bad)
	}

	data, err := z.Mmap(file, false, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, z.Munmap(data)) }()

	// A block may still go bad between the probe and the read.
	return Guard(path, func() error { return fn(data, nil) })
}

// readWithout reads a file, with zeros in the place of its bad parts.
func readWithout(bad []Span, file *os.File, size int64) ([]byte, error) {
	data := make([]byte, size)
	good := int64(0)
	for _, span := range append(bad, Span{size, size}) {
		if _, err := file.ReadAt(data[good:span.From], good); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		good = span.End
	}
	return data, nil
}

// Probe reads the data of a file and returns the parts that cannot be read.
func Probe(path string) ([]Span, error) {
	return ProbePart(path, Span{0, math.MaxInt64})
}

// ProbePart is Probe for a part of a file, which is extended to whole blocks.
func ProbePart(path string, part Span) ([]Span, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	size, err := disk.DataEnd(file)
	if err != nil {
		return nil, err
	}
	// From the start of a block: a block is good or bad as a whole.
	return probe(file, Span{part.From / BlockBytes * BlockBytes, min(size, part.End)})
}

// probe reads a part of a file that begins with a block.
func probe(file *os.File, part Span) (bad []Span, err error) {
	b := make([]byte, probeBytes)
	for at := part.From; at < part.End; at += probeBytes {
		n := min(probeBytes, part.End-at)
		// Badger may cut the file meanwhile: what is gone is not unreadable.
		if _, err := file.ReadAt(b[:n], at); err == nil || errors.Is(err, io.EOF) {
			continue
		} else if !disk.IsUnreadable(err) {
			return nil, err
		}

		// Some block in there is bad, or near. The others are good, so read them one by one.
		disk.ByPages(file)
		for block := at; block < at+n; block += BlockBytes {
			end := min(block+BlockBytes, at+n)
			_, err := file.ReadAt(b[:end-block], block)
			switch {
			case err == nil || errors.Is(err, io.EOF):
			case !disk.IsUnreadable(err):
				return nil, err
			case len(bad) > 0 && bad[len(bad)-1].End == block:
				bad[len(bad)-1].End = end
			default:
				bad = append(bad, Span{block, end})
			}
		}
	}
	return bad, nil
}

// Guard calls fn, which reads files through mappings, and returns an error if the disk
// fails under it.
//
// It protects only the calling goroutine, and what fn had locked stays locked. name is that
// of the file, or of the folder that it is in.
func Guard(name string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}

		// Only a memory fault has an address. Any other panic is a bug, and is raised
		// again.
		if _, ok := fault.(interface{ Addr() uintptr }); !ok {
			panic(fault)
		}
		err = &FaultError{name}
	}()

	return fn()
}

// FaultError means that the disk failed while a file was read through a mapping.
type FaultError struct{ Name string }

// Error names the file, or the folder that it is in.
func (e *FaultError) Error() string {
	return fmt.Sprintf("read %s: the disk failed under a mapped file", e.Name)
}

// Unwrap makes it an I/O error, so that disk.IsUnreadable recognises it.
func (e *FaultError) Unwrap() error { return disk.ErrBroken }

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
