package postgres

import (
	"syscall"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/postgres/postgrestest"
)

func TestAStatementTimeoutIsReadAsTheDatabaseReadsIt(t *testing.T) {
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "500": 500 * time.Millisecond, "2min": 2 * time.Minute, "1 h": time.Hour, "250ms": 250 * time.Millisecond,
		"0": 0, "": 0, "x": 0} {
		b := newBound(text)
		if (b == nil) != (want == 0) || b != nil && b.most != want {
			t.Errorf("%q is %+v, want %v", text, b, want)
		}
	}
}

// A database whose processes hang, as on a disk that does, ends nothing by itself.
func TestADatabaseThatHangsIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{})
	db, err := Open(t.Context(), Config{DSN: server.Database(t) + "&statement_timeout=3s", Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range db.pool.AcquireAllIdle(t.Context()) { // so that the next call has this one
		other.Conn().Close(t.Context())
		other.Release()
	}
	pid := int(conn.Conn().PgConn().PID())
	conn.Release()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	begun := time.Now()
	err = db.exec(t.Context(), `SELECT 1`)
	waited := time.Since(begun)
	if waited < answerGrace || waited > answerGrace+30*time.Second {
		t.Errorf("it was waited for %v", waited)
	}
	if err != nil && !wire.IsCode(err, wire.CodeUnavailable) { // another connection may have answered
		t.Error(err)
	}
}
