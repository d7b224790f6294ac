package badgerdb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"google.golang.org/protobuf/proto"

	"promptspool/spool/rawlog"
)

// dropTable sets a table aside and takes it out of the MANIFEST, without which Badger would not
// open. It returns how much of it cannot be read.
func (s *salvage) dropTable(path string) (bytes int64, err error) {
	bad, err := rawlog.Probe(path)
	if err != nil {
		return 0, err
	}
	for _, span := range bad {
		bytes += span.End - span.From
	}

	if err := s.keep(path); err != nil {
		return 0, err
	}
	if id, ok := table.ParseFileID(filepath.Base(path)); ok {
		if err := s.forgetTable(id); err != nil {
			return 0, err
		}
	}
	return bytes, os.Remove(path)
}

// forgetTable appends to the MANIFEST that a table was deleted, as Badger does.
func (s *salvage) forgetTable(id uint64) error {
	file, err := os.OpenFile(filepath.Join(s.dir, badger.ManifestFilename), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	manifest, end, err := badger.ReplayManifestFile(file, 0, badger.DefaultOptions(s.dir))
	if err != nil {
		return err
	}
	if _, known := manifest.Tables[id]; !known {
		return nil // Badger would have deleted it
	}

	change := &pb.ManifestChange{Id: id, Op: pb.ManifestChange_DELETE}
	set, err := proto.Marshal(&pb.ManifestChangeSet{Changes: []*pb.ManifestChange{change}})
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(set)))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(set, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	_, err = file.Write(append(head, set...))
	return errors.Join(err, file.Truncate(end+int64(len(head)+len(set))), file.Sync())
}
