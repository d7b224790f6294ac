package folder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/dgraph-io/ristretto/v2/z"
	"google.golang.org/protobuf/proto"

	"promptspool/spool/disk"
	"promptspool/spool/rawlog"
)

// Badger reads its files through mappings, in its own goroutines as well. Where the
// disk cannot read a block, the process dies of a fault, at every start. So what Badger
// reads while it opens is read beforehand without a mapping, and a file with a bad block
// is replaced by what can be read of it.

const (
	quarantineName = "quarantine" // the folder of files that could not be read; nothing deletes them
	salvageSuffix  = ".salvage"   // of a file being written to replace another
)

// Quarantined returns how many files of a folder were ever moved to its quarantine.
func Quarantined(dir string) int {
	// It is usually missing.
	entries, _ := os.ReadDir(filepath.Join(dir, quarantineName))
	return len(entries)
}

// salvage replaces the files that the disk cannot read.
type salvage struct {
	options badger.Options // of the tables
	dir     string
	readAll bool // read all of every file, not just what Badger reads while it opens
	logger  *slog.Logger
	bytes   int64 // that could not be read
}

// run probes all files, and repairs those with bad blocks. The caller has locked the
// folder.
func (s *salvage) run() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}

	if s.readAll {
		s.logger.Info("reading every file before opening it, to find what the disk cannot read; this may take a while")
	}

	// The newest value log: entries are sorted by name.
	newest := ""
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".vlog" {
			newest = e.Name()
		}
	}

	// In the folder itself: what is in quarantine is not read again.
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if !e.Type().IsRegular() {
			continue
		}

		// Leftovers of an interrupted repair.
		if filepath.Ext(path) == salvageSuffix {
			if err := disk.Remove(path); err != nil {
				return err
			}
			continue
		}

		part, err := s.partToRead(path, e.Name() == newest)
		if err != nil {
			return err
		}

		// Without a mapping: the kernel then returns an error instead of a signal.
		bad, err := rawlog.ProbePart(path, part)
		if err == nil && len(bad) > 0 {
			err = s.repair(path)
		}
		if err != nil {
			return err
		}
	}

	// Once at the end: one file may be unreadable without any data being lost.
	if s.bytes > 0 {
		s.logger.Error("the archive starts without what was lost. "+
			"Restore a backup, or run `promptspool archive check` "+
			"to see whether it is intact. Changes may be undone, including deletions and revoked keys",
			"unreadable_bytes", s.bytes)
	}

	return nil
}

// partToRead returns the part of a file that must be readable before Badger opens it.
func (s *salvage) partToRead(path string, newest bool) (part rawlog.Span, err error) {
	part.End = 1 << 62
	switch filepath.Ext(path) {
	case ".mem":
	case ".vlog":
		// Badger replays the newest one, and reads the headers of the others.
		if !newest && !s.readAll {
			part.End = rawlog.HeaderBytes
		}
	case ".sst":
		if !s.readAll {
			part.From, err = tableEnd(path)
		}
	default:
		// Files of ours, and of others, are not Badger's to read.
		switch filepath.Base(path) {
		case "DISCARD", "KEYREGISTRY", "MANIFEST":
		default:
			part.End = 0
		}
	}

	return part, err
}

// tableEnd returns the offset from which Badger reads a table while it opens it: its last
// block, its index, and the lengths of the index and of its checksum, each of which
// follows what it measures.
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

	// Badger ends a block once it is larger than 4 KiB.
	const blockBytes = 8 << 10

	// From the end: the checksum with its length, then the index with its own.
	from := size
	for range 2 {
		var length [4]byte
		from -= int64(len(length))
		if _, err := file.ReadAt(length[:], max(0, from)); disk.IsUnreadable(err) {
			// The probe will find it.
			return max(0, from), nil
		} else if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		from -= int64(binary.BigEndian.Uint32(length[:]))
	}
	return max(0, from-blockBytes), nil
}

// repair replaces a file by what can be read of it.
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
				"restore the archive from a backup (promptspool restore): %w", path, disk.ErrBroken)
		}

		// Badger makes a new one, and needs nothing of the old.
		err = s.keep(path)
		if err == nil {
			err = disk.Remove(path)
		}
	}

	if err == nil {
		err = disk.SyncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("move %s, which the disk cannot read, to quarantine: %w", path, err)
	}

	// For each file: only the log will ever tell what was lost.
	s.bytes += bytes
	s.logger.Error("a part of a file cannot be read; the file is in quarantine, and what can be read of it is used",
		"file", path, "unreadable_bytes", bytes, "lost", lost, "quarantine", filepath.Join(s.dir, quarantineName))

	return nil
}

// keep links a file into the quarantine, under a name that is free there.
func (s *salvage) keep(path string) error {
	folder := filepath.Join(s.dir, quarantineName)

	// A link takes no space on a disk that may be full, and leaves the file as it is.
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}

	// A file of this name may be there from before, and must stay.
	target := filepath.Join(folder, filepath.Base(path))
	for n := 2; ; n++ {
		err := os.Link(path, target)
		if !errors.Is(err, os.ErrExist) {
			return errors.Join(err, disk.SyncDir(folder))
		}
		target = filepath.Join(folder, fmt.Sprintf("%s-%d", filepath.Base(path), n))
	}
}

