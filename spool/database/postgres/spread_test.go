package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres/postgrestest"
)

// Citus would commit a COPY alone in one phase, after the others (folding.copyRows). Which statements
// are sent can be seen on any PostgreSQL.
func TestWhereTablesAreSpreadAnInsertFollowsEachCopy(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{
		Settings: []string{"log_statement=all", "log_line_prefix=%p "},
	})
	db := openWith(t, server.Database(t), patienceDefault)
	db.spread = true
	logged := len(server.WholeLog(t))

	var events []archive.Event
	for n := range 100 {
		events = append(events,
			databasetest.Event(t, 2*n, wire.KindRequest, databasetest.ID(n), `{"function_name":"f"}`),
			databasetest.Event(t, 2*n+1, wire.KindScore, databasetest.ID(n), `{"name":"n","score":1}`))
	}
	for _, account := range []string{"a", "b"} {
		for _, part := range [][]archive.Event{events[:150], events[100:]} {
			if _, err := db.Apply(t.Context(), account, part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}

	log := server.WholeLog(t)[logged:]
	if unnoted, copied := unnotedCopies(log); copied < 4 || unnoted > 0 {
		t.Errorf("%d of %d transactions copy and insert no counts", unnoted, copied)
	}
	// Control.
	if unnoted, _ := unnotedCopies(strings.ReplaceAll(log, "INSERT INTO account_weeks", "SELECT")); unnoted == 0 {
		t.Error("a COPY without an INSERT goes unnoticed")
	}
}

var statementLine = regexp.MustCompile(`(?m)^(\d+) LOG: +(?:statement|execute [^:]*):\s+(.*)$`)

// unnotedCopies counts the transactions that copy, and those of them that insert no counts
// afterwards.
func unnotedCopies(log string) (unnoted, copied int) {
	open := make(map[string]bool) // by process: it has copied, and inserted no counts
	for _, m := range statementLine.FindAllStringSubmatch(log, -1) {
		process, sql := m[1], strings.ToLower(m[2])
		switch {
		case strings.HasPrefix(sql, "copy "):
			open[process] = true
		case strings.HasPrefix(sql, "insert into account_weeks") && open[process]:
			open[process] = false
			copied++
		case strings.HasPrefix(sql, "commit") && open[process]:
			open[process] = false
			copied++
			unnoted++
		}
	}

	return unnoted, copied
}

func TestADatabaseThatIsHalfSpreadIsRefused(t *testing.T) {
	dsn := postgrestest.Plain(t)
	db := openWith(t, dsn, patienceDefault)

	// The catalog of Citus is made up.
	for _, sql := range []string{
		`CREATE TABLE pg_dist_partition AS
		SELECT 'record_states'::regclass AS logicalrelid, 'account_id' AS partkey`,
		`CREATE FUNCTION column_to_column_name(regclass, text) RETURNS text LANGUAGE sql AS 'SELECT $2'`,
		fakeWorker("", true),
	} {
		if err := db.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	_, err := Open(t.Context(), Config{DSN: dsn, Logger: silent})
	if err == nil || !strings.Contains(err.Error(), "not summaries") && !strings.Contains(err.Error(), "summaries, ") ||
		!strings.Contains(err.Error(), "archive spread") {
		t.Errorf("%v", err)
	}

	again, err := Open(t.Context(), Config{DSN: dsn, Logger: silent, HalfSpread: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// A write that is cut off in its commit is acknowledged, and shows only later. Whether there is one
// cannot be known while a worker is away.
func TestNoSummaryIsMadeWhileAWriteIsUndecided(t *testing.T) {
	db := openWith(t, postgrestest.Plain(t), patienceDefault)
	db.InSmallSteps()
	db.spread = true
	setWorker := func(state string) {
		gid := map[string]string{"undecided": "citus_0_1_2_3"}[state]
		if err := db.pool.Exec(t.Context(), fakeWorker(gid, state != "away")); err != nil {
			t.Fatal(err)
		}
	}

	write := func(from, to int) {
		t.Helper()
		var events []archive.Event
		for n := from; n < to; n++ {
			id := databasetest.ID(n)
			events = append(events, databasetest.Event(t, n, wire.KindRequest, id, `{"function_name":"f"}`))
		}
		if _, err := db.Apply(t.Context(), "a", events); err != nil {
			t.Fatal(err)
		}
	}
	// Three summaries are there, and three are missing.
	write(0, 9)
	setWorker("")
	if err := db.Summarize(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(9, 18)

	for _, worker := range []string{"undecided", "away", ""} {
		setWorker(worker)
		if err := db.Summarize(t.Context()); err != nil && worker != "away" {
			t.Fatal(err)
		}
		n, want := 0, 3
		if worker == "" {
			want = 6
		}
		if err := db.pool.QueryRow(t.Context(), []any{&n},
			`SELECT count(*) FROM summaries`); err != nil || n != want {
			t.Errorf("a worker is %q: there are %d summaries, %v; want %d", worker, n, err, want)
		}
	}
}

// fakeWorker makes a worker that answers everything with result, unless it is away.
func fakeWorker(result string, answers bool) string {
	return fmt.Sprintf(`
		CREATE OR REPLACE FUNCTION run_command_on_workers(command text)
		RETURNS TABLE (nodename text, nodeport int, success boolean, result text)
		LANGUAGE sql AS $$ SELECT 'worker', 1, %v, '%s' $$`, answers, result)
}

// A node may fail to commit what it has taken. Here a trigger fails there, at the moment of
// commit; in earnest the node dies.
func TestAWriteThatANodeDoesNotCommitIsNotAcknowledged(t *testing.T) {
	dsn := Empty(t)
	db := openWith(t, dsn, patienceDefault)

	write := func(n int) error {
		var events []archive.Event
		for i := range 2 * copyLeast {
			events = append(events,
				databasetest.Event(t, i, wire.KindRequest, databasetest.ID(i), `{"function_name":"f"}`))
		}
		_, err := db.Apply(t.Context(), fmt.Sprint("account-", n), events)
		return err
	}
	if err := write(0); err != nil { // makes the partition, too
		t.Fatal(err)
	}

	nodes := append(postgrestest.Workers(t, dsn), dsn)
	for _, node := range nodes[:max(len(nodes)-1, 1)] { // the coordinator only where it is alone
		failAtCommit(t, node)
	}

	for n := range 5 {
		if err := write(1 + n); err == nil {
			t.Error("a write is acknowledged that is not committed")
		}
	}
}

// failAtCommit makes each transaction that adds a state fail in COMMIT, or before in PREPARE.
func failAtCommit(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())

	// On a worker only the shards, whose names end with a number, hold rows.
	if _, err := conn.Exec(t.Context(), `
		SET citus.enable_ddl_propagation = off; SET citus.override_table_visibility = off;
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'not committed'; END $$;
		DO $$
		DECLARE part regclass;
		BEGIN
			FOR part IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relname ~ CASE
				WHEN to_regclass('pg_dist_partition') IS NULL THEN '^record_states_'
				ELSE '^record_states_.*_[0-9]+$' END
			LOOP
				EXECUTE format('CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON %s
					DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()', part);
			END LOOP;
		END $$`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}
