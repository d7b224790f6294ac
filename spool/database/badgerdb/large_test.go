//go:build !race

package badgerdb_test

import (
	"errors"
	"testing"
	"time"

	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// alone leaves rows alone.
func alone(*badgerdb.DB) {}

func TestArchiveOfRowsAlone(t *testing.T) {
	databasetest.Run(t, openWith(alone))
	databasetest.RunDrawn(t, openWith(alone))
}

func TestArchiveDrawn(t *testing.T) { databasetest.RunDrawn(t, openWith((*badgerdb.DB).PackEagerly)) }

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

// setExcerpts returns a Change that gives all records this excerpt.
func setExcerpts(excerpt string) archive.Change {
	return func(_ time.Time, r *archive.Request, _ func() ([]byte, error)) (bool, error) {
		r.InputExcerpt = excerpt
		return true, nil
	}
}

// All other writers wait for a step, so heavy records get more and smaller ones.
func TestAStepOfARewriteIsBoundedByBytes(t *testing.T) {
	const records = 12
	db := open(t, t.TempDir())
	for n := range records {
		mustApply(t, db, "a", request(t, n, 1<<20))
	}

	// What was changed before an error stays if it was changed in an earlier step.
	seen, failed := 0, errors.New("enough")
	set := setExcerpts("new")
	_, _, err := archive.Rewrite(t.Context(), db, "a", nil, records,
		func(at time.Time, r *archive.Request, body func() ([]byte, error)) (bool, error) {
			if seen++; seen == records {
				return false, failed
			}
			return set(at, r, body)
		})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}

	changed := 0
	for n := range records {
		state, _, err := db.Bodies(t.Context(), "a", databasetest.ID(1_000_000+n))
		if err != nil {
			t.Fatal(err)
		}
		if state.Request.Value.InputExcerpt == "new" {
			changed++
		}
	}
	if changed < records-4 {
		t.Errorf("%d of %d records are in steps of their own, want all but the last few", changed, records)
	}
}
