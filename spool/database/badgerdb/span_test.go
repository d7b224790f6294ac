package badgerdb_test

import (
	"testing"
	"time"

	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

func TestSpansGoWithTheRetention(t *testing.T) {
	databasetest.RunSpanRetention(t, func(now time.Time) archive.Store {
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
