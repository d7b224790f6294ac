package badgerdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"promptspool/spool/rawlog"
)

// Badger reads its files through mappings, also in goroutines of its own. Where the disk cannot read
// a block, that is a fault which ends the process, at every start. So what Badger reads while it
// opens is read before, without a mapping, and a file with a bad block is replaced by what can be
// read of it.

const (
	quarantineName = "quarantine" // the folder of the files that were set aside; nothing removes them
	salvageSuffix  = ".salvage"   // of a file that is being written to take another's place
)

// Damage is what the disk did to a database.
type Damage struct {
	Quarantined     int   // files that were set aside, ever
	UnreadableBytes int64 // what this process could not read of those that hold data: it is lost
}

// Damage tells what the disk did to the database.
func (db *DB) Damage() Damage {
	entries, _ := os.ReadDir(filepath.Join(db.dir, quarantineName)) // usually it is not there
	return Damage{len(entries), db.unreadable.Load()}
}

// salvage replaces the files that the disk cannot read.
type salvage struct {
	dir     string
	readAll bool // read every file whole, rather than what Badger reads while it opens
	logger  *slog.Logger
	bytes   int64 // that could not be read
}

// run looks at all files. The caller has locked the folder.
func (s *salvage) run() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	if s.readAll {
		s.logger.Info("every file is read before it is opened, to find what the disk cannot read; this may take a while")
	}
	newest := ""
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".vlog" {
			newest = e.Name()
		}
	}

	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if !e.Type().IsRegular() {
			continue
		}
		if filepath.Ext(path) == salvageSuffix {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		part, err := s.partToRead(path, e.Name() == newest)
		if err != nil {
			return err
		}
		bad, err := rawlog.ProbePart(path, part)
		if err == nil && len(bad) > 0 {
			err = s.repair(path)
		}
		if err != nil {
			return err
		}
	}
	if s.bytes > 0 {
		s.logger.Error("the archive starts without what was lost. Restore a backup, or run `promptspool archive check` "+
			"to see whether it is whole. Changes may be undone, also deletions and revoked keys", "unreadable_bytes", s.bytes)
	}

	return nil
}

// partToRead is the part of a file that must be readable before Badger opens it.
func (s *salvage) partToRead(path string, newest bool) (part rawlog.Span, err error) {
	part.End = 1 << 62
	switch filepath.Ext(path) {
	case ".mem":
	case ".vlog": // Badger replays the newest one, and reads the header of the others
		if !newest && !s.readAll {
			part.End = rawlog.HeaderBytes
		}
	case ".sst":
		if !s.readAll {
			part.From, err = tableEnd(path)
		}
	default:
		switch filepath.Base(path) {
		case "DISCARD", "KEYREGISTRY", "MANIFEST":
		default:
			part.End = 0
		}
	}
	return part, err
}

// tableEnd is from where on Badger reads a table while it opens it: its last block, its index, and
// the lengths of the index and of its checksum, each behind what it is of.
func tableEnd(path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}

	const blockBytes = 8 << 10 // Badger ends a block once it is larger than 4 KiB
	from := size
	for range 2 {
		var length [4]byte
		from -= int64(len(length))
		if _, err := file.ReadAt(length[:], max(0, from)); rawlog.Unreadable(err) {
			return max(0, from), nil // the probe meets it
		} else if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		from -= int64(binary.BigEndian.Uint32(length[:]))
	}
	return max(0, from-blockBytes), nil
}

// repair puts what can be read of a file in its place.
func (s *salvage) repair(path string) error {
	name, lost := filepath.Base(path), "nothing that was stored"
	var bytes int64
	var err error
	switch filepath.Ext(path) {
	case ".vlog":
		lost = "bodies of requests"
		bytes, err = s.rewrite(path, rawlog.SalvageValueLog)
	case ".mem":
		lost = "some of the newest changes"
		bytes, err = s.rewrite(path, rawlog.SalvageWriteAheadLog)
	case ".sst":
		lost = "records, or changes to them"
		bytes, err = s.salvageTable(path)
	default:
		if name == "MANIFEST" {
			return fmt.Errorf("%s, without which the tables cannot be read, has a bad block; "+
				"restore the archive from a backup (promptspool restore): %w", path, unix.EIO)
		}
		// Badger makes another one, and needs nothing of what was in it.
		if err = s.keep(path); err == nil {
			err = os.Remove(path)
		}
	}
	if err == nil {
		err = syncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("set aside %s, which the disk cannot read: %w", path, err)
	}
	s.bytes += bytes
	s.logger.Error("a part of a file cannot be read; the file was set aside, and what can be read of it is used",
		"file", path, "unreadable_bytes", bytes, "lost", lost, "set_aside", filepath.Join(s.dir, quarantineName))

	return nil
}

// keep gives a file another name in the quarantine.
func (s *salvage) keep(path string) error {
	folder := filepath.Join(s.dir, quarantineName)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	target := filepath.Join(folder, filepath.Base(path))
	for n := 2; ; n++ {
		err := os.Link(path, target)
		if !errors.Is(err, os.ErrExist) {
			return errors.Join(err, syncDir(folder))
		}
		target = filepath.Join(folder, fmt.Sprintf("%s-%d", filepath.Base(path), n))
	}
}

// rewrite replaces a log by what write makes of it, and returns how much of it cannot be read. A
// crash leaves one or the other.
func (s *salvage) rewrite(path string, write func(io.Writer, []byte, []rawlog.Span) error) (bytes int64, err error) {
	file, err := os.OpenFile(path+salvageSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	err = rawlog.Map(path, func(data []byte, bad []rawlog.Span) error {
		for _, span := range bad {
			bytes += span.End - span.From
		}
		return write(file, data, bad)
	})
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = s.keep(path)
	}
	if err != nil {
		return bytes, errors.Join(err, os.Remove(file.Name()))
	}
	return bytes, os.Rename(file.Name(), path)
}
