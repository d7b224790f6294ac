//go:build linux

package postgres

import (
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/postgrestest"
)

// A database whose processes hang, for example on a disk that hangs, ends no query by itself.
// Package connection proves how long others than an impatient one wait.
func TestADatabaseThatHangsIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{})
	db, err := Open(t.Context(), Config{
		DSN:    server.Database(t) + "&statement_timeout=1h&pool_max_conns=2",
		Logger: silent,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	pid := 0
	if err := db.pool.WithConn(t.Context(), func(conn *pgx.Conn) error {
		pid = int(conn.PgConn().PID())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)

	const patience = 500 * time.Millisecond
	begun := time.Now()
	err = db.pool.Exec(connection.Impatiently(t.Context(), patience), `SELECT 1`)
	waited := time.Since(begun)
	if waited < patience || waited > 20*time.Second {
		t.Errorf("the query waited for %v, want %v and the time for another try", waited, patience)
	}
	if err != nil && !wire.IsCode(err, wire.CodeUnavailable) { // another connection may have answered
		t.Error(err)
	}
}
