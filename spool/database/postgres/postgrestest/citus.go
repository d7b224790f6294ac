package postgrestest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// citus is the database on all nodes of a Citus that tests get copies of: to spread the tables takes
// many times as long.
var citus struct {
	spread sync.Once
	made   []string // on which connections to drop it
}

// spreadName is the name of that database.
var spreadName = fmt.Sprintf("psp_%d_spread", os.Getpid())

// citusDatabase creates a database on all nodes of a Citus, with the tables spread over them. dsn
// names a database on the coordinator whose workers are used.
func citusDatabase(t testing.TB, dsn string) string {
	t.Helper()
	citus.spread.Do(func() { spreadDatabase(t, dsn) })

	name := nextName()
	for _, node := range append(Workers(t, dsn), dsn) {
		onUnused(t, node, spreadName, "CREATE DATABASE "+name+" TEMPLATE "+spreadName)
		t.Cleanup(func() { onUnused(t, node, name, "DROP DATABASE "+name+" WITH (FORCE)") })
	}

	return inDatabase(t, dsn, name)
}

// spreadDatabase creates the database of citus.
func spreadDatabase(t testing.TB, dsn string) {
	t.Helper()
	workers := Workers(t, dsn)
	for _, node := range append(workers, dsn) {
		run(t, node, "CREATE DATABASE "+spreadName)
		citus.made = append(citus.made, node)
		run(t, inDatabase(t, node, spreadName), `CREATE EXTENSION citus`)
	}

	coordinator, created := parse(t, dsn), inDatabase(t, dsn, spreadName)
	run(t, created, fmt.Sprintf(`SELECT citus_set_coordinator_host('%s', %s)`,
		coordinator.Hostname(), coordinator.Port()))
	for _, worker := range workers {
		host, port, _ := net.SplitHostPort(parse(t, worker).Host)
		run(t, created, fmt.Sprintf(`SELECT citus_add_node('%s', %s)`, host, port))
	}

	distribute(t, created)
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

// dropCitus drops the database that tests got copies of.
func dropCitus() {
	for _, node := range citus.made {
		_ = execute(node, "DROP DATABASE "+spreadName+" WITH (FORCE)")
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
