package postgrestest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive/postgres/connection"
	"promptspool/spool/archive/postgres/schema"
)

// citusDatabase creates a database on all nodes of a Citus and spreads the tables over them.
// dsn names a database on the coordinator whose workers are used.
func citusDatabase(t testing.TB, dsn string) string {
	t.Helper()
	created := database(t, dsn, "")
	run(t, created, `CREATE EXTENSION citus`)

	coordinator := parse(t, dsn)
	run(t, created, fmt.Sprintf(`SELECT citus_set_coordinator_host('%s', %s)`,
		coordinator.Hostname(), coordinator.Port()))
	for _, worker := range Workers(t, dsn) {
		// The same database and extension must exist there before the node is added.
		node := parse(t, worker)
		postgres := *node
		postgres.Path = "/postgres"
		name := path.Base(parse(t, created).Path)
		run(t, postgres.String(), "CREATE DATABASE "+name)
		t.Cleanup(func() { run(t, postgres.String(), "DROP DATABASE "+name+" WITH (FORCE)") })
		node.Path = "/" + name
		run(t, node.String(), `CREATE EXTENSION citus`)

		host, port, _ := net.SplitHostPort(node.Host)
		run(t, created, fmt.Sprintf(`SELECT citus_add_node('%s', %s)`, host, port))
	}

	distribute(t, created)

	return created
}

// Workers returns the connection strings of the workers of a Citus, of the same database as
// dsn. It is empty for another PostgreSQL.
func Workers(t testing.TB, dsn string) (workers []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)

	citus := false
	if err := conn.QueryRow(ctx, `SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL`).
		Scan(&citus); err != nil || !citus {
		if err != nil {
			t.Fatal(err)
		}
		return nil
	}

	rows, err := conn.Query(ctx, `SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := pgx.CollectRows(rows, pgx.RowTo[string])
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
	if err := tables.Migrate(ctx, schema.Migrations); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.Distribute(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
}
