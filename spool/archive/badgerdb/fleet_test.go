package badgerdb

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

func sidecarID(n int) string { return fmt.Sprintf("0195529c-1c00-7000-8000-%012x", n) }

func TestASidecarIsAliveThenSilentThenForgotten(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := openIn(t, t.TempDir())
	db.now = func() time.Time { return now }
	ours, others := wire.Identity{Account: "a"}, wire.Identity{Account: "ab"}
	beat := func(id wire.Identity, n int, name string) {
		t.Helper()
		if err := db.Beat(t.Context(), id, wire.Heartbeat{ID: sidecarID(n), Name: name, Version: "1", StartedAt: now, BacklogEvents: int64(n)}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(id wire.Identity) string {
		t.Helper()
		fleet, err := db.Fleet(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, s := range fleet.Items {
			text += fmt.Sprintf("%s alive=%v waiting=%d; ", s.Name, s.Alive, s.BacklogEvents)
		}
		return text
	}
	beat(ours, 2, "b")
	beat(ours, 1, "a")
	beat(others, 3, "theirs")
	now = now.Add(wire.HeartbeatEvery)
	beat(ours, 1, "a2")
	now = now.Add(wire.AliveFor)
	if got, want := told(ours), "a2 alive=true waiting=1; b alive=false waiting=2; "; got != want {
		t.Errorf("the fleet is %q, want %q", got, want)
	}
	if got := told(others); strings.Contains(got, "a2") || !strings.Contains(got, "theirs") {
		t.Errorf("another account's fleet is %q", got)
	}
	now = now.Add(fleetKept - wire.AliveFor - wire.HeartbeatEvery/2)
	if got, want := told(ours), "a2 alive=false waiting=1; "; got != want {
		t.Errorf("a month later the fleet is %q, want %q", got, want)
	}
	beat(ours, 4, "new") // and the one that is forgotten leaves the disk
	if _, err := loadOf(db, keysFor(t, "a").sidecar(mustUUID(t, sidecarID(2)))); err == nil {
		t.Error("the row of a forgotten sidecar is still there")
	}
}

func TestAFleetIsBounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := openIn(t, t.TempDir())
	db.now = func() time.Time { return now }
	k := keysFor(t, "a")
	var writes []write
	for n := range fleetMax {
		s := wire.FleetSidecar{Heartbeat: wire.Heartbeat{ID: sidecarID(n), Name: "n", Version: "1", StartedAt: now}, LastSeen: now.Add(time.Duration(n) * time.Millisecond)}
		value, err := encode(s)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, write{k.sidecar(mustUUID(t, s.ID)), value})
	}
	for len(writes) > 0 {
		n := min(2000, len(writes))
		part := writes[:n]
		if err := db.commit.do(t.Context(), 0, func(*badger.Txn) ([]write, error) { return part, nil }); err != nil {
			t.Fatal(err)
		}
		writes = writes[n:]
	}
	one := func(n int) error {
		return db.Beat(t.Context(), wire.Identity{Account: "a"}, wire.Heartbeat{ID: sidecarID(n), Name: "new", Version: "1", StartedAt: now})
	}
	if err := one(fleetMax); !wire.IsCode(err, wire.CodeTooMany) {
		t.Errorf("one more, while all are alive: %v", err)
	}
	if err := one(7); err != nil {
		t.Errorf("one that is known: %v", err)
	}
	now = now.Add(time.Hour)
	if err := one(fleetMax); err != nil {
		t.Errorf("one more, while all are silent: %v", err)
	}
	fleet, err := db.Fleet(context.Background(), wire.Identity{Account: "a"})
	if err != nil || len(fleet.Items) != fleetMax {
		t.Errorf("%d sidecars are kept (%v)", len(fleet.Items), err)
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
