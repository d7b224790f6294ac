//go:build !race

package badgerdb

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/disk"
)

func TestABackupIsRestoredToTheSame(t *testing.T) {
	db := stocked(t, 50)
	file, made := backedUp(t, db)
	if made.Records != 52 || made.Keys < 52 {
		t.Errorf("the backup reports %+v, want 52 records", made)
	}

	dir := filepath.Join(t.TempDir(), "archive")
	restored, err := Restore(t.Context(), Config{Dir: dir}, bytes.NewReader(file), nil)
	if err != nil || restored != made {
		t.Fatalf("restored %+v (%v), want %+v", restored, err, made)
	}

	again, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, db), contents(t, again)); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}

	addRecord(t, again, 99) // the restored database takes writes
	if err := errors.Join(again.Check(t.Context()), again.Close()); err != nil {
		t.Error(err)
	}

	_, err = Restore(t.Context(), Config{Dir: dir}, bytes.NewReader(file), nil)
	if err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a second restore to the same place: %v", err)
	}
}

// An index has hashes of words, so whoever has its files could try whether a word was ever said. One
// that many have is known by groups of rows only, of which others stay.
func TestWordsOfErasedTextsAreInNoIndex(t *testing.T) {
	const n = 300
	var ofAnn []string
	for i := 0; i < n; i += 2 {
		ofAnn = append(ofAnn, databasetest.ID(1000+i))
	}
	for name, erase := range map[string]func(db *DB){
		"deleted": func(db *DB) {
			for _, id := range ofAnn {
				if _, err := archive.Delete(t.Context(), db, "a", wire.Deletion{RequestID: id}); err != nil {
					t.Fatal(err)
				}
			}
		},
		"masked": func(db *DB) {
			databasetest.Mask(t, db, "a", "zanzibar", ofAnn...)
			databasetest.Mask(t, db, "a", "quetzal", ofAnn...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := openIn(t, t.TempDir())
			db.packing = packing{every: 1 << 20, newest: 1, step: 2, inBlock: 1000, blocks: 9, rows: 4096,
				bytes: 1 << 22}
			var events []archive.Event
			for i := range n {
				text := "everybody"
				if i%2 == 0 {
					text += " zanzibar"
				}
				if i == 10 {
					text += " quetzal"
				}
				events = append(events, databasetest.Says(t, i, databasetest.ID(1000+i), text))
			}
			mustApply(t, db, "a", events...)
			k := keysOf("a")
			if err := db.pack(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			if indexed(t, db, "zanzibar") == 0 || indexed(t, db, "quetzal") == 0 || indexed(t, db, "narwhal") != 0 {
				t.Fatal("the test does not tell which words an index has")
			}

			erase(db)
			if err := db.Erase(t.Context()); err != nil {
				t.Fatal(err)
			}
			if indexed(t, db, "zanzibar") != 0 || indexed(t, db, "quetzal") != 0 {
				t.Error("an index still has a word that is in no text")
			}
			if indexed(t, db, "everybody") == 0 {
				t.Error("a word that others say is gone")
			}
		})
	}
}

// Rows that are too heavy for one block are packed into several, and do not change.
func TestBlocksOfHeavyRowsCanBeHeld(t *testing.T) {
	db := openIn(t, t.TempDir())
	k := keysOf("a")
	const bound = 64 << 10
	db.packing = packing{every: 1 << 20, newest: 2, step: 2, inBlock: 2, blocks: 100, rows: 100, bytes: bound}

	apply := func(n int, kind wire.Kind, record int, body string) {
		t.Helper()
		e := databasetest.Event(t, n, kind, databasetest.ID(1000+record), body)
		mustApply(t, db, "a", e)
	}
	pack := func() {
		t.Helper()
		if err := db.pack(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}

	const records = 40
	for i := range records {
		tags := "" // 10 to 30 KB
		for j := range 20 + i {
			tags += fmt.Sprintf(`"%d%s",`, j, strings.Repeat("x", 500))
		}
		apply(i, wire.KindRequest, i, `{"function_name":"x.y","tags":[`+tags+`"y"]}`)
	}
	pack()
	for i := range records { // each row stands alone again, within its block's range
		apply(records+i, wire.KindScore, i, `{"score":7}`)
	}
	pack()

	heaviest, n := 0, 0
	if err := db.view(func(txn *badger.Txn) error {
		spans, err := db.spans(t.Context(), txn, k)
		for _, s := range spans[1:] {
			heaviest, n = max(heaviest, s.head.Weight), n+1
			if s.lone >= db.packing.inBlock {
				t.Errorf("%d rows stand alone in a block", s.lone)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if heaviest > bound+bound/2 || n < 10 {
		t.Errorf("of %d blocks the heaviest has %d bytes; want at least 10, and at most %d bytes",
			n, heaviest, bound+bound/2)
	}
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheSpaceOfPackedBodiesIsGivenBack(t *testing.T) {
	dir := t.TempDir()
	db, later := clocked(t, dir)
	picture := ""
	for n := range 400 {
		picture += secretText(n)
	}
	for n := range 40 {
		body := fmt.Sprintf(`{"kwargs":{"picture":"%s","turn":%d},"metadata":{"session_id":"s"}}`, picture, n)
		mustApply(t, db, "a", databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), body))
	}
	before := disk.Used(dir, "")

	later(10 * time.Minute)
	pack(t, db)
	db.tidy(t.Context())
	// The files that are being written have blocks for what comes next.
	if after := disk.Used(dir, ""); dependent(t, db) != 39 || after > before-16<<20 {
		t.Errorf("the folder takes %d MB after %d of 40 bodies were packed, and took %d MB",
			after>>20, dependent(t, db), before>>20)
	}
}
