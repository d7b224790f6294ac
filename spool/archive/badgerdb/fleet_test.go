package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive"
)

func sidecarID(n int) string { return fmt.Sprintf("0195529c-1c00-7000-8000-%012x", n) }

func TestAForgottenSidecarLeavesTheDisk(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := openIn(t, t.TempDir())
	db.now = func() time.Time { return now }
	for n := range 2 {
		if err := db.Beat(t.Context(), wire.Identity{Account: "a"}, wire.Heartbeat{ID: sidecarID(n), Name: "n", Version: "1", StartedAt: now}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(archive.FleetKept + time.Second)
	}
	if _, err := loadOf(db, keysFor(t, "a").sidecar(mustUUID(t, sidecarID(0)))); !errors.Is(err, badger.ErrKeyNotFound) {
		t.Errorf("the row of a forgotten sidecar is still there (%v)", err)
	}
}

// A full fleet is not read for each new sidecar, whether that is refused or takes another one's place.
func TestAFleetIsBounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := openIn(t, t.TempDir())
	db.now = func() time.Time { return now }
	fillFleet(t, db, now)
	one := func(n int) error {
		return db.Beat(t.Context(), wire.Identity{Account: "a"}, wire.Heartbeat{ID: sidecarID(n), Name: "new", Version: "1", StartedAt: now})
	}
	const strangers = 50
	each := func(beat func(n int)) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for n := range strangers {
			beat(archive.FleetMax + n)
		}
		runtime.ReadMemStats(&after)

		// One look at all is some allocations for each sidecar of the fleet.
		if made := (after.Mallocs - before.Mallocs) / strangers; made > archive.FleetMax {
			t.Errorf("%d allocations for each, in a fleet of %d", made, archive.FleetMax)
		}
	}

	each(func(n int) {
		if err := one(n); !wire.IsCode(err, wire.CodeTooMany) {
			t.Errorf("one more, while all are alive: %v", err)
		}
	})
	now = now.Add(time.Hour)
	if err := one(7); err != nil {
		t.Errorf("one that is known: %v", err)
	}
	each(func(n int) {
		if err := one(n); err != nil {
			t.Errorf("one more, while all are silent: %v", err)
		}
	})

	list, err := db.Fleet(context.Background(), wire.Identity{Account: "a"})
	if err != nil || len(list.Items) != archive.FleetMax {
		t.Errorf("%d sidecars are kept (%v)", len(list.Items), err)
	}
	if !slices.ContainsFunc(list.Items, func(s wire.FleetSidecar) bool { return s.ID == sidecarID(7) }) {
		t.Error("one that was heard made room for one that came later")
	}
}

// fillFleet fills the fleet of account a with sidecars that were heard now.
func fillFleet(t *testing.T, db *DB, now time.Time) {
	t.Helper()
	k := keysFor(t, "a")
	var writes []write
	for n := range archive.FleetMax {
		s := wire.FleetSidecar{Heartbeat: wire.Heartbeat{ID: sidecarID(n), Name: "n", Version: "1", StartedAt: now}, LastSeen: now.Add(time.Duration(n) * time.Millisecond)}
		value, err := jsonscan.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, write{k.sidecar(mustUUID(t, s.ID)), value})
	}
	for part := range slices.Chunk(writes, 2000) {
		if err := db.commit.do(t.Context(), 0, func(*badger.Txn) ([]write, error) { return part, nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func keysFor(t *testing.T, account string) keys {
	t.Helper()
	k, err := keysOf(account)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustUUID(t *testing.T, s string) uuid {
	t.Helper()
	id, ok := parseUUID(s)
	if !ok {
		t.Fatal(s)
	}
	return id
}

// loadOf reads a key, and says ErrKeyNotFound if it is not there.
func loadOf(db *DB, key []byte) (value []byte, err error) {
	err = db.view(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if err == nil {
			value, err = item.ValueCopy(nil)
		}
		return err
	})
	return value, err
}
