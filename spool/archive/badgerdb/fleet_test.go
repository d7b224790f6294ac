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

// heartbeat returns the first heartbeat of the nth sidecar.
func heartbeat(n int, name string, at time.Time) wire.Heartbeat {
	return wire.Heartbeat{ID: sidecarID(n), Name: name, Version: "1", StartedAt: at}
}

func TestAForgottenSidecarLeavesTheDisk(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := openIn(t, t.TempDir())
	db.now = func() time.Time { return now }
	for n := range 2 {
		if err := db.Beat(t.Context(), wire.Identity{Account: "a"}, heartbeat(n, "n", now)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(archive.FleetKept + time.Second)
	}

	_, err := loadOf(db, keysFor(t, "a").sidecar(mustUUID(t, sidecarID(0))))
	if !errors.Is(err, badger.ErrKeyNotFound) {
		t.Errorf("the row of a forgotten sidecar is still there (%v)", err)
	}
}

// A new sidecar does not make the server read a full fleet, whether it is refused or takes
// another one's place.
func TestAFleetIsBounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := openIn(t, t.TempDir())
	db.now = func() time.Time { return now }
	fillFleet(t, db, now)

	one := func(n int) error {
		return db.Beat(t.Context(), wire.Identity{Account: "a"}, heartbeat(n, "new", now))
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

		// Reading the fleet once takes some allocations for each of its sidecars.
		if made := (after.Mallocs - before.Mallocs) / strangers; made > archive.FleetMax {
			t.Errorf("%d allocations for each, in a fleet of %d", made, archive.FleetMax)
		}
	}

	each(func(n int) {
		if err := one(n); !wire.IsCode(err, wire.CodeTooMany) {
			t.Errorf("a new sidecar in a full fleet that is alive: %v", err)
		}
	})

	now = now.Add(time.Hour)
	if err := one(7); err != nil {
		t.Errorf("a known sidecar in a full fleet: %v", err)
	}
	each(func(n int) {
		if err := one(n); err != nil {
			t.Errorf("a new sidecar in a full fleet that is silent: %v", err)
		}
	})

	list, err := db.Fleet(context.Background(), wire.Identity{Account: "a"})
	if err != nil || len(list.Items) != archive.FleetMax {
		t.Errorf("%d sidecars are kept (%v)", len(list.Items), err)
	}
	if !slices.ContainsFunc(list.Items, func(s wire.FleetSidecar) bool { return s.ID == sidecarID(7) }) {
		t.Error("a sidecar that was heard from lately lost its place to a new one")
	}
}

// fillFleet fills the fleet of account a with sidecars that were heard from now.
func fillFleet(t *testing.T, db *DB, now time.Time) {
	t.Helper()
	k := keysFor(t, "a")
	var writes []write
	for n := range archive.FleetMax {
		s := wire.FleetSidecar{
			Heartbeat: heartbeat(n, "n", now),
			LastSeen:  now.Add(time.Duration(n) * time.Millisecond),
		}
		value, err := jsonscan.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, write{k.sidecar(mustUUID(t, s.ID)), value})
	}

	for part := range slices.Chunk(writes, 2000) {
		all := func(*badger.Txn) ([]write, error) { return part, nil }
		if err := db.commit.do(t.Context(), 0, all); err != nil {
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

// loadOf reads a key. It returns ErrKeyNotFound if the key does not exist.
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
