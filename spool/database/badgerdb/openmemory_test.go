//go:build !race

package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// openHeapMax bounds the heap of a database that opens after a kill. It is space for four
// memtables of 42 MB, and for the builder of one memtable's table.
const openHeapMax = 256 << 20

// A kill leaves at most three full memtables: one that was being written, one that
// waited, and one that was becoming a table. The next start reads them back, and makes
// them tables one after the other.
func TestAfterAKillThreeMemtablesOpenInBoundedMemory(t *testing.T) {
	dir := t.TempDir()
	leaveMemtables(t, dir, 3)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(192 << 20)) // as the server does
	runtime.GC()

	begin, end := heapObjects(), make(chan struct{})
	most := make(chan uint64)
	go func() {
		n := uint64(0)
		for tick := time.Tick(time.Millisecond); ; {
			select {
			case <-end:
				most <- n
				return
			case <-tick:
				n = max(n, heapObjects())
			}
		}
	}()

	db, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}

	// The tables are made in the background.
	logs := func() int {
		mem, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
		return len(mem)
	}
	for tick := time.Tick(time.Millisecond); logs() > 1; <-tick {
	}

	close(end)
	held := <-most - begin
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MB at most", held>>20)
	if held < 4*badgerMemtable {
		t.Errorf("the heap held %d MB, less than four memtables: the measurement misses some", held>>20)
	}
	if held > openHeapMax {
		t.Errorf("the heap held %d MB, want at most %d", held>>20, openHeapMax>>20)
	}
}

// badgerMemtable is the least size of a memtable that is not empty.
const badgerMemtable = 32 << 20

// heapObjects returns the bytes of the heap that objects take.
func heapObjects() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)

	return s[0].Value.Uint64()
}

// leaveMemtables fills most of a memtable and copies its log, so that the folder looks as
// if a kill had left n memtables.
func leaveMemtables(t *testing.T, dir string, n int) {
	t.Helper()
	db, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}

	source := rand.NewPCG(1, 1)
	for range 7 {
		err := db.commit.do(context.Background(), 0, func(*badger.Txn) ([]write, error) {
			return randomWrites(source, 3500, 1000), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	logs, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
	if len(logs) != 1 {
		t.Fatalf("%d memtables, want one that is nearly full", len(logs))
	}
	log, err := os.ReadFile(logs[0])
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}

	for i := range n {
		file := filepath.Join(dir, fmt.Sprintf("%05d.mem", i+1))
		err := errors.Join(
			os.WriteFile(file, log[:badgerMemtable], 0o600),
			os.Truncate(file, int64(len(log))))
		if err != nil {
			t.Fatal(err)
		}
	}
}