// rewrite replaces a log by what write makes of it, and returns how much of it cannot be
// read. After a crash one or the other is there.
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

	// Durable before it takes the place of the old file, which keep has linked elsewhere.
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = s.keep(path)
	}
	if err != nil {
		return bytes, errors.Join(err, disk.Remove(file.Name()))
	}

	return bytes, disk.Rename(file.Name(), path)
}

// errNoTable means that a table cannot be read: its index is damaged, or each of its blocks.
var errNoTable = errors.New("the table cannot be read")

// salvageTable replaces a table by one of those blocks that can be read, which takes its
// place in the MANIFEST. A table whose index or whose blocks cannot be read is dropped.
func (s *salvage) salvageTable(path string) (bytes int64, err error) {
	bytes, err = s.rewrite(path, func(w io.Writer, data []byte, _ []rawlog.Span) error {
		content, err := wholeBlocks(s.options, path, data)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	if errors.Is(err, errNoTable) {
		return s.dropTable(path)
	}
	return bytes, err
}

// wholeBlocks returns a table of those blocks of another table that verify.
func wholeBlocks(o badger.Options, path string, data []byte) (content []byte, err error) {
	defer func() {
		// Badger trusts what it reads, and panics.
		if damage := recover(); damage != nil {
			content, err = nil, errNoTable
		}
	}()

	pool := z.NewAllocatorPool(1)
	defer pool.Release()
	options := table.Options{
		TableSize:          uint64(len(data)),
		BlockSize:          o.BlockSize,
		BloomFalsePositive: o.BloomFalsePositive,
		ChkMode:            o.ChecksumVerificationMode,
		Compression:        o.Compression,
		AllocPool:          pool,
	}
	b := table.NewTableBuilder(options)
	defer b.Close()

	// It is opened for its name only.
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := table.OpenTable(&z.MmapFile{Data: data, Fd: file}, options)
	// Its index, or its last block, cannot be read.
	if err != nil {
		return nil, errNoTable
	}

	// Block by block: an iterator over the whole table would end at the first bad one.
	// The first key of each block.
	starts := t.KeySplits(math.MaxInt, nil)
	for i := range starts {
		end := []byte(nil)
		if i+1 < len(starts) {
			end = []byte(starts[i+1])
		}
		addBlock(b, t, []byte(starts[i]), end)
	}

	// Nothing could be read, so there is no table to put in its place.
	if b.Empty() {
		return nil, errNoTable
	}
	return b.Finish(), nil
}

// addBlock adds one block of a table, from a key on and before another, if it can be
// read. A nil end is that of the table.
func addBlock(b *table.Builder, t *table.Table, from, end []byte) {
	it := t.NewIterator(table.NOCACHE)
	defer it.Close()
	for it.Seek(from); it.Valid() && (end == nil || y.CompareKeys(it.Key(), end) < 0); it.Next() {
		b.Add(it.Key(), it.Value(), 0)
	}
}

// dropTable moves a table to quarantine and removes it from the MANIFEST: Badger does not open
// without a table that the MANIFEST names. It returns the size of the table.
func (s *salvage) dropTable(path string) (bytes int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}

	// Kept first: if more of it can be read later, it is in quarantine.
	if err := s.keep(path); err != nil {
		return 0, err
	}

	// First the MANIFEST: a file that it does not name is only in the way.
	if id, ok := table.ParseFileID(filepath.Base(path)); ok {
		if err := s.forgetTable(id); err != nil {
			return 0, err
		}
	}
	return info.Size(), disk.Remove(path)
}

// forgetTable appends the deletion of a table to the MANIFEST, as Badger does.
func (s *salvage) forgetTable(id uint64) error {
	file, err := os.OpenFile(filepath.Join(s.dir, badger.ManifestFilename), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()

	// end is after the last whole change, which is where Badger would continue.
	manifest, end, err := badger.ReplayManifestFile(file, 0, badger.DefaultOptions(s.dir))
	if err != nil {
		return err
	}
	if _, known := manifest.Tables[id]; !known {
		// Badger would have deleted it.
		return nil
	}

	change := &pb.ManifestChange{Id: id, Op: pb.ManifestChange_DELETE}
	set, err := proto.Marshal(&pb.ManifestChangeSet{Changes: []*pb.ManifestChange{change}})
	if err != nil {
		return err
	}

	// As Badger frames each change: its length, its CRC32C, and then itself.
	head := binary.BigEndian.AppendUint32(nil, uint32(len(set)))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(set, crc32.MakeTable(crc32.Castagnoli)))

	// The file may end in a torn change, which is cut off.
	if _, err := file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	_, err = file.Write(append(head, set...))

	return errors.Join(err, file.Truncate(end+int64(len(head)+len(set))), file.Sync())
}
