// Package postgrestest gives tests a real PostgreSQL.
//
// All tests of a test binary share one server, and each has its own database. A test that
// stops, kills or starves the server starts one for itself. Without PostgreSQL the test
// fails and says what to install: a test that is skipped proves nothing.
//
// If TEST_CITUS_DSN names a database with Citus and its workers, databases are created on the
// same nodes instead, with the tables of records spread over them.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/metrics/partstest"
)

// shared is the server that most tests of a binary use.
var shared struct {
	once   sync.Once
	server *Server
	err    error

	prepared sync.Once
}

// preparedName is the database on the shared server that Prepared copies.
const preparedName = "psp_prepared"

// lastDatabase numbers the databases.
var lastDatabase atomic.Int64

// Main runs the tests of a binary and ends the server that they shared:
//
//	func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }
func Main(m *testing.M) int {
	defer func() {
		dropCitus()
		if shared.server != nil {
			shared.server.close()
		}
	}()
	mainCalled.Store(true)

	return m.Run()
}

var mainCalled atomic.Bool

// DSN creates an empty database for one test and returns its connection string. The
// database is dropped when the test ends. On Citus it has the tables already.
func DSN(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv("TEST_CITUS_DSN"); dsn != "" {
		return citusDatabase(t, dsn)
	}

	return Plain(t)
}

// Plain is DSN for a test that makes up what a Citus would answer: it is never on one.
func Plain(t testing.TB) string { return database(t, sharedServer(t).DSN("postgres"), "") }

// Prepared is DSN for a database that prepare has filled with tables, which one on Citus has.
//
// prepare runs once for all tests of a binary, which get copies, so they must all pass
// the same function. It must close its connections, because PostgreSQL does not copy a
// database in use.
func Prepared(t testing.TB, prepare func(dsn string)) string {
	t.Helper()
	if dsn := os.Getenv("TEST_CITUS_DSN"); dsn != "" {
		return citusDatabase(t, dsn)
	}

	return database(t, preparedServer(t, prepare).DSN("postgres"), " TEMPLATE "+preparedName)
}

// Reused is Prepared for a test that changes nothing but rows. It hands out the databases that
// other such tests have left, without their rows: that is far cheaper than a new one.
func Reused(t testing.TB, prepare func(dsn string)) string {
	t.Helper()
	if dsn := os.Getenv("TEST_CITUS_DSN"); dsn != "" {
		return citusDatabase(t, dsn)
	}

	server := preparedServer(t, prepare)
	var dsn string
	select {
	case dsn = <-left:
	default:
		dsn = create(t, server.DSN("postgres"), nextName(), " TEMPLATE "+preparedName)
	}

	t.Cleanup(func() {
		run(t, dsn, deleteRows)
		left <- dsn
	})
	return dsn
}

// left are the databases that tests have left for Reused: more than run at the same time.
var left = make(chan string, 1000)

// deleteRows deletes the rows of all tables but the one with the version of the tables.
const deleteRows = `
	DO $$
	DECLARE name text;
	BEGIN
		FOR name IN SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
			AND relnamespace = 'public'::regnamespace AND relname <> 'promptspool_schema'
		LOOP
			EXECUTE 'DELETE FROM ' || name;
		END LOOP;
	END $$`

// preparedServer returns the shared server, with the database that prepare has filled.
func preparedServer(t testing.TB, prepare func(dsn string)) *Server {
	t.Helper()
	server := sharedServer(t)
	shared.prepared.Do(func() {
		run(t, server.DSN("postgres"), "CREATE DATABASE "+preparedName)
		prepare(server.DSN(preparedName))
	})

	return server
}

// sharedServer starts the shared server for the first test that needs it.
func sharedServer(t testing.TB) *Server {
	t.Helper()

	// Nothing else would end the server.
	if !mainCalled.Load() {
		t.Fatal("postgrestest: the package's TestMain must call postgrestest.Main, which ends the server")
	}
	partstest.Need(t, "postgres")
	shared.once.Do(func() { shared.server, shared.err = start(Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}

	return shared.server
}

// database creates a database for one test on the server of dsn and returns its connection string.
func database(t testing.TB, dsn, options string) string {
	t.Helper()
	name := nextName()
	created := create(t, dsn, name, options)
	t.Cleanup(func() { run(t, dsn, "DROP DATABASE "+name+" WITH (FORCE)") })

	return created
}

// create creates a database on the server of dsn and returns its connection string.
func create(t testing.TB, dsn, name, options string) string {
	t.Helper()
	// Copied as files: to log each page takes three times the processor.
	run(t, dsn, "CREATE DATABASE "+name+options+" STRATEGY file_copy")
	return inDatabase(t, dsn, name)
}

// nextName returns a name for a database. Several test binaries may share the server of
// TEST_CITUS_DSN.
func nextName() string { return fmt.Sprintf("psp_%d_%d", os.Getpid(), lastDatabase.Add(1)) }

func parse(t testing.TB, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		t.Fatal("the connection string must have the form postgres://user@host/database")
	}
	return u
}

// run executes statements on its own connection.
func run(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	if err := execute(dsn, statements...); err != nil {
		t.Fatal(err)
	}
}

func execute(dsn string, statements ...string) error {
	return with(dsn, func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(sql), err)
			}
		}
		return nil
	})
}

// with runs f with a connection that it makes, for 30 seconds at most.
func with(dsn string, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	return f(ctx, conn)
}

// Connect returns a connection to a server, which is closed when the test ends.
func Connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	return conn
}

// connect connects to a server, which may be recovering from a crash.
func connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "57P03" { // cannot_connect_now
			return conn, err
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
