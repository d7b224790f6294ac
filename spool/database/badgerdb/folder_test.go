package badgerdb_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/disk/disktest"
)

// request returns the nth request of an account, with a prompt of the given size.
func request(t testing.TB, n, bytes int) archive.Event {
	t.Helper()
	return databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1_000_000+n),
		`{"function_name":"f","kwargs":{"prompt":"`+noise(bytes)+`"}}`)
}

// noise returns a text of n bytes that does not compress.
func noise(n int) string { return noisy()[:n] }

var noisy = sync.OnceValue(func() string {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[r.Uint64()%64]
	}
	return string(b)
})

// oneRecord makes a database with one record in it, closes it and returns its folder.
func oneRecord(t *testing.T, bytes int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, db, "a", request(t, 1, bytes))
	closeChecked(t, db)

	return dir
}

func TestTheFolderIsForItsOwnerOnly(t *testing.T) {
	info, err := os.Stat(oneRecord(t, 10))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v (%v), want 0700", info.Mode(), err)
	}
}

// writeFormat replaces the format that a folder declares.
func writeFormat(dir, text string) error {
	return os.WriteFile(filepath.Join(dir, "FORMAT"), []byte(text), 0o600)
}

func TestAFolderThatCannotBeReadWholeIsRefusedAndLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name, says string
		harm       func(dir string) error
	}{
		{"a newer format", "restore a backup", func(dir string) error {
			return writeFormat(dir, "promptspool database, format 10\n")
		}},
		{"a format of before 0.1.0", "before 0.1.0", func(dir string) error {
			return writeFormat(dir, "promptspool database, format 8\n")
		}},
		{"a format that says nothing", "backup", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "FORMAT"), nil, 0o600)
		}},
		{"no format: a Badger of somebody else", "another folder", func(dir string) error {
			return os.Remove(filepath.Join(dir, "FORMAT"))
		}},
		{"no MANIFEST", "MANIFEST", func(dir string) error {
			return os.Remove(filepath.Join(dir, "MANIFEST"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := oneRecord(t, 10)
			if err := c.harm(dir); err != nil {
				t.Fatal(err)
			}

			before := names(t, dir)
			_, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Open returns %v, want an error with %q", err, c.says)
			}
			if after := names(t, dir); after != before {
				t.Errorf("the folder held %s before, and holds %s now", before, after)
			}
		})
	}
}

func TestADamagedBodyIsAnErrorAndNeverAnotherBody(t *testing.T) {
	dir := oneRecord(t, 5000)
	flip(t, dir, ".vlog", noise(5000)[2000:2100])
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}

	_, body, err := db.Record(t.Context(), "a", databasetest.ID(1_000_001))
	if !wire.IsCode(err, wire.CodeInternal) || body != nil {
		t.Errorf("the body is %.20q (%v), want an internal error", body, err)
	}
	if who := wire.AsError(err).Affects; who != wire.AffectsAccount {
		t.Errorf("it affects %q, want the account whose body it is", who)
	}
	if err := db.Check(t.Context()); err == nil {
		t.Error("Check does not find the damage")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// names lists the files in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, e := range entries {
		s = append(s, e.Name())
	}

	return strings.Join(s, " ")
}

// flip inverts one bit of text, in the first file with this extension that contains it.
func flip(t *testing.T, dir, extension, text string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*"+extension))
	for _, path := range files {
		content, err := disktest.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := bytes.Index(content, []byte(text))
		if found < 0 {
			continue
		}
		at := found + len(text)/2

		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteAt([]byte{content[at] ^ 1}, int64(at))
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no %s file contains the text", extension)
}

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
