package badgerdb_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
)

// A server whose folder was removed must not acknowledge writes, nor hang when it stops.
func TestNothingIsTakenOnceTheFolderIsGone(t *testing.T) {
	for name, writes := range map[string]bool{"a write meets it": true, "the stop meets it": false} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "archive")
			db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			mustApply(t, db, "a", request(t, 1, 10))
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}

			if writes {
				_, err := db.Apply(t.Context(), "a", []archive.Event{request(t, 2, 10)})
				if !wire.IsCode(err, wire.CodeUnavailable) {
					t.Errorf("a write to a removed folder returns %v, want the code unavailable", err)
				}
			}

			closed := make(chan error, 1)
			go func() { closed <- db.Close() }()
			select {
			case <-closed:
			case <-time.After(15 * time.Second):
				t.Fatal("Close hangs")
			}
		})
	}
}

// A server without writes notices as well.
func TestAnIdleDatabaseSeesThatItsFolderIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- db.Run(ctx) }()

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-db.Failed():
		if !strings.Contains(err.Error(), "is not there any more") {
			t.Errorf("Failed delivers %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the database does not notice that its folder is gone")
	}

	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
