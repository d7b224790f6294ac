// Package postgrestest gives tests a real PostgreSQL: one server for all tests of a test binary, and a database of its own for each
// test; or a server of its own for a test that stops, kills or starves it. Where there is no PostgreSQL the test fails and says
// what to install: a test that is skipped proves nothing.
//
// Where TEST_CITUS_DSN names a server with Citus, databases are made there instead.
package postgrestest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

// names number the databases.
var names atomic.Int64

// Main runs the tests of a binary and ends the server that they shared:
//
//	func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }
func Main(m *testing.M) int {
	defer func() {
		if shared.server != nil {
			shared.server.close()
		}
	}()
	main.Store(true)
	return m.Run()
}

var main atomic.Bool

// DSN makes an empty database for one test, and says how to connect to it. It is dropped when the test ends.
func DSN(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv("TEST_CITUS_DSN"); dsn != "" {
		own := database(t, dsn, "")
		run(t, own, "CREATE EXTENSION citus")
		return own
	}
	return database(t, sharedServer(t).DSN("postgres"), "")
}

// Prepared is DSN for a database that prepare has filled, with tables for example. It runs once for all tests of a
// binary, which get copies and so pass the same function, and must leave no connection.
func Prepared(t testing.TB, prepare func(dsn string)) string {
	t.Helper()
	if os.Getenv("TEST_CITUS_DSN") != "" { // its databases cannot be copied
		dsn := DSN(t)
		prepare(dsn)
		return dsn
	}

	server := sharedServer(t)
	shared.prepared.Do(func() {
		run(t, server.DSN("postgres"), "CREATE DATABASE "+preparedName)
		prepare(server.DSN(preparedName))
	})
	return database(t, server.DSN("postgres"), " TEMPLATE "+preparedName)
}

func sharedServer(t testing.TB) *Server {
	t.Helper()
	if !main.Load() {
		t.Fatal("postgrestest: the package's TestMain must call postgrestest.Main, which ends the server")
	}
	shared.once.Do(func() { shared.server, shared.err = start(Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// database makes a database beside the one that dsn names.
func database(t testing.TB, dsn, options string) string {
	t.Helper()
	name := fmt.Sprintf("psp_%d_%d", os.Getpid(), names.Add(1))
	run(t, dsn, "CREATE DATABASE "+name+options)
	t.Cleanup(func() { run(t, dsn, "DROP DATABASE "+name+" WITH (FORCE)") })
	own, err := url.Parse(dsn)
	if err != nil || own.Scheme == "" {
		t.Fatal("the connection string must have the form postgres://user@host/database")
	}
	own.Path = "/" + name
	return own.String()
}

func run(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(sql), err)
		}
	}
}
