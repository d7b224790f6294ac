//go:build linux

package releases

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// schemaOf is a query for all that SQL created, one line each, but for the partitions that time adds.
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
	FROM tables t JOIN pg_constraint c ON conrelid = t.oid
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

// emptied returns a new database of a dump's account, without records.
func emptied(t *testing.T, path string) (dsn string) {
	t.Helper()
	dsn = restored(t, path)
	_, err := postgrestest.Connect(t, dsn).Exec(t.Context(), `DO $$ BEGIN
		EXECUTE (SELECT 'TRUNCATE ' || string_agg(relname, ', ') FROM pg_class
			WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
				AND relname NOT IN ('promptspool_schema', 'small_values'));
	END $$`)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// imported sends a server the events of a release.
func imported(t *testing.T, server *harness.Node, dir string) *harness.Node {
	t.Helper()
	events := harness.WriteFile(t, "events", string(decompress(t, filepath.Join(dir, eventsFile))))
	harness.Run(t, 0, "requests", "import", events, "--url", "http://"+server.Addr)
	return server
}

// filesBecomeAsAnew has a server on Badger go on with the second set of a release, beside one that is new.
func filesBecomeAsAnew(t *testing.T, dir string) {
	data := unpacked(t, filepath.Join(dir, serverFile))
	kept := harness.StartServer(t, data, "127.0.0.1:0")
	anew := imported(t, harness.StartServer(t, t.TempDir(), "127.0.0.1:0"), dir)
	answersAsAnew(t, kept, anew, read[said](t, dir, serverSaid))
	kept.Stop()
	harness.Run(t, 0, "archive", "check", "--data", data)
}

// databaseBecomesAsAnew does the same on PostgreSQL. What is found by is there in rows, and is the same at the end.
func databaseBecomesAsAnew(t *testing.T, dir string) {
	was, is := emptied(t, filepath.Join(dir, dumpFile)), restored(t, filepath.Join(dir, dumpFile))
	anew := imported(t, startShared(t, harness.Program(t), was), dir)
	kept := startShared(t, harness.Program(t), is)

	const rows = `SELECT to_jsonb(r)::text FROM records r ORDER BY request_id`
	want, db, diff := lines(t, postgrestest.Connect(t, was), rows), postgrestest.Connect(t, is), ""
	kept.Eventually(func() bool {
		diff = cmp.Diff(want, lines(t, db, rows))
		return diff == ""
	}, func() string { return "rows differ from those that are made anew (-):\n" + diff })

	answersAsAnew(t, kept, anew, read[said](t, dir, dumpSaid))
	kept.Stop()
	harness.Run(t, 0, "archive", "check", "--archive", is)
}

// answersAsAnew fails unless a server answers as the release did, and as one to which the release's events were
// imported.
func answersAsAnew(t *testing.T, kept, anew *harness.Node, said said) {
	t.Helper()
	for _, a := range said.Answers {
		made := answered{a.Question, ask(t, anew, a.Question)}
		made.still(t, kept, "arrived_at")
	}
	for _, a := range append(said.Answers, said.Deletions...) {
		a.still(t, kept, "gone_by")
	}
}
