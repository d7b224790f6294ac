package badgerdb

import (
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// Each tombstone counts once, whatever made it, and survives a restart.
func TestTombstonesAreCounted(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir)
	want := func(n int64, what string) {
		t.Helper()
		if s, err := db.Size(t.Context()); err != nil || s.Tombstones != n {
			t.Errorf("%s: %d tombstones (%v), want %d", what, s.Tombstones, err, n)
		}
	}
	remove := func(account string, d wire.Deletion) {
		t.Helper()
		if _, err := archive.Delete(t.Context(), db, account, d); err != nil {
			t.Fatal(err)
		}
	}

	ann := databasetest.Event(t, 1, wire.KindRequest, databasetest.ID(1001), secretBody(1, "ann"))
	late := databasetest.Event(t, 2, wire.KindRequest, databasetest.ID(1002), secretBody(2, "ann"))
	bob := databasetest.Event(t, 3, wire.KindRequest, databasetest.ID(1003), secretBody(3, "bob"))
	for _, account := range []string{"a", "b"} {
		if _, err := db.Apply(t.Context(), account, []archive.Event{ann, bob}); err != nil {
			t.Fatal(err)
		}
	}

	want(0, "before any deletion")
	for range 2 {
		remove("a", wire.Deletion{RequestID: bob.RequestID})
		want(1, "a record that is deleted, and deleted again")
	}

	forget := wire.Deletion{Key: "user", Value: "ann", Before: databasetest.Start.Add(time.Hour)}
	for range 2 {
		remove("a", forget)
		want(3, "a value and the record that has it, again and again")
	}

	for range 2 {
		if _, err := db.Apply(t.Context(), "a", []archive.Event{late, bob}); err != nil {
			t.Fatal(err)
		}
		want(4, "a record that came late, and one that was deleted")
	}

	remove("b", wire.Deletion{RequestID: bob.RequestID})
	want(5, "a record of another account")

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openIn(t, dir)
	want(5, "after a restart")
}
