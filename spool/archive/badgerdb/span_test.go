package badgerdb_test

import (
	"testing"
	"time"

	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/badgerdb"
)

func TestSpansGoWithTheRetention(t *testing.T) {
	archivetest.RunSpanRetention(t, func(now time.Time) archive.Store {
		db, err := badgerdb.Open(badgerdb.Config{
			Dir:    t.TempDir(),
			Logger: quiet,
			Now:    func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeChecked(t, db) })
		return db
	})
}
