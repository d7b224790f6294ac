//go:build !portable

package badgerdb

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"promptspool/api/wire"
	"promptspool/metrics/partstest"
	"promptspool/spool/disk"
)

// Others take the last block while a change is made that was admitted before: the change is
// refused, or fits into what is reserved. A write to a mapping would end the process.
func TestADiskThatOthersFillDuringAChange(t *testing.T) {
	partstest.Need(t, "root")
	mount := t.TempDir()
	mounted := func(flags uintptr, bytes int64) {
		if err := unix.Mount("tmpfs", mount, "tmpfs", flags, fmt.Sprint("size=", bytes)); err != nil {
			t.Errorf("cannot mount a tmpfs: %v; this test needs root", err)
		}
	}
	mounted(0, 512<<20)
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	db := openIn(t, filepath.Join(mount, "data"))

	// The disk ends at its last byte that is used: bytes that are written instead take half a minute of virtual
	// machines that get their memory when they touch it.
	fill := func() {
		space, err := disk.SpaceAt(mount)
		if err != nil {
			t.Error(err)
		}
		mounted(unix.MS_REMOUNT, space.Total-space.Free)
	}
	empty := func() { mounted(unix.MS_REMOUNT, 512<<20) }
	set := func(key string, bytes int, meanwhile func()) error {
		return db.commit.do(t.Context(), bytes, func(*badger.Txn) ([]write, error) {
			meanwhile()
			return []write{{[]byte(key), make([]byte, bytes)}}, nil
		})
	}
	nothing := func() {}

	if err := set("before", 1<<20, nothing); err != nil {
		t.Fatal(err)
	}
	for round, next := range []func() error{
		db.reopen,
		func() error { return db.commit.ahead.reserve(collectBytes, collectBytes/8) },
		func() error { return db.commit.ahead.reserve(0, 0) },
	} {
		err := set("large", 150<<20, fill)
		if !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("round %d: more than is reserved on a disk that fills meanwhile: %v", round, err)
		}
		if err := set("small", 900, nothing); !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("round %d: a write on a full disk: %v", round, err)
		}

		empty()
		if err := set("small", 900, nothing); err != nil {
			t.Errorf("round %d: a write when there is space: %v", round, err)
		}
		for range 3 {
			if err := set("small", 900, fill); err != nil {
				t.Errorf("round %d: a write that fits into what is reserved: %v", round, err)
			}
			empty()
		}
		if err := next(); err != nil {
			t.Fatal(err)
		}
	}

	// A change that followed a refused one in its group is refused as well: it may rest on it.
	release, _ := db.commit.Hold(db.stop)
	refused := make(chan error, 2)
	for i, bytes := range []int{15 << 20, 2 << 20} { // too large for one transaction
		go func() {
			refused <- db.commit.do(t.Context(), 1, func(txn *badger.Txn) ([]write, error) {
				if _, err := txn.Get([]byte("first")); i == 0 {
					db.selectors["a"], db.firsts["a"] = nil, nil // of what the change writes
					fill()
				} else if err != nil {
					return nil, nil
				}
				return []write{{[]byte([]string{"first", "second"}[i]), make([]byte, bytes)}}, nil
			})
		}()
		for db.commit.Len() <= i {
			time.Sleep(time.Millisecond)
		}
	}
	release()
	for range 2 {
		if err := <-refused; !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("a change in a group on a disk that fills meanwhile: %v", err)
		}
	}
	if len(db.selectors)+len(db.firsts) > 0 {
		t.Error("what is known of a change that was refused is kept")
	}
	empty()

	// A collection that does not begin leaves commits as they are.
	fill()
	if err := db.collectOne(t.Context(), 1e-9, 0); !errors.Is(err, badger.ErrNoRewrite) {
		t.Errorf("a collection on a full disk: %v", err)
	}
	empty()

	// One that ended gave back what it did not need.
	if bytes := disk.Used(db.dir, ""); bytes > 100<<20 {
		t.Errorf("the database takes %d MiB", bytes>>20)
	}
	for _, key := range []string{"large", "first", "second"} {
		err := db.view(func(txn *badger.Txn) error {
			_, err := txn.Get([]byte(key))
			return err
		})
		if !errors.Is(err, badger.ErrKeyNotFound) {
			t.Errorf("%s, which was refused: %v", key, err)
		}
	}
}
