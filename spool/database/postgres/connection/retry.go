package connection

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
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
	return p.withConn(ctx, p.primary, fn)
}

// SearchConn is WithConn for statements that only read, where Search would read. There may be
// several, each of which sees the database its own as moment.
func (p *Pool) SearchConn(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	return p.withConn(ctx, p.searches, fn)
}

func (p *Pool) withConn(ctx context.Context, pool *pgxpool.Pool, fn func(conn *pgx.Conn) error) error {
	return p.retry(ctx, true, func() (committing bool, err error) {
		conn, err := p.acquire(ctx, pool)
		if err != nil {
			return false, err
		}
		defer conn.Release()

		// The next connection may lead to the host that takes writes.
		if err = fn(conn.Conn()); stale(err) {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		return false, err
	})
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
	conn, err := p.acquire(ctx, pool)
	if err != nil {
		return false, err
	}
	defer conn.Release()

	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		return false, asLate(ctx, err)
	}
	defer func() {
		if err == nil {
			return
		}
		// The next connection may lead to the host that takes writes.
		if stale(err) {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		_ = tx.Rollback(context.WithoutCancel(ctx))
		err = asLate(ctx, err)
	}()

	if err = fn(tx); err != nil {
		return false, err
	}
	err = tx.Commit(ctx)

	return true, err
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
