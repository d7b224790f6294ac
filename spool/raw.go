package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// This file reads Badger's files as they lie on the disk, and changes nothing. Badger repairs what it opens by cutting off
// everything behind the first byte that is wrong, in the write-ahead log and in the value log alike. So a generation that
// was not closed is examined here before Badger sees it.

// frameRef is where a whole frame lies.
type frameRef struct {
	file   string
	offset int64
	key    eventKey // bytes is of this part
}

// evidence is what the raw files of a generation tell.
type evidence struct {
	// events maps a sequence to its frames by part, all of them whole. Incomplete events are left out.
	events map[uint64][]frameRef
	// committed is the last sequence that a write-ahead log says was committed; 0 if none is left.
	committed uint64
	// newest is the first sequence of the commit that committed belongs to.
	newest uint64
	// broken: Badger would cut off whole frames if it opened the generation for writing, or would not open it at all.
	broken bool
}

// examine reads the raw files of a generation. It fails only if they cannot be read.
func examine(dir string) (evidence, error) {
	ev := evidence{events: make(map[uint64][]frameRef)}
	valueLogs, err := filesBySuffix(dir, ".vlog")
	if err != nil {
		return ev, err
	}
	for _, path := range valueLogs {
		if err := mapped(path, func(data []byte) error { return ev.examineValueLog(path, data) }); err != nil {
			return ev, err
		}
	}
	ev.dropIncomplete()
	logs, err := filesBySuffix(dir, ".mem")
	if err != nil {
		return ev, err
	}
	for _, path := range logs {
		err := mapped(path, func(data []byte) error {
			if newest, last := lastCommitted(data); last > ev.committed {
				ev.newest, ev.committed = newest, last
			}
			ev.broken = ev.broken || !isPlain(data)
			return nil
		})
		if err != nil {
			return ev, err
		}
	}
	return ev, nil
}

// examineValueLog finds every whole frame in a value log.
func (ev *evidence) examineValueLog(path string, data []byte) error {
	ev.broken = ev.broken || !isPlain(data)
	chainEnd := 0
	for e := range logEntries(data) {
		chainEnd = e.end
	}
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(frameMagic))
		if i < 0 {
			return nil
		}
		at += i
		f, err := decodeFrame(data[at:])
		if errors.Is(err, errFrameNewer) {
			return err
		}
		if err != nil {
			at++
			continue
		}
		refs := ev.events[f.seq]
		if int(f.part) >= len(refs) {
			// Frames of one commit lie in any order.
			refs = append(refs, make([]frameRef, int(f.part)+1-len(refs))...)
		}
		refs[f.part] = frameRef{path, int64(at), eventKey{f.seq, f.part, f.parts, f.key, uint32(len(f.payload)), f.at}}
		ev.events[f.seq] = refs
		ev.broken = ev.broken || at > chainEnd
		at += frameHeaderBytes + len(f.payload)
	}
}

// dropIncomplete forgets events that lack a frame.
func (ev *evidence) dropIncomplete() {
	for seq, refs := range ev.events {
		if slices.ContainsFunc(refs, func(r frameRef) bool { return int(r.key.parts) != len(refs) }) {
			delete(ev.events, seq)
		}
	}
}

// agrees says whether Badger may open the generation: everything that was committed is whole, everything that is whole
// was committed, and nothing would be cut off.
func (ev *evidence) agrees(first uint64) bool {
	if ev.broken {
		return false
	}
	n := uint64(0)
	for seq := range ev.events {
		if seq < first || seq > ev.committed {
			return false
		}
		n++
	}
	return ev.committed == 0 && n == 0 || n == ev.committed-first+1
}

// end is the sequence after the last one that was committed for certain or can be given back. Beyond the last one that a
// write-ahead log names, whole events count as long as they follow each other: they were committed and the log is
// damaged, or the crash came just before. An event after a hole belongs to a commit that never ended.
func (ev *evidence) end(first uint64) uint64 {
	end := max(first, ev.committed+1)
	for ev.events[end] != nil {
		end++
	}
	return end
}

// Layout of an entry in Badger's value log and write-ahead log (Badger 4.9.6, structs.go and memtable.go), behind
// a header of 20 bytes: meta, user meta, length of key, length of value and expiry as varints, key, value, CRC32C
// big-endian of all that. A key ends in 8 bytes of version.
const (
	logHeaderBytes    = 20
	logVersionBytes   = 8
	metaTransaction   = 1 << 6
	metaTransactionOK = 1 << 7
)

// isPlain says that the header of a log begins as that of one which is not encrypted: the number of the key, 8 bytes, is 0. Badger
// does not open a log with another.
func isPlain(data []byte) bool {
	return bytes.Equal(data[:min(8, len(data))], make([]byte, min(8, len(data))))
}

type logEntry struct {
	meta byte
	key  []byte // without version
	end  int    // offset of what follows
}

// logEntries yields the entries of one of Badger's logs up to the first one that does not verify, as Badger does.
func logEntries(data []byte) iter.Seq[logEntry] {
	return func(yield func(logEntry) bool) {
		for at := logHeaderBytes; at+2 < len(data); {
			h := at + 2
			var lengths [3]uint64
			for i := range lengths {
				n, size := binary.Uvarint(data[h:])
				if size <= 0 {
					return
				}
				lengths[i], h = n, h+size
			}
			keyBytes, valueBytes := lengths[0], lengths[1]
			if keyBytes < logVersionBytes || keyBytes > 1<<16 || valueBytes > 1<<31 || uint64(h)+keyBytes+valueBytes+4 > uint64(len(data)) {
				return
			}
			sumAt := h + int(keyBytes+valueBytes)
			if binary.BigEndian.Uint32(data[sumAt:]) != crc32.Checksum(data[at:sumAt], castagnoli) {
				return
			}
			e := logEntry{data[at], data[h : h+int(keyBytes)-logVersionBytes], sumAt + 4}
			if !yield(e) {
				return
			}
			at = e.end
		}
	}
}

// lastCommitted returns the first and the last sequence of the last finished transaction of a
// write-ahead log; 0 and 0 if there is none.
func lastCommitted(data []byte) (first, last uint64) {
	var open span // of the transaction that is being read; end is its last sequence
	for e := range logEntries(data) {
		if k, ok := decodeEventKey(e.key); ok {
			if open.from == 0 {
				open.from = k.seq
			}
			open.from, open.end = min(open.from, k.seq), max(open.end, k.seq)
		}
		if e.meta&metaTransactionOK == 0 {
			continue
		}

		if open.end > last {
			first, last = open.from, open.end
		}
		open = span{}
	}
	return first, last
}

// mapped calls fn with the content of a file, up to its last block of data, which must not be kept. Badger makes its files
// larger than what they hold; reading those holes would fill the page cache with zeros.
func mapped(path string, fn func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := dataEnd(file)
	if err != nil || size == 0 {
		return err
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	return errors.Join(fn(data), unix.Munmap(data))
}

// dataEnd is where the last data of a sparse file ends.
func dataEnd(file *os.File) (end int64, err error) {
	for {
		data, err := file.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return end, nil // nothing but holes follow
		}
		if err != nil {
			return 0, err
		}
		if end, err = file.Seek(data, unix.SEEK_HOLE); err != nil {
			return 0, err
		}
	}
}
