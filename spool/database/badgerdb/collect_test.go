package badgerdb

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// Badger alone brings a deleted key back: it copies the value from a value log that it
// rewrites, and merges the tombstone away before it merges the copy.
func TestRewritingAValueLogBringsNothingBack(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, db *DB, remove func()){
		"deleted before": func(t *testing.T, db *DB, remove func()) {
			remove()
			if err := db.reopen(); err != nil { // so that the tombstone is in a table
				t.Fatal(err)
			}
		},
		"deleted after the tables were merged for it": func(t *testing.T, db *DB, remove func()) {
			purged, err := db.purge(t.Context(), db.hold, 0)
			if err != nil || purged == 0 {
				t.Fatalf("nothing is deleted, and the tables are not purged: %v", err)
			}
			remove()
			if err := db.reopen(); err != nil {
				t.Fatal(err)
			}
			if err := db.collectOne(t.Context(), 0.2, purged); err != nil {
				t.Error(err)
			}
		},
		"merged while somebody read it": func(t *testing.T, db *DB, remove func()) {
			reader := db.bdb.NewTransaction(false)
			remove()
			if err := db.compact(db.hold, nil); err != nil {
				t.Fatal(err)
			}
			if err := db.collectOne(t.Context(), 0.2, 0); err == nil {
				t.Error("it collects, and somebody reads what is deleted")
			}
			reader.Discard()
			if keys, _, err := db.outlived(t.Context(), 0); err != nil || len(keys) != 1 {
				t.Fatalf("no value outlived its key (%v), so the test proves nothing", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := openIn(t, dir)
			set := func(name string, value []byte) {
				t.Helper()
				err := db.commit.do(t.Context(), 0, func(*badger.Txn) ([]write, error) {
					return []write{{testKey(name), value}}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}

			secret := bytes.Repeat([]byte("secret"), 1000)
			set("waste", secret[:5000])
			set("kept", bytes.Repeat([]byte("k"), 2000))
			set("k", secret)
			set("waste", nil)
			if err := errors.Join(db.reopen(), db.compact(db.hold, nil)); err != nil {
				t.Fatal(err)
			}
			if !db.wasteful(0.2) {
				t.Fatal("there is nothing to collect, so the test proves nothing")
			}

			remove(t, db, func() { set("k", nil) })
			if err := errors.Join(db.collect(t.Context(), 0.2), db.bdb.Flatten(1)); err != nil {
				t.Fatal(err)
			}
			if has(t, db, "k") {
				t.Error("a deleted key is there again")
			}
			if !has(t, db, "kept") || inFiles(t, dir, secret) {
				t.Error("another key is lost, or the value of the deleted one is still there")
			}
		})
	}
}
