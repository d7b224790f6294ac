package spool

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
	"promptspool/spool/frame"
	"promptspool/spool/rawlog"
)

// rebuild writes the whole events of a damaged generation, from <= sequence < end, to its
// next edition, which takes its place, and returns the name of that.
//
// The damaged folder goes to quarantine if something is missing from it. Otherwise it is
// removed, because it holds nothing more.
func (s *Spool) rebuild(name string, ev evidence, from, end uint64) (string, error) {
	first, edition, _ := parseGenerationName(name)
	rebuilt := generationName(first, edition+1)
	build := s.path(buildPrefix + rebuilt)
	if err := os.RemoveAll(build); err != nil {
		return "", err
	}

	capacity := capacityFor(ev)
	if err := s.guard.freeBallast(generationRoom(capacity) + sealRoom); err != nil {
		return "", err
	}
	if err := os.Mkdir(build, 0o700); err != nil {
		return "", err
	}

	// Without SyncWrites: nobody reads the build before it has its name, so it is enough
	// to sync it once, when it is closed.
	options := generationOptions(build, capacity, s.storeLog()).WithMemTableSize(recoveryMemTableBytes)
	db, err := createDatabase(options, capacity)
	if err != nil {
		err = fmt.Errorf("spool: cannot rebuild %s%s: %w", s.path(name), disk.RoomAdvice(err), err)
		return "", errors.Join(err, os.RemoveAll(build))
	}

	kept := 0
	for _, seq := range slices.Sorted(maps.Keys(ev.events)) {
		if seq < from || seq >= end {
			continue
		}

		err := copyEvent(db, ev.events[seq])
		if rawlog.Unreadable(err) { // a block went bad since the files were examined
			delete(ev.events, seq)
			continue
		}
		if err != nil {
			return "", errors.Join(fmt.Errorf("spool: cannot rebuild %s: %w", s.path(name), err), db.Close())
		}
		kept++
	}

	if err := closeSealed(db); err != nil {
		return "", err
	}
	if err := errors.Join(os.Rename(build, s.path(rebuilt)), disk.SyncDir(s.config.Dir)); err != nil {
		return "", err
	}

	// Only now may the damaged edition go. After a crash in between, Open finds both, and
	// uses the newer one.
	missing := end - from - uint64(kept)
	s.config.Logger.Warn("a generation was rebuilt from its raw files",
		"generation", s.path(name), "events", kept, "missing", missing)
	if missing == 0 {
		return rebuilt, s.trash(name)
	}
	return rebuilt, s.quarantine(name)
}

// capacityFor returns the room that all events of the evidence need in one generation.
func capacityFor(ev evidence) (bytes int64) {
	for _, refs := range ev.events {
		for _, ref := range refs {
			bytes += int64(ref.key.Bytes) + frameOverheadBytes
		}
	}
	return bytes
}

// copyEvent commits the frames of one event as they are in the raw files, and verifies
// each again.
func copyEvent(db *badger.DB, refs []frameRef) error {
	size := uint32(0)
	for _, ref := range refs {
		size += ref.key.Bytes
	}

	txn := db.NewTransaction(true)
	defer txn.Discard()
	for _, ref := range refs {
		b := make([]byte, frame.HeaderBytes+int(ref.key.Bytes))
		if err := readAt(ref.file, b, ref.offset); err != nil {
			return err
		}
		f, err := frame.Decode(b)
		if err != nil {
			return err
		}

		// dropUncertain may have given the event another sequence.
		k := ref.key
		if f.Seq != k.Seq {
			f.Seq = k.Seq
			f.Seal(b)
		}

		k.Bytes = size
		if err := txn.Set(k.Encode(), b); err != nil {
			return err
		}
	}
	return txn.Commit()
}

func readAt(path string, b []byte, offset int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	_, err = file.ReadAt(b, offset)
	return err
}

// quarantine moves a folder or file aside, for a person to look at. Nothing removes it.
func (s *Spool) quarantine(name string) error {
	if err := os.MkdirAll(s.path(quarantineName), 0o700); err != nil {
		return err
	}

	target := s.path(quarantineName, filepath.Base(name))
	for n := 2; disk.Exists(target); n++ {
		target = s.path(quarantineName, fmt.Sprintf("%s-%d", filepath.Base(name), n))
	}
	if err := os.Rename(s.path(name), target); err != nil {
		return err
	}

	s.config.Logger.Error("what is damaged was set aside", "folder", target)
	return errors.Join(disk.SyncDir(s.path(quarantineName)), disk.SyncDir(filepath.Dir(s.path(name))))
}
