//go:build linux

package releases

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/postgrestest"
)

// schemaOf is a query for all that SQL created, one line each, but for the partitions that time adds. NOT NULL is of
// the column; from PostgreSQL 18 on it is a constraint as well, with a name that nobody chose.
const schemaOf = `
	WITH tables AS (
		SELECT oid, relname, relkind, reloptions FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname !~ '_w\d{8}$'
	)
	SELECT concat_ws(' ', 'table', relname, relkind, reloptions::text, pg_get_partkeydef(oid)) FROM tables
	UNION ALL
	SELECT concat_ws(' ', 'column', relname, attname, format_type(atttypid, atttypmod), attnotnull::text,
		attcollation::regcollation, attstorage, attcompression, attstattarget, attoptions::text,
		pg_get_expr(adbin, adrelid))
	FROM tables t
	JOIN pg_attribute a ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped
	LEFT JOIN pg_attrdef ON adrelid = t.oid AND adnum = attnum
	UNION ALL
	SELECT concat_ws(' ', 'constraint', relname, conname, pg_get_constraintdef(c.oid))
	FROM tables t JOIN pg_constraint c ON conrelid = t.oid AND contype <> 'n'
	UNION ALL
	SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid)) FROM tables t JOIN pg_index ON indrelid = t.oid
	ORDER BY 1`

// A database that a release made becomes what this version makes.
func TestStepsEndInTheTablesThatAreMadeAnew(t *testing.T) {
	t.Parallel()
	schema := func(dsn string) []string {
		startShared(t, harness.Program(t), dsn).Stop()
		return lines(t, postgrestest.Connect(t, dsn), schemaOf)
	}
	anew := schema(postgrestest.Plain(t))
	for _, dir := range releaseDirs(t) {
		if diff := cmp.Diff(anew, schema(restored(t, filepath.Join(dir, dumpFile)))); diff != "" {
			t.Errorf("%s: the steps from it end in other tables than are made anew (-):\n%s", dir, diff)
		}
	}
	if len(anew) < 100 {
		t.Errorf("of the tables only this is looked at: %v", anew)
	}
}

// lines returns the lines that a query finds.
func lines(t *testing.T, db *pgx.Conn, sql string) []string {
	t.Helper()
	rows, _ := db.Query(t.Context(), sql)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// filesBecomeAsAnew has a server on Badger go on with the second set of a release, beside one to which its events were
// imported.
func filesBecomeAsAnew(t *testing.T, dir string) {
	data, said := unpacked(t, filepath.Join(dir, serverFile)), read[said](t, dir, serverSaid)
	kept := harness.StartServer(t, data, "127.0.0.1:0")
	findsSpellings(t, kept, 2, spelt[:4]) // as soon as it takes requests
	knowsCacheWrites(t, kept, 2)

	anew := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	imported(t, anew, decompress(t, filepath.Join(dir, eventsFile)))
	for _, a := range said.Answers {
		made := answered{a.Question, ask(t, anew, a.Question)}
		made.still(t, kept, "arrived_at")
	}
	knowsMore(t, kept, said)
	kept.Stop()
	harness.Run(t, 0, "archive", "check", "--data", data)
}

// Of a dump and of exported events, what is about records, and about the many that are like each other.
var (
	aboutRecords = regexp.MustCompile(
		`(?s)INSERT INTO public\.(record|account_weeks|rollup|summaries|text_)\w* VALUES.*?;\n`)
	aboutMany = regexp.MustCompile(`(?m)^.*"many".*\n`)
)

// databaseBecomesAsAnew has a server on PostgreSQL do the same. The rows are compared, with the terms that they are
// found by, but for those of many.
func databaseBecomesAsAnew(t *testing.T, dir string) {
	dump := decompress(t, filepath.Join(dir, dumpFile))
	dsn := databaseOf(t, dump)
	kept, db := startShared(t, harness.Program(t), dsn), postgrestest.Connect(t, dsn)
	findsSpellings(t, kept, 2, spelt[:4])

	// The account is the same: its id is in the terms.
	empty := databaseOf(t, aboutRecords.ReplaceAll(dump, nil))
	events := aboutMany.ReplaceAll(decompress(t, filepath.Join(dir, eventsFile)), nil)
	imported(t, startShared(t, harness.Program(t), empty), events)
	anew, diff := rowsOf(t, postgrestest.Connect(t, empty)), ""
	kept.Eventually(func() bool {
		diff = cmp.Diff(anew, rowsOf(t, db))
		return diff == ""
	}, func() string { return "rows differ from those that are made anew (-):\n" + diff })

	units := fmt.Sprintf(`SELECT concat(newest) FROM text_units WHERE form <> %d`, words.Folding)
	kept.Eventually(func() bool { return len(lines(t, db, units)) == 0 },
		func() string { return "indexes of words are not made anew" })
	knowsMore(t, kept, read[said](t, dir, dumpSaid))
	kept.Stop()
	harness.Run(t, 0, "archive", "check", "--archive", dsn)
}

// rowsOf returns the rows of a database, one line each. A line of the table may end before the columns that it has
// nothing in, so it is read.
func rowsOf(t *testing.T, db *pgx.Conn) (all []string) {
	t.Helper()
	found, _ := db.Query(t.Context(), `SELECT (to_jsonb(r) - 'line')::text, line FROM records r
		WHERE request_id::text !~ $1 ORDER BY request_id`, "^"+manyCall)
	var columns string
	var line []byte
	_, err := pgx.ForEachRow(found, []any{&columns, &line}, func() error {
		var row wire.Row
		err := rowcode.Decode(line, rowcode.AllColumns, &row)
		text, errText := json.Marshal(row)
		all = append(all, columns+string(text))
		return errors.Join(err, errText)
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d rows: %v", len(all), err)
	}
	return all
}
