package folder

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
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
