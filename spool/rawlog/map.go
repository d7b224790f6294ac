// Package rawlog reads Badger's value log and write-ahead log without Badger, and changes
// nothing. It also passes on what Badger logs.
//
// Badger reads its files through mappings, where a block that the disk cannot read ends
// the process. This package finds such a block by reading, and puts zeros in its place.
package rawlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
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
	bad, err := probe(file, size)
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
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	size, err := disk.DataEnd(file)
	if err != nil {
		return nil, err
	}
	return probe(file, size)
}

// probe reads the first bytes of a file. A block is good or bad as a whole.
func probe(file *os.File, size int64) (bad []Span, err error) {
	b := make([]byte, probeBytes)
	for at := int64(0); at < size; at += probeBytes {
		n := min(probeBytes, size-at)
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

	metaTransactionEnd = 1 << 7
)

// Entry is one entry of a log. Its Key aliases the log's data.
type Entry struct {
	Key  []byte // without version
	End  int    // offset of what follows
	Ends bool   // it is the mark at the end of a transaction
}

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

	sumAt := h + int(keyBytes+valueBytes)
	e := Entry{
		Key:  data[h : h+int(keyBytes)-versionBytes],
		End:  sumAt + 4,
		Ends: data[at]&metaTransactionEnd != 0,
	}
	return e, binary.BigEndian.Uint32(data[sumAt:]) == disk.Checksum(data[at:sumAt])
}
