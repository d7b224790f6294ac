package connection

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"promptspool/api/wire"
)

// Bounds of the attempts at a transaction. They bridge a failover to another host of the
// connection string. For a longer outage, the callers' spools are the buffer.
const (
	triesMax       = 20
	triesPatience  = 5 * time.Second
	triesPauseMax  = 500 * time.Millisecond
	triesPauseUnit = 5 * time.Millisecond
)

// transact runs fn in a transaction until it is committed, fails for good, or our patience
// ends. It returns wire errors.
func (p *Pool) transact(
	ctx context.Context, pool *pgxpool.Pool, o pgx.TxOptions, again bool, fn func(tx pgx.Tx) error,
) error {
	return p.retry(ctx, again, func() (committing bool, err error) {
		return p.attempt(ctx, pool, o, fn)
	})
}

// WithConn runs fn on a connection, and retries as transact does. fn may run only one
// statement, which is a transaction by itself and may run twice.
func (p *Pool) WithConn(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	return p.retry(ctx, true, func() (committing bool, err error) { return false, p.once(ctx, p.primary, fn) })
}

// once runs fn on a connection.
func (p *Pool) once(ctx context.Context, pool *pgxpool.Pool, fn func(conn *pgx.Conn) error) error {
	conn, err := p.acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer conn.Release()

	// The next connection may lead to the host that takes writes.
	err = fn(conn.Conn())
	if stale(err) {
		_ = conn.Conn().Close(context.WithoutCancel(ctx))
	}

	return err
}

// impatient is the key of how long a statement waits for a worker of Citus.
type impatient struct{}

// Impatiently returns a context in which a lost worker of Citus is reported at the first attempt.
// No statement takes longer than most: a worker whose machine is gone may not answer at all.
func Impatiently(ctx context.Context, most time.Duration) context.Context {
	return context.WithValue(ctx, impatient{}, most)
}

// late is the error of a statement that took longer than its context's patience, than its
// context, or than statement_timeout.
type late struct{ error }

func (e late) Unwrap() error { return e.error }

// asLate returns err as late if it is the error of such a statement.
func asLate(ctx context.Context, err error) error {
	if ctx.Value(impatient{}) == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || SQLState(err) == "57014" {
		return late{err}
	}

	return err
}

// Late reports whether a statement in an impatient context was not answered in time.
func Late(err error) bool {
	_, ok := errors.AsType[late](err)
	return ok
}

// retry calls once until it succeeds or there is no point in another attempt. again allows
// one even if the last failed while committing.
func (p *Pool) retry(ctx context.Context, again bool, once func() (committing bool, err error)) error {
	begun := time.Now()

	for try := 0; ; try++ {
		committing, err := once()
		if err == nil {
			return nil
		}

		// After a conflict nothing was committed. After a lost connection that is certain only
		// if no COMMIT was sent.
		retry := conflict(err) || Away(err) && (again || !committing)
		if ctx.Value(impatient{}) != nil && (LostWorker(err) || Late(err)) {
			retry = false
		}
		if !retry || try >= triesMax || ctx.Err() != nil || time.Since(begun) > triesPatience {
			return Failure(ctx, err)
		}

		select {
		case <-ctx.Done():
		case <-time.After(pause(try)):
		}
	}
}

// attempt runs fn in one transaction. committing means that it failed in COMMIT: whether it
// was committed is unknown, unless the error is the database's own.
func (p *Pool) attempt(
	ctx context.Context, pool *pgxpool.Pool, o pgx.TxOptions, fn func(tx pgx.Tx) error,
) (committing bool, err error) {
	err = p.once(ctx, pool, func(conn *pgx.Conn) error {
		tx, err := conn.BeginTx(ctx, o)
		if err == nil {
			err = fn(tx)
			if err == nil {
				committing, err = true, tx.Commit(ctx)
			}
			if err != nil {
				_ = tx.Rollback(context.WithoutCancel(ctx))
			}
		}
		return asLate(ctx, err)
	})

	return committing, err
}

// pause returns how long to wait before the next attempt: a random part of a time that
// doubles, so that transactions that met once do not meet again.
func pause(try int) time.Duration {
	return rand.N(min(triesPauseUnit<<min(try, 10), triesPauseMax)) + 1
}

// ErrConflict means that another transaction changed what this one had read.
var ErrConflict = errors.New("another server changed the record in the meantime")

// conflict reports whether a transaction was rolled back because of another one. It may well
// succeed the next time.
func conflict(err error) bool {
	switch SQLState(err) {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return true
	}
	return errors.Is(err, ErrConflict)
}

// SQLState returns the SQLSTATE of an error that the database reported, else "".
func SQLState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// retryAfter is what callers are told to wait while the database is away.
const retryAfter = 5 * time.Second

