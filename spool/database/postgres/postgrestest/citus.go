package postgrestest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// citus are the databases on all nodes of a Citus that tests get copies of: to spread the tables
// takes many times as long.
var citus struct {
	spread, prepared sync.Once
	made             []string // on which connections to drop them, in pairs with their names
}

// citusDatabase creates a database on all nodes of a Citus, with the tables spread over them and
// filled by prepare, unless that is nil. dsn names a database on the coordinator whose workers
// are used.
func citusDatabase(t testing.TB, dsn string, prepare func(dsn string)) string {
	t.Helper()
	spread, prepared := fmt.Sprintf("psp_%d_spread", os.Getpid()), fmt.Sprintf("psp_%d_prepared", os.Getpid())
	citus.spread.Do(func() { spreadDatabase(t, dsn, spread) })
	if prepare == nil {
		return copyDatabase(t, dsn, spread, "")
	}

	citus.prepared.Do(func() { prepare(copyDatabase(t, dsn, spread, prepared)) })

	return copyDatabase(t, dsn, prepared, "")
}

// spreadDatabase creates a database on all nodes and spreads the tables over them.
func spreadDatabase(t testing.TB, dsn, name string) {
	t.Helper()
	workers := Workers(t, dsn)
	for _, node := range append(workers, dsn) {
		run(t, node, "CREATE DATABASE "+name)
		citusLater(node, name)
		run(t, inDatabase(t, node, name), `CREATE EXTENSION citus`)
	}

	coordinator, created := parse(t, dsn), inDatabase(t, dsn, name)
	run(t, created, fmt.Sprintf(`SELECT citus_set_coordinator_host('%s', %s)`,
		coordinator.Hostname(), coordinator.Port()))
	for _, worker := range workers {
		host, port, _ := net.SplitHostPort(parse(t, worker).Host)
		run(t, created, fmt.Sprintf(`SELECT citus_add_node('%s', %s)`, host, port))
	}

	distribute(t, created)
}

// copyDatabase copies a database on all nodes, and returns the connection string of the copy. A
// copy without a name is dropped when the test ends.
func copyDatabase(t testing.TB, dsn, from, name string) string {
	t.Helper()
	kept := name != ""
	if !kept {
		name = nextName()
	}

	for _, node := range append(Workers(t, dsn), dsn) {
		onUnused(t, node, from, "CREATE DATABASE "+name+" TEMPLATE "+from)
		if kept {
			citusLater(node, name)
		} else {
			t.Cleanup(func() { onUnused(t, node, name, "DROP DATABASE "+name+" WITH (FORCE)") })
		}
	}

	return inDatabase(t, dsn, name)
}

// onUnused runs a statement on a node once a database there is not in use. Citus itself
// keeps connections to each database, and opens new ones.
func onUnused(t testing.TB, node, database, sql string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		err := execute(node,
			fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, database), sql)
		if err == nil {
			return
		}
		if connection.SQLState(err) != "55006" || time.Now().After(deadline) { // object_in_use
			t.Fatal(err)
		}
	}
}

// citusLater has a database of a node dropped when all tests have ended.
func citusLater(node, name string) { citus.made = append(citus.made, node, name) }

// dropCitus drops the databases that tests got copies of.
func dropCitus() {
	for pair := range slices.Chunk(citus.made, 2) {
		_ = execute(pair[0], "DROP DATABASE "+pair[1]+" WITH (FORCE)")
	}
}

// inDatabase returns a connection string of another database of the same server.
func inDatabase(t testing.TB, dsn, name string) string {
	u := parse(t, dsn)
	u.Path = "/" + name

	return u.String()
}

// Workers returns the connection strings of the workers of a Citus, of the same database as
// dsn. It is empty for another PostgreSQL.
func Workers(t testing.TB, dsn string) (workers []string) {
	t.Helper()
	var hosts []string
	err := with(dsn, func(ctx context.Context, conn *pgx.Conn) error {
		citus := false
		err := conn.QueryRow(ctx, `SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL`).Scan(&citus)
		if err != nil || !citus {
			return err
		}

		rows, err := conn.Query(ctx,
			`SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY 1`)
		if err == nil {
			hosts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		worker := parse(t, dsn)
		worker.Host = host
		workers = append(workers, worker.String())
	}

	return workers
}

// Crash kills a process of the server of dsn with SIGKILL. The server then ends all others and
// recovers from its log.
func Crash(t testing.TB, dsn string) {
	t.Helper()
	err := with(dsn, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'`); err == nil {
			t.Error("the server did not crash")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Recover decides the transactions that a crash of a node has left undecided. Citus does so by
// itself within a minute, and elsewhere there are none.
func Recover(t testing.TB, dsn string) {
	t.Helper()
	if len(Workers(t, dsn)) > 0 {
		run(t, dsn, `SELECT recover_prepared_transactions()`)
	}
}

// distribute creates the tables in an empty database and spreads them, as
// `promptspool archive spread` does.
func distribute(t testing.TB, dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pool, err := connection.Open(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	tables := schema.New(pool, slog.New(slog.DiscardHandler), time.Now)
	if err := tables.Create(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.Distribute(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := tables.MakeAhead(ctx); err != nil { // as every server does, and slow
		t.Fatal(err)
	}
}
