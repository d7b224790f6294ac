package badgerdb

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"

	"promptspool/spool/database/badgerdb/folder"
)

// Badger keeps the memory in which it has built a table, and would keep that of eight
// tables.
func TestWhatABuilderOfATableLeavesIsFound(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	h := newHealth()
	bdb, err := badger.Open(badgerOptions(t.TempDir(), h.logOf(log)).
		WithBypassLockGuard(true).
		WithSyncWrites(false).
		WithMemTableSize(4 << 20))
	if err != nil {
		t.Fatal(err)
	}
	defer bdb.Close()

	lock, err := folder.Acquire(bdb.Opts().Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()

	c := newCommitter(lock, &freeSpace{dir: bdb.Opts().Dir, logger: log}, bdb, h, log)
	found := c.spare
	c.spare = spare{} // so that commits free nothing
	if found.pool == nil {
		t.Fatal("this Badger keeps its builders elsewhere: see spareOf")
	}

	source := rand.NewPCG(1, 1)
	for n := 0; found.release() < 4<<20; n++ {
		if n == 200 {
			t.Fatal("15 memtables were written, and no builder of a table left its memory")
		}
		err := c.do(context.Background(), 0, func(*badger.Txn) ([]write, error) {
			return randomWrites(source, 400, 1000), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// randomWrites returns n writes with random keys and values, which do not compress.
func randomWrites(source rand.Source, n, size int) []write {
	writes := make([]write, n)
	for i := range writes {
		value := make([]byte, 0, size+8)
		for len(value) < size {
			value = binary.LittleEndian.AppendUint64(value, source.Uint64())
		}
		writes[i] = write{key: testKey(string(value[:16])), value: value}
	}

	return writes
}

func TestACommitReleasesSpareMemory(t *testing.T) {
	t.Parallel()
	db := openIn(t, t.TempDir())
	commitReleases(t, db)
	// Erase reopens the database.
	if err := db.reopen(); err != nil {
		t.Fatal(err)
	}
	commitReleases(t, db)
}

// commitReleases checks that a commit frees the spare memory in Badger's pool.
func commitReleases(t *testing.T, db *DB) {
	t.Helper()
	pool := db.commit.spare.pool
	for range 3 {
		pool.Return(z.NewAllocator(1<<20, "a test"))
	}

	a := pool.Get(freshBytes, "a test")
	if a.Allocated() < 1<<20 {
		t.Fatal("the pool keeps nothing, so the test proves nothing")
	}
	a.Release()
	if err := db.commit.do(context.Background(), 1, set("a")); err != nil {
		t.Fatal(err)
	}

	a = pool.Get(freshBytes, "a test")
	defer a.Release()
	if n := a.Allocated(); n > freshBytes {
		t.Errorf("after a commit the pool holds %d bytes, want at most %d", n, freshBytes)
	}
}