// remedies are messages by SQLSTATE
// (https://www.postgresql.org/docs/15/errcodes-appendix.html), or by its class, the first two
// characters. All are CodeUnavailable: the call was valid and may be repeated.
var remedies = map[string]string{
	"08P01": "A pooler between this server and the database rejects a startup parameter. " +
		"For PgBouncer set ignore_startup_parameters = statement_timeout.",
	"08": lostConnection,
	"25006": "The database is read-only: this host is a standby. " +
		"Name all hosts in --archive and add target_session_attrs=read-write.",
	"26000": mixedUp,
	"28": "The database rejects this server's user. " +
		"Check user and password in --archive, and the database's pg_hba.conf.",
	"3D000": "The database does not exist. Create it (createdb), or correct its name in --archive.",
	"40":    "Other requests kept changing the same records at the same time. Try again.",
	"42P05": mixedUp,
	"42501": "The database user lacks a privilege. " +
		"Make it the owner of the tables, or grant it all privileges on them.",
	"42P01": "A table is missing in the database. " +
		"Restart the server, which creates missing tables, or restore a backup.",
	"42704": "The tables of the database are of a newer version of promptspool. Upgrade this server; " +
		"sidecars keep what it does not take.",
	"53":    "The database is short of memory or another resource. Check its log.",
	"53100": "The database's disk is full. Free some space there; the server recovers by itself.",
	"53300": "The database has too many connections. Lower pool_max_conns in --archive, " +
		"raise the database's max_connections, or put PgBouncer in between.",
	"55": "The database is busy changing its tables. Try again.",
	"57": "The database ended the connection. The server recovers by itself.",
	"57014": "The database took longer than statement_timeout. " +
		"Narrow the search by accepted_at, or raise statement_timeout in --archive.",
	"57P01": "The database is stopping. The server recovers by itself when it is back.",
	"57P02": "The database has crashed and is recovering. The server recovers by itself when it is back.",
	"57P03": "The database is starting, or is a standby that accepts no connections yet. " +
		"The server recovers by itself when it is ready.",
	"58": "The database cannot read or write its files. Check its log and its disk.",
}

// lostConnection is of a coordinator of Citus, or of a pooler: they report how they fail to reach
// a database after them.
const lostConnection = "The connection to the database, or to a worker of its Citus, was lost or rejected. " +
	"If this persists, check the log of that node. Each node of a Citus needs the user of --archive."

// mixedUp is for a prepared statement that does not exist, or already exists. A pooler has
// moved us to another server connection than the one that we prepared it on.
const mixedUp = "A pooler between this server and the database assigns connections by transaction and does not " +
	"support prepared statements. Add default_query_exec_mode=cache_describe to --archive."

// Failure turns any error into a wire error. It returns wire errors unchanged.
func Failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e
	}

	// A worker holds all records of an account.
	e := failure(ctx, err)
	if LostWorker(err) || Late(err) {
		e.Affects = wire.AffectsAccount
	}

	return e
}

// failure is Failure for an error that is not a wire error. It does not set Affects.
func failure(ctx context.Context, err error) *wire.Error {
	if Late(err) {
		return Unavailable("The database, or a worker of its Citus, does not answer.", err)
	}
	// Whatever the database said then, the caller's end is the cause.
	if ctx.Err() != nil {
		return wire.Unavailable(0, "The request ended before it was answered: %w", ctx.Err())
	}
	if errors.Is(err, ErrConflict) {
		return Unavailable(remedies["40"], err)
	}

	// The exact code first, then its class.
	state := SQLState(err)
	for _, code := range []string{state, state[:min(2, len(state))]} {
		if message := remedies[code]; message != "" {
			return Unavailable(message, err)
		}
	}
	if LostWorker(err) {
		return Unavailable(lostConnection, err)
	}
	if Away(err) {
		return Unavailable("The database is away. "+
			"Check that it runs and that --archive names the right host and port; "+
			"the server recovers by itself when it is back.", err)
	}

	return &wire.Error{
		Code:    wire.CodeInternal,
		Message: "The database reported an error; the server's log has the reason.",
		Cause:   err,
	}
}

// Unavailable returns a CodeUnavailable that tells callers when to try again.
func Unavailable(message string, cause error) *wire.Error {
	return &wire.Error{Code: wire.CodeUnavailable, Message: message, RetryAfter: retryAfter, Cause: cause}
}

// Busy reports whether a table could not be locked. Others have read or written it for long.
func Busy(err error) bool { return SQLState(err) == "55P03" }

// Away reports whether the database could not be reached, went away, or is not ready yet.
// Another attempt may reach it, or another host.
func Away(err error) bool {
	// An answer of the database settles it, whatever kind of error carries it.
	switch state := SQLState(err); {
	case state == "25006", state == "53300", strings.HasPrefix(state, "57P"), strings.HasPrefix(state, "08"):
		return true
	case state == "XX000": // Citus noticed first that its PostgreSQL stops
		return lostWorker(err) || strings.Contains(err.Error(), "postmaster was shut down")
	case state != "": // it answered
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// LostWorker reports whether err is a coordinator's of Citus whose worker is away or cannot serve.
// The coordinator itself answers, so statements that do not need that worker succeed.
func LostWorker(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok, e.Code == "08P01": // which is a pooler's
		return false
	case strings.HasPrefix(e.Code, "08"), e.Code == "XX000" && lostWorker(err):
		return true
	}

	// The coordinator passes on what a worker reports, and names the worker.
	if !strings.Contains(e.Where, "while executing command on ") {
		return false
	}

	return Away(err) || strings.HasPrefix(e.Code, "53") || strings.HasPrefix(e.Code, "58")
}

// lostWorker is LostWorker for statements whose error has no SQLSTATE itself, only the
// text of the library by which a coordinator talks to its workers.
func lostWorker(err error) bool {
	text := err.Error()
	for _, lost := range []string{
		"server closed the connection unexpectedly",
		"SSL SYSCALL error",
		"SSL error: unexpected eof",
		"SSL connection has been closed unexpectedly",
		"could not receive data from server",
		"could not send data to server",
		"connection not open",
		"terminating connection",
		"failure on connection marked as essential",
		"could not commit transaction for shard",
	} {
		if strings.Contains(text, lost) {
			return true
		}
	}

	return false
}

// Refused reports whether the database rejects a statement as it is, so that sending it
// again is pointless. Faults that a person can fix (a missing table or privilege) are
// unavailable instead.
func Refused(err error) bool {
	state := SQLState(err)

	return wire.IsCode(err, wire.CodeInternal) && (strings.HasPrefix(state, "42") || strings.HasPrefix(state, "0A"))
}

// stale reports whether the connection leads to a host that no longer accepts writes.
func stale(err error) bool { return SQLState(err) == "25006" }
