//go:build !race

package postgres

import (
	"slices"
	"strings"
	"testing"

	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres/postgrestest"
)

func TestFewTextsAreIndexedSoonAndJoinThoseBelow(t *testing.T) {
	dsn := Reused(t)
	db := openIndexing(t, dsn)
	db.summarizing.rows = 300
	conn := postgrestest.Connect(t, dsn)
	const n, step = 700, 35
	for from := 0; from < n; from += step {
		say(t, db, from, from+step)
		index(t, db)
	}

	var units, rows, pages int
	err := conn.QueryRow(t.Context(), `SELECT count(*), sum(row_count),
		(SELECT count(*) FROM text_pages p WHERE NOT EXISTS (SELECT 1 FROM text_units u WHERE u.newest = p.newest))
		FROM text_units`).Scan(&units, &rows, &pages)
	if err != nil || units != (n+299)/300 || rows != n || pages != 0 {
		t.Errorf("%d units have %d of %d calls, %d pages are of none, %v", units, rows, n, pages, err)
	}
	for word, want := range map[string]int{"w3": n / 5, "only0": 1, "only299": 1, "only300": 1, "only699": 1, "no": 0} {
		indexed, scanned := databasetest.WithAndWithoutIndex(t, db, "a", word)
		if len(scanned) != want || !slices.Equal(indexed, scanned) {
			t.Errorf("%q: %d calls are found by their index, %d without it, want %d",
				word, len(indexed), len(scanned), want)
		}
	}
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := conn.Exec(t.Context(), `DELETE FROM text_pages`); err != nil {
		t.Fatal(err)
	}
	if indexed, _ := databasetest.WithAndWithoutIndex(t, db, "a", "only299"); len(indexed) > 0 {
		t.Error("a call is found without an index")
	}
	if err := db.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks a word") {
		t.Errorf("Check of an index without pages: %v", err)
	}
}
