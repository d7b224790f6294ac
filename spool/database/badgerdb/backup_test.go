package badgerdb

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/database/databasetest"
)

// stocked opens a database with n records of one account beside those of harmed, some of
// them in blocks.
func stocked(t *testing.T, n int) *DB {
	t.Helper()
	db := harmed(t) // one record, a span and a template already
	db.PackEagerly()
	for i := range n {
		addRecord(t, db, i)
	}
	if err := db.PackBodies(t.Context()); err != nil {
		t.Fatal(err)
	}

	return db
}

// addRecord adds the ith record.
func addRecord(t *testing.T, db *DB, i int) {
	t.Helper()
	body := secretBody(i, fmt.Sprint("user-", i))
	e := databasetest.Event(t, 10_000+i, wire.KindRequest, databasetest.ID(20_000+i), body)
	mustApply(t, db, "a", e)
}

// backedUp returns the file of a backup, and what Backup reports about it.
func backedUp(t *testing.T, db *DB) ([]byte, Backup) {
	t.Helper()
	var out bytes.Buffer
	b, err := db.Backup(t.Context(), &out)
	if err != nil {
		t.Fatal(err)
	}

	return out.Bytes(), b
}

// contents returns all keys of a database with their values.
func contents(t *testing.T, db *DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	file, _ := backedUp(t, db)

	_, err := ReadBackup(bytes.NewReader(file), func(k, v []byte) error {
		all[string(k)] = string(v)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return all
}

func TestABackupIsOneMoment(t *testing.T) {
	db := stocked(t, 20)
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		i := 1000
		for ; ; i++ {
			select {
			case <-stop:
				stopped <- i - 1000
				return
			default:
				addRecord(t, db, i)
			}
		}
	}()

	for round := range 2 {
		file, _ := backedUp(t, db)
		// Restore checks that the database is consistent. A mixture of moments would not
		// be.
		dir := filepath.Join(t.TempDir(), fmt.Sprint(round))
		if _, err := Restore(t.Context(), Config{Dir: dir}, bytes.NewReader(file), nil); err != nil {
			t.Error(err)
		}
	}

	close(stop)
	if n := <-stopped; n < 10 {
		t.Errorf("only %d writes were made during the backups, want at least 10", n)
	}
}

func TestADamagedBackupIsNeverRestored(t *testing.T) {
	file, _ := backedUp(t, stocked(t, 5))
	parent := t.TempDir()

	try := func(what string, harmed []byte) {
		t.Helper()
		dir := filepath.Join(parent, "archive")
		if _, err := Restore(t.Context(), Config{Dir: dir}, bytes.NewReader(harmed), nil); err == nil {
			t.Errorf("%s: the backup was restored", what)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Fatalf("%s: a failed restore leaves %v", what, left)
		}
	}

	try("nothing", nil)
	try("something else", []byte("PK\x03\x04 and so on\n"))
	try("another form", bytes.Replace(file, []byte("format 1,"), []byte("format 9,"), 1))
	format := []byte(fmt.Sprintf("format %d\n", folder.Format))
	try("of another database", bytes.Replace(file, format, []byte("format 99\n"), 1))
	try("more behind it", append(bytes.Clone(file), 'x'))

	for cut := 1; cut < len(file); cut += len(file)/6 + 1 {
		try(fmt.Sprint("cut at ", cut), file[:cut])
	}
	for at := bytes.IndexByte(file, '\n') + 1; at < len(file); at += len(file)/6 + 1 {
		harmed := bytes.Clone(file)
		harmed[at] ^= 0x10
		try(fmt.Sprint("a bit at ", at), harmed)
	}
}

func TestADatabaseThatDisagreesIsNotRestored(t *testing.T) {
	db := harmed(t)
	k := keysOf("a")
	if err := db.exclusively(func(txn *badger.Txn) ([]write, error) {
		return []write{{k.count(), []byte(`{"records":9,"bytes":9}`)}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	file, _ := backedUp(t, db)
	dir := filepath.Join(t.TempDir(), "x")
	_, err := Restore(t.Context(), Config{Dir: dir}, bytes.NewReader(file), nil)
	if err == nil || !strings.Contains(err.Error(), "count") {
		t.Errorf("Restore of a database with a wrong count: %v", err)
	}
}

func FuzzReadBackup(f *testing.F) {
	f.Add([]byte("promptspool backup, format 1, of a database of format 2\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := ReadBackup(bytes.NewReader(file), nil)
		if err == nil && b.Keys > uint64(len(file))*1000 {
			t.Errorf("%d bytes hold %d keys", len(file), b.Keys)
		}
	})
}
