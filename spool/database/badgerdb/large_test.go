//go:build !race

package badgerdb_test

import (
	"testing"

	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// alone leaves rows alone.
func alone(*badgerdb.DB) {}

func TestArchive(t *testing.T) { databasetest.Run(t, openWith((*badgerdb.DB).PackEagerly)) }

func TestArchiveOfRowsAlone(t *testing.T) {
	databasetest.RunWriters(t, openWith(alone))
	databasetest.Run(t, openWith(alone))
	databasetest.RunDrawn(t, openWith(alone), 10)
}

func TestArchiveDrawn(t *testing.T) {
	databasetest.RunDrawn(t, databasetest.PackingBodies(openWith((*badgerdb.DB).PackEagerly)), 20)
}

func TestLargeArchive(t *testing.T) { databasetest.RunLarge(t, openWith(alone)) }

func TestALargeRecordIsNotWrittenWithEachEvent(t *testing.T) {
	db := open(t, t.TempDir())
	db.DeltasFrom(2000)
	databasetest.RunWritten(t, db, 160, db.Written)
}

func TestMove(t *testing.T) {
	empty := func(t *testing.T) databasetest.Server { return open(t, t.TempDir()) }
	packed := func(t *testing.T) databasetest.Server {
		db := open(t, t.TempDir())
		db.PackEagerly()
		return db
	}
	databasetest.RunMove(t, empty, packed)
}

func TestUsageIsWhatStatisticsSay(t *testing.T) {
	dir := t.TempDir()
	var db *badgerdb.DB
	databasetest.RunUsage(t, 15, func(usage *metrics.Usage) archive.Store {
		if db != nil {
			closeChecked(t, db)
		}
		var err error
		db, err = badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet, Usage: usage})
		if err != nil {
			t.Fatal(err)
		}
		return db
	})
	closeChecked(t, db)
}
