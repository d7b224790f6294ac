package badgerdb_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// A kill between naming a log and sizing it, or between cutting one and removing it,
// leaves a log of 0 bytes. The next start must be like any other.
func TestALogFileOfNoBytesStopsNoStart(t *testing.T) {
	for _, name := range []string{"00001.mem", "00007.mem", "000001.vlog", "000002.vlog", "000046.vlog"} {
		t.Run(name, func(t *testing.T) {
			dir := oneRecord(t, 5000)
			empty := filepath.Join(dir, name)
			if _, err := os.Lstat(empty); err == nil && name == "000001.vlog" {
				empty = filepath.Join(dir, "000000.vlog") // one that is being deleted, before all others
			}
			if err := os.WriteFile(empty, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			wantRecord(t, open(t, dir), 5000)
		})
	}
}

// The hint about another process must appear when there is one, and name it.
func TestOnlyALockedFolderSaysThatAnotherProcessUsesIt(t *testing.T) {
	dir := oneRecord(t, 10)
	first := open(t, dir)
	_, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	hint := fmt.Sprintf("another promptspool (pid %d)", os.Getpid())
	if err == nil || !strings.Contains(err.Error(), hint) {
		t.Errorf("opening a folder in use: %v", err)
	}
	wantRecord(t, first, 10)

	broken := oneRecord(t, 10)
	if err := os.WriteFile(filepath.Join(broken, "MANIFEST"), []byte("no manifest"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	_, err = badgerdb.Open(badgerdb.Config{Dir: broken, Logger: log})
	if err == nil || strings.Contains(err.Error(), "another promptspool") {
		t.Errorf("opening a damaged folder that nobody uses: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(broken, "LOCK")); err == nil {
		t.Error("a failed Open leaves its LOCK")
	}
}

// wantRecord reads the record that oneRecord made.
func wantRecord(t *testing.T, db *badgerdb.DB, bytes int) {
	t.Helper()
	state, body, err := db.Record(t.Context(), "a", databasetest.ID(1_000_001))
	if err != nil || len(state.History) != 1 || !strings.Contains(string(body), noise(bytes)) {
		t.Errorf("the record is not as it was written: %v", err)
	}
}
