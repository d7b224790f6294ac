package badgerdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/databasetest"
)

// openIn opens a database. When the test ends, it is checked, unless it has failed, and
// closed.
func openIn(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Check(context.Background()); err != nil && !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("Check: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})

	return db
}

// hold stops commits from running. Changes made in the meantime wait, and share a group
// once release is called.
func hold(db *DB) (release func()) {
	release, _ = db.commit.Hold(nil)
	return release
}

// start makes a change on a goroutine of its own and returns once it waits. The channel
// gets the outcome.
func start(db *DB, bytes int, c change) <-chan error {
	before, answer := db.commit.Len(), make(chan error, 1)
	go func() { answer <- db.commit.do(context.Background(), bytes, c) }()
	for db.commit.Len() == before {
		runtime.Gosched()
	}

	return answer
}

// set writes one key of the account "test", in a table that Check does not know.
func set(name string) change {
	return func(*badger.Txn) ([]write, error) { return []write{{testKey(name), []byte("x")}}, nil }
}

func testKey(name string) []byte { return append(keys("\x01\x04test").table('z'), name...) }

// has reports whether the key that set writes exists.
func has(t *testing.T, db *DB, name string) bool {
	t.Helper()
	var value []byte
	err := db.view(func(txn *badger.Txn) (err error) {
		value, err = loadBytes(txn, testKey(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return value != nil
}

func TestWritersThatWaitShareOneTransaction(t *testing.T) {
	db := openIn(t, t.TempDir())
	release := hold(db)
	before := db.bdb.MaxVersion()

	var answers []<-chan error
	for i := range 20 {
		answers = append(answers, start(db, 10, set(fmt.Sprint(i))))
	}

	release()
	for i, answer := range answers {
		if err := <-answer; err != nil || !has(t, db, fmt.Sprint(i)) {
			t.Errorf("writer %d: %v", i, err)
		}
	}

	if n := db.bdb.MaxVersion() - before; n != 1 {
		t.Errorf("20 writers that waited made %d transactions, want 1", n)
	}
}

func TestAChangeThatFailsHarmsNoNeighbour(t *testing.T) {
	db := openIn(t, t.TempDir())
	failure := errors.New("no")
	release := hold(db)

	first := start(db, 0, set("first"))
	fails := start(db, 0, func(*badger.Txn) ([]write, error) {
		return []write{{testKey("fails"), []byte("x")}}, failure
	})
	tooLarge := start(db, 0, func(*badger.Txn) (writes []write, err error) {
		for i := range 10_000 {
			writes = append(writes, write{testKey(fmt.Sprint("large", i)), make([]byte, valueThreshold-1)})
		}
		return writes, nil
	})
	badKey := start(db, 0, func(*badger.Txn) ([]write, error) {
		return []write{{testKey(strings.Repeat("k", 70_000)), []byte("x")}}, nil
	})
	last := start(db, 0, set("last"))
	release()

	if err := <-fails; !errors.Is(err, failure) || has(t, db, "fails") {
		t.Errorf("the change that fails: %v", err)
	}
	if err := <-tooLarge; !wire.IsCode(err, wire.CodeTooLarge) || has(t, db, "large0") {
		t.Errorf("the change that is too large: %v", err)
	}
	if err := <-badKey; !wire.IsCode(err, wire.CodeTooLarge) {
		t.Errorf("the change with a key that is too long: %v", err)
	}
	for name, answer := range map[string]<-chan error{"first": first, "last": last} {
		if err := <-answer; err != nil || !has(t, db, name) {
			t.Errorf("the %s change: %v", name, err)
		}
	}
}

// loadCount reads a uint64; 0 if the key does not exist.
func loadCount(txn *badger.Txn, key []byte) (uint64, error) {
	raw, err := loadBytes(txn, key)
	if raw == nil || err != nil {
		return 0, err
	}

	if len(raw) != 8 {
		return 0, damaged(key, errors.New("it is not a number of 8 bytes"))
	}

	return binary.BigEndian.Uint64(raw), nil
}

func TestAGroupBeyondOneTransactionIsSplit(t *testing.T) {
	db := openIn(t, t.TempDir())
	release := hold(db)
	before := db.bdb.MaxVersion()

	var answers []<-chan error
	for b := range 8 {
		answers = append(answers, start(db, 0, func(txn *badger.Txn) (writes []write, err error) {
			// Each batch builds on the one before, even across the split.
			count, err := loadCount(txn, testKey("count"))
			for i := range 2000 {
				writes = append(writes, write{testKey(fmt.Sprint(b, "-", i)), make([]byte, valueThreshold-1)})
			}
			return append(writes, write{testKey("count"), []byte{7: byte(count + 1)}}), err
		}))
	}

	release()
	for i, answer := range answers {
		if err := <-answer; err != nil || !has(t, db, fmt.Sprint(i, "-1999")) {
			t.Errorf("batch %d: %v", i, err)
		}
	}

	var count uint64
	err := db.view(func(txn *badger.Txn) (err error) {
		count, err = loadCount(txn, testKey("count"))
		return err
	})
	if err != nil || count != 8 {
		t.Errorf("the last batch counted %d (%v), want 8", count, err)
	}
	if n := db.bdb.MaxVersion() - before; n < 2 {
		t.Errorf("10 MB of small values made %d transactions, want more than one", n)
	}
}

func TestCloseReleasesThoseWhoWait(t *testing.T) {
	db := openIn(t, t.TempDir())
	release := hold(db)
	answers := []<-chan error{start(db, 0, set("a")), start(db, 0, set("b"))}

	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	for _, answer := range answers {
		if err := <-answer; !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("a writer that waited: %v", err)
		}
	}

	release()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}

	_, applied := db.Apply(t.Context(), "a", nil)
	_, _, read := db.Record(t.Context(), "a", databasetest.ID(1))
	_, searched := db.Search(t.Context(), "a", query.Query{Limit: 1})
	for i, err := range []error{applied, read, searched} {
		if !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("call %d after Close: %v", i, err)
		}
	}
}

func TestACallThatNobodyWaitsForIsNotBegun(t *testing.T) {
	db := openIn(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.commit.do(ctx, 0, set("a")); !wire.IsCode(err, wire.CodeUnavailable) || has(t, db, "a") {
		t.Errorf("a write: %v", err)
	}
	if _, err := db.Search(ctx, "a", query.Query{Limit: 1}); err != nil {
		t.Errorf("a search of nothing: %v", err)
	}
}

func TestAfterAFailedFsyncNothingIsAcknowledgedUntilItIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir)
	if err := db.commit.do(t.Context(), 0, set("before")); err != nil {
		t.Fatal(err)
	}

	err := db.commit.do(t.Context(), 0, func(*badger.Txn) ([]write, error) {
		// Badger logs this while it commits the transaction, then reports success.
		db.commit.health.logOf(db.logger).Errorf(failedSync+": %v\n", "input/output error")
		return []write{{testKey("during"), []byte("x")}}, nil
	})
	if !wire.IsCode(err, wire.CodeUnavailable) {
		t.Errorf("the write whose fsync failed: %v", err)
	}
	err = db.commit.do(t.Context(), 0, set("after"))
	if !wire.IsCode(err, wire.CodeUnavailable) || has(t, db, "after") {
		t.Errorf("the write after the failed fsync: %v", err)
	}

	select {
	case err := <-db.Failed():
		if err == nil || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("Failed delivers %v", err)
		}
	default:
		t.Error("Failed delivers nothing, so the process goes on")
	}
	if !has(t, db, "before") {
		t.Error("a value written before the failed fsync can no longer be read")
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openIn(t, dir)
	if err := db.commit.do(t.Context(), 0, set("after")); err != nil || !has(t, db, "before") {
		t.Errorf("a write after opening again: %v", err)
	}
}

func TestBadgerStillSaysAFailedSyncInTheseWords(t *testing.T) {
	// The go command knows the folder. The binary does not, if it is built with -trimpath.
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/dgraph-io/badger/v4").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "value.go"))
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(string(source), `Errorf("`+failedSync) {
		t.Errorf("Badger's value.go no longer logs %q: find out how it reports a failed fsync now",
			failedSync)
	}
}

// mustApply folds events of an account.
func mustApply(t rapid.TB, db *DB, account string, events ...archive.Event) {
	t.Helper()
	if _, err := db.Apply(context.Background(), account, events); err != nil {
		t.Fatal(err)
	}
}
