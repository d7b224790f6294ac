package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Slots are two numbers in a small file, which are replaced together and durably.
//
// The file has two slots, 4096 bytes apart, that are written in turn, so that a torn write
// leaves the other one. A slot, big-endian:
//
//	offset  bytes  field
//	     0      4  magic and format version of the file
//	     4      8  count of writes; the higher one of two valid slots is the newer
//	    12     16  the numbers
//	    28      4  CRC32C of bytes 0 to 27
//
// Not safe for concurrent use.
type Slots struct {
	// Writes counts how often they were saved; 0 means that nothing was ever written, or
	// that nothing of it can be read.
	Writes uint64
	// Numbers are those that were saved last, as far as that can be told: see Sure.
	Numbers [2]uint64
	// Damaged is set when a slot was written and does not verify: the numbers may then be
	// older ones.
	Damaged bool

	file  *os.File // nil when they were only looked at
	magic string
	// unreadable is set when the disk cannot read a slot. It could not be overwritten
	// either.
	unreadable bool
}

const (
	slotBytes = 32
	slotApart = 4096
)

// OpenSlots opens or creates the file at path; Close it afterwards.
//
// magic is four bytes that name the kind of the numbers and its version. The file gets
// its blocks now, so that Save succeeds on a full disk.
func OpenSlots(path, magic string) (Slots, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Slots{}, err
	}
	s, err := readSlots(file, magic)
	if err != nil {
		return Slots{}, errors.Join(err, file.Close())
	}

	// A block that cannot be read could not be overwritten in place either, so use a new
	// file. A crash before the next save leaves something like a damaged one.
	if s.unreadable {
		err := errors.Join(file.Close(), Remove(path))
		if err == nil {
			file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		}
		if err != nil {
			return Slots{}, fmt.Errorf("spool: cannot make %s again: %w", path, err)
		}
		s.file, s.unreadable = file, false
	}

	// On a full disk, this file is written before anything is removed, so it must not
	// need a block.
	if err := Allocate(file, 2*slotApart); err != nil {
		return Slots{}, errors.Join(fmt.Errorf("spool: cannot make %s: %w", path, err), file.Close())
	}
	return s, nil
}

// encode returns the content of a slot.
func (s *Slots) encode(writes uint64, numbers [2]uint64) []byte {
	b := make([]byte, 0, slotBytes)
	b = append(b, s.magic...)
	b = binary.BigEndian.AppendUint64(b, writes)
	b = binary.BigEndian.AppendUint64(b, numbers[0])
	b = binary.BigEndian.AppendUint64(b, numbers[1])
	return binary.BigEndian.AppendUint32(b, Checksum(b))
}

// PeekSlots reads the file at path without changing anything. A file that does not exist
// is like one that was never written.
func PeekSlots(path, magic string) (Slots, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return Slots{}, nil
	}
	if err != nil {
		return Slots{}, err
	}

	// Without the file nothing can be saved by mistake.
	s, err := readSlots(file, magic)
	s.file = nil
	return s, errors.Join(err, file.Close())
}

// readSlots takes the numbers from the newer one of the slots that verify.
func readSlots(file *os.File, magic string) (Slots, error) {
	s := Slots{file: file, magic: magic}
	for slot := range int64(2) {
		b := make([]byte, slotBytes)
		n, err := file.ReadAt(b, slot*slotApart)
		if IsUnreadable(err) {
			s.Damaged, s.unreadable = true, true
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return s, err
		}

		if n == 0 && slot == 0 {
			// It is a new file.
			break
		}
		if n == slotBytes && string(b) == string(make([]byte, slotBytes)) {
			// The second slot is written first.
			continue
		}

		if string(b[:4]) != magic || binary.BigEndian.Uint32(b[28:]) != Checksum(b[:28]) {
			s.Damaged = true
			continue
		}
		// Both slots may verify. The numbers alone do not show which are newer.
		if w := binary.BigEndian.Uint64(b[4:]); w > s.Writes {
			s.Writes = w
			s.Numbers = [2]uint64{binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint64(b[20:])}
		}
	}
	return s, nil
}

// Sure reports whether the numbers are certainly those that were written last.
func (s *Slots) Sure() bool { return s.Writes > 0 && !s.Damaged }

// Save makes the numbers durable, in the older slot. It does nothing if they are already
// on disk.
func (s *Slots) Save(numbers [2]uint64) error {
	// An idle spool asks for this each second, and must not keep its disk awake.
	if numbers == s.Numbers && s.Sure() {
		return nil
	}

	if _, err := s.file.WriteAt(s.encode(s.Writes+1, numbers), int64((s.Writes+1)%2)*slotApart); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}

	// A damaged slot is the one that was overwritten just now, unless both were damaged.
	s.Writes++
	s.Numbers, s.Damaged = numbers, false
	return nil
}

// Path returns the name that the file was opened with.
func (s *Slots) Path() string { return s.file.Name() }

// Close closes the file, if it was opened. Nothing is written by that.
func (s *Slots) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
