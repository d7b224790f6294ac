package badgerdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/repack"
)

// say stores calls of a session, from one turn to another: each repeats what was said before.
func say(t *testing.T, db *DB, session string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		said := ""
		for turn := range n + 1 {
			said += `"` + secretText(turn)[:1000] + `",`
		}
		body := `{"kwargs":{"said":[` + said + `0]},"metadata":{"session_id":"` + session + `"}}`
		mustApply(t, db, "a", databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), body))
	}
}

// dependent returns how many bodies are packed against another one.
func dependent(t *testing.T, db *DB) (n int) {
	t.Helper()
	err := db.viewOf("a", func(txn *badger.Txn, k keys) error {
		return db.each(t.Context(), txn, k.table(tableBody), nil, func(_, value []byte) (bool, error) {
			if _, ok := compress.BaseOf(value); ok {
				n++
			}
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// clocked opens a database whose clock the test sets.
func clocked(t *testing.T, dir string) (db *DB, later func(time.Duration)) {
	now := databasetest.Start
	db = openIn(t, dir)
	db.now = func() time.Time { return now }
	return db, func(d time.Duration) { now = now.Add(d) }
}

func pack(t *testing.T, db *DB) {
	t.Helper()
	if err := db.packer.Pack(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// cut makes a body another one, as masking does.
func cut(s *archive.State, bodies map[string]json.RawMessage) (bool, error) {
	id := s.History[0].ID
	bodies[id], s.History[0].Hash = json.RawMessage(`{"cut":1}`), archive.HashBody([]byte(`{"cut":1}`))
	return true, nil
}

func TestASessionIsPackedOnceItIsQuietOrLong(t *testing.T) {
	db, later := clocked(t, t.TempDir())
	say(t, db, "s", 0, 6)
	pack(t, db)
	if n := dependent(t, db); n != 0 {
		t.Errorf("%d bodies of a session are packed while it is going on", n)
	}

	later(10 * time.Minute)
	pack(t, db)
	if n := dependent(t, db); n != 5 {
		t.Errorf("%d of 6 bodies are packed after ten minutes, want all but the longest", n)
	}

	// The next ones take what is there, unless they are too many: these have a base among them.
	say(t, db, "s", 6, 7)
	later(10 * time.Minute)
	pack(t, db)
	if n := dependent(t, db); n != 6 {
		t.Errorf("%d of 7 bodies are packed, want all but one", n)
	}
	say(t, db, "s", 7, 39)
	pack(t, db)
	if n := dependent(t, db); n != 37 {
		t.Errorf("%d of 39 bodies are packed at once after 32 more, want all but two", n)
	}
}

func TestWhatWaitedIsPackedAfterARestart(t *testing.T) {
	dir := t.TempDir()
	db, _ := clocked(t, dir)
	say(t, db, "s", 0, 6)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	db, _ = clocked(t, dir)
	if err := db.packer.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := dependent(t, db); n != 5 {
		t.Errorf("%d of 6 bodies are packed after a restart, want all but the longest", n)
	}

	// From now on it is known until when everything was looked at.
	say(t, db, "s", 6, 7)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, _ = clocked(t, dir)
	if err := db.packer.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if until, err := db.Packed(t.Context()); dependent(t, db) != 6 || err != nil || until.IsZero() {
		t.Errorf("%d of 7 bodies are packed after another restart, until %v (%v)", dependent(t, db), until, err)
	}
}

func TestCallsThatAreAloneArePackedWithThoseOfTheSameInstructions(t *testing.T) {
	db, later := clocked(t, t.TempDir())
	for n := range 40 {
		body := fmt.Sprintf(`{"kwargs":{"system":"%s","user":"%s"},"metadata":{"session_id":"s%d"}}`,
			secretText(1), secretText(100 + n)[:300], n)
		mustApply(t, db, "a", databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), body))
	}

	later(10 * time.Minute)
	pack(t, db)
	pack(t, db)
	if n := dependent(t, db); n != 39 {
		t.Errorf("%d of 40 bodies with the same instructions are packed, want all but one", n)
	}
}

func TestABodyThatIsChangedWhileItIsPackedIsLeft(t *testing.T) {
	for name, change := range map[string]func(db *DB) error{
		"deleted": func(db *DB) error {
			_, err := archive.Delete(context.Background(), db, "a", wire.Deletion{RequestID: databasetest.ID(1001)})
			return err
		},
		"masked": func(db *DB) error {
			_, err := archive.Edit(context.Background(), db, "a", []string{databasetest.ID(1001)}, true, cut)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := clocked(t, t.TempDir())
			say(t, db, "s", 0, 3)
			var ids []uuid
			for n := range 3 {
				id, _ := archive.ParseUUID(databasetest.ID(1000 + n))
				ids = append(ids, id)
			}

			err := db.Repack(t.Context(), "a", ids, func(bodies []repack.Body) ([]repack.Body, error) {
				changed, _, err := repack.DefaultRule.Pack(db.codec, bodies)
				return changed, errors.Join(err, change(db))
			})
			if n := dependent(t, db); !errors.Is(err, repack.ErrChanged) || n != 0 {
				t.Errorf("Repack returns %v, and %d bodies are packed", err, n)
			}
		})
	}
}

// A bad block takes the bodies that are packed against one in it, and no others. A check counts them.
func TestABaseThatIsLostTakesOnlyItsDependants(t *testing.T) {
	db, later := clocked(t, t.TempDir())
	say(t, db, "s", 0, 6)
	say(t, db, "other", 6, 12)
	later(10 * time.Minute)
	pack(t, db)

	longest, _ := archive.ParseUUID(databasetest.ID(1005))
	var bodies []repack.Body
	err := db.viewOf("a", func(txn *badger.Txn, k keys) (err error) {
		bodies, err = db.storedBodies(t.Context(), txn, k, []uuid{longest}, map[string]uint64{})
		return err
	})
	if err != nil || len(bodies) != 1 || bodies[0].Dependants.Len() != 5 {
		t.Fatalf("the longest body is %+v (%v)", bodies, err)
	}
	k := keysOf("a")
	key := k.body(longest, bodies[0].Event)
	if err := db.bdb.Update(func(txn *badger.Txn) error { return txn.Delete(key) }); err != nil {
		t.Fatal(err)
	}

	for n := range 12 {
		_, body, err := db.Record(t.Context(), "a", databasetest.ID(1000+n))
		lost := wire.IsCode(err, wire.CodeInternal)
		if lost != (n < 6) || !lost && len(body) < 1000*(n+1) {
			t.Errorf("body %d has %d bytes (%v)", n, len(body), err)
		}
	}
	if err := db.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "5 bodies") {
		t.Errorf("the check says %v", err)
	}

	// The database is checked once more when it is closed.
	if err := db.bdb.Update(func(txn *badger.Txn) error { return txn.Set(key, bodies[0].Value) }); err != nil {
		t.Fatal(err)
	}
}
