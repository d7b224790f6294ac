package badgerdb

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/disk"
)

// Size returns what all accounts hold together. It reads one key of each account, and no
// record.
func (db *DB) Size(context.Context) (s archive.Size, err error) {
	err = db.view(func(txn *badger.Txn) error {
		return eachAccount(txn, func(k keys) error {
			counts, err := loadCounts(txn, k)
			s.Records += uint64(counts.Records)
			s.Bytes += uint64(counts.Bytes)
			s.Orphans.Add(counts.Orphans)
			return err
		})
	})

	// Rows written since the last packing: a measure of how far packing lags.
	db.packMu.Lock()
	for _, rows := range db.unpacked {
		s.Unpacked += rows
	}
	db.packMu.Unlock()

	// Counted at the start and kept up since; walking over them would take long.
	s.Tombstones = db.tombstones.Load()
	s.DiskBytes = diskBytes(db.dir)
	return s, err
}

// Damage is what the disk has done to a database.
type Damage struct {
	Quarantined     int   // files moved to quarantine, ever
	UnreadableBytes int64 // of data that this process could not read: it is lost
}

// Damage returns what the disk has done to the database.
func (db *DB) Damage() Damage {
	return Damage{folder.Quarantined(db.dir), db.unreadable.Load()}
}

// diskBytes counts the disk blocks of all files below a folder. Files that vanish
// meanwhile count as nothing.
func diskBytes(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone, or unreadable: this is an estimate
		}

		if info, err := d.Info(); err == nil {
			bytes += disk.Blocks(info)
		}
		return nil
	})
	return bytes
}

// Counts returns what the account has; see archive.Store.
func (db *DB) Counts(_ context.Context, account string) (counts archive.Counts, err error) {
	k, err := keysOf(account)
	if err != nil {
		return counts, err
	}

	err = db.view(func(txn *badger.Txn) (err error) {
		counts, err = loadCounts(txn, k)
		return err
	})
	return counts, err
}

// loadCounts reads what an account has; zero if nothing was counted yet.
func loadCounts(txn *badger.Txn, k keys) (counts archive.Counts, err error) {
	_, err = load(txn, k.count(), &counts)
	return counts, err
}
