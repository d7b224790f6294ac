package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A cursor remembers on disk how far the spool was acknowledged. The file has two slots, 4096 bytes apart, written in
// turn, so that a torn write leaves the other one. A slot, big-endian:
//
//	offset  bytes  field
//	     0      4  magic 'P' 'S' 'C' and format version 1
//	     4      8  count of writes; the higher one of two valid slots is the newer
//	    12      8  frontier: the lowest sequence that is not acknowledged
//	    20      8  next: the sequence that the next append would have got
//	    28      4  CRC32C of bytes 0 to 27
const (
	cursorMagic     = "PSC\x01"
	cursorSlotBytes = 32
	cursorSlotApart = 4096
)

type cursor struct {
	file   *os.File
	writes uint64
	cursorState
	// damaged is set when a slot was written and does not verify: the position may then be an older one.
	damaged bool
}

type cursorState struct{ frontier, next uint64 }

// openCursor opens or creates the file. A new or unreadable one says frontier 1, next 1.
func openCursor(path string) (*cursor, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	c, err := readCursor(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// An acknowledgement must not meet a full disk: it is what makes room.
	if err := allocate(file, 2*cursorSlotApart); err != nil {
		return nil, errors.Join(fmt.Errorf("spool: cannot make %s: %w", path, err), file.Close())
	}
	return c, nil
}

// readCursor reads both slots.
func readCursor(file *os.File) (*cursor, error) {
	c := &cursor{file: file, cursorState: cursorState{1, 1}}
	for slot := range int64(2) {
		b := make([]byte, cursorSlotBytes)
		n, err := file.ReadAt(b, slot*cursorSlotApart)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n == 0 && slot == 0 {
			break // a new file
		}
		if n == cursorSlotBytes && string(b) == string(make([]byte, cursorSlotBytes)) {
			continue // the second slot is written first
		}
		if string(b[:4]) != cursorMagic || binary.BigEndian.Uint32(b[28:]) != crc32.Checksum(b[:28], castagnoli) {
			c.damaged = true
			continue
		}
		if w := binary.BigEndian.Uint64(b[4:]); w > c.writes {
			c.writes = w
			c.cursorState = cursorState{binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint64(b[20:])}
		}
	}
	return c, nil
}

// save writes the state to the older slot and syncs it. It does nothing when the state is the one on disk.
func (c *cursor) save(s cursorState) error {
	if s == c.cursorState && c.writes > 0 {
		return nil
	}
	b := make([]byte, 0, cursorSlotBytes)
	b = append(b, cursorMagic...)
	b = binary.BigEndian.AppendUint64(b, c.writes+1)
	b = binary.BigEndian.AppendUint64(b, s.frontier)
	b = binary.BigEndian.AppendUint64(b, s.next)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if _, err := c.file.WriteAt(b, int64((c.writes+1)%2)*cursorSlotApart); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		return err
	}
	c.writes++
	c.cursorState = s
	return nil
}
