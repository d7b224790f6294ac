package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres/postgrestest"
)

// openIndexing opens a database that indexes a few rows at a time.
func openIndexing(t *testing.T, dsn string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Config{DSN: dsn, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.InSmallSteps()

	return db
}

// say applies calls numbered from one to below another, each with a word of its own and one of a few.
func say(t *testing.T, db *DB, from, to int) {
	t.Helper()
	var events []archive.Event
	for n := from; n < to; n++ {
		events = append(events, databasetest.Says(t, n, databasetest.ID(1000+n), fmt.Sprintf("w%d only%d", n%5, n)))
	}
	if _, err := db.Apply(t.Context(), "a", events); err != nil {
		t.Fatal(err)
	}
}

func index(t *testing.T, db *DB) {
	t.Helper()
	if err := db.IndexTexts(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestServersThatIndexTheSameTextsTakeOverFromEachOther(t *testing.T) {
	dsn := Reused(t)
	dying, other := openIndexing(t, dsn), openIndexing(t, dsn)
	const n = 30
	say(t, dying, 0, n/2)
	index(t, dying)
	say(t, other, n/2, n)
	right := func(when string) {
		t.Helper()
		for w := range 5 {
			indexed, scanned := databasetest.WithAndWithoutIndex(t, other, "a", fmt.Sprintf("w%d", w))
			if len(scanned) != n/5 || !slices.Equal(indexed, scanned) {
				t.Errorf("%s: %d calls are found by their index, of %d with w%d", when, len(indexed), len(scanned), w)
			}
		}
	}

	// Both have read the same bodies, and wait for the account.
	gate, err := postgrestest.Connect(t, dsn).Begin(t.Context())
	if err == nil {
		_, err = gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, accountLock("a"))
	}
	if err != nil {
		t.Fatal(err)
	}
	life, die := context.WithCancel(t.Context())
	died, ended := make(chan error, 1), make(chan error, 1)
	go func() { died <- dying.IndexTexts(life) }()
	go func() { ended <- other.IndexTexts(t.Context()) }()
	look := postgrestest.Connect(t, dsn)
	for waiting, begun := 0, time.Now(); waiting < 2; {
		err := look.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting)
		if err != nil || time.Since(begun) > time.Minute {
			t.Fatalf("%d servers index the texts, %v", waiting, err)
		}
	}
	right("while both index")

	die()
	if err := <-died; err == nil {
		t.Fatal("the server that died has indexed everything")
	}
	right("when one is dead")
	if err := gate.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	right("at the end")

	rows := 0
	err = look.QueryRow(t.Context(), `SELECT coalesce(sum(row_count), 0) FROM text_units`).Scan(&rows)
	if err != nil || rows != n {
		t.Errorf("%d of %d calls are indexed, %v", rows, n, err)
	}

	// It is the index that finds them.
	execute := func(sql string) {
		if _, err := look.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	execute(`DELETE FROM text_pages`)
	if indexed, _ := databasetest.WithAndWithoutIndex(t, other, "a", "w1"); len(indexed) > 0 {
		t.Errorf("%d calls are found without an index", len(indexed))
	}
	execute(`DELETE FROM text_units`)
}

func TestWordsOfErasedTextsAreInNoPage(t *testing.T) {
	dsn := Reused(t)
	db := openIndexing(t, dsn)
	conn := postgrestest.Connect(t, dsn)
	mayHave := func(word string) (found bool) {
		t.Helper()
		term := textindex.Terms(word)[0]
		rows, err := conn.Query(t.Context(), `SELECT words FROM text_pages WHERE page = $1`, int16(term.Page()))
		for err == nil && rows.Next() {
			var page []byte
			docs := textindex.All()
			if err = rows.Scan(&page); err == nil {
				err = docs.Keep(page, term)
			}
			found = found || docs != textindex.Docs{}
		}
		if err = errors.Join(err, rows.Err()); err != nil {
			t.Fatal(err)
		}
		return found
	}
	say(t, db, 0, 30)
	index(t, db)
	if !mayHave("only5") || !mayHave("only7") || mayHave("only99") {
		t.Fatal("the test does not tell which words the pages have")
	}

	gone := wire.Deletion{RequestID: databasetest.ID(1005)}
	if _, err := archive.Delete(t.Context(), db, "a", gone); err != nil {
		t.Fatal(err)
	}
	databasetest.Mask(t, db, "a", "only7", databasetest.ID(1007))
	for _, when := range []string{"at once", "when the rest is indexed again"} {
		if mayHave("only5") || mayHave("only7") {
			t.Errorf("%s: a page has a word that is in no text", when)
		}
		index(t, db)
	}
	if !mayHave("only6") || !mayHave("masked") {
		t.Error("what is left is not indexed")
	}
}
