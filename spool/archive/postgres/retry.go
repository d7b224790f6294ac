package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// How long a transaction is tried: it bridges a failover to another host of the connection string, and no longer outage: for that,
// the callers' spools are the buffer.
const (
	triesMax       = 20
	triesPatience  = 5 * time.Second
	triesPauseMax  = 500 * time.Millisecond
	triesPauseUnit = 5 * time.Millisecond
)

// transact runs fn in a transaction until it is committed, fails for good, or patience ends. Its errors are wire errors.
func (db *DB) transact(ctx context.Context, pool *pgxpool.Pool, o pgx.TxOptions, again bool, fn func(tx pgx.Tx) error) error {
	return db.retry(ctx, again, func() (committing bool, err error) { return db.attempt(ctx, pool, o, fn) })
}

// ask runs fn, which runs one statement that may be run twice, as transact does: such a statement is a transaction by itself.
func (db *DB) withConn(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	return db.retry(ctx, true, func() (committing bool, err error) {
		conn, err := db.acquire(ctx, db.pool)
		if err != nil {
			return false, err
		}
		defer conn.Release()
		if err = fn(conn.Conn()); stale(err) {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		return false, err
	})
}

// persist is the trying again of transact.
func (db *DB) retry(ctx context.Context, again bool, once func() (committing bool, err error)) error {
	begun := time.Now()
	for try := 0; ; try++ {
		committing, err := once()
		if err == nil {
			return nil
		}
		retry := conflict(err) || away(err) && (again || !committing)
		if !retry || try >= triesMax || ctx.Err() != nil || time.Since(begun) > triesPatience {
			return failure(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause(try)):
		}
	}
}

// try runs fn in one transaction. committing says that it was to be committed when it failed: whether it was is not known, unless the
// database itself says so.
func (db *DB) attempt(ctx context.Context, pool *pgxpool.Pool, o pgx.TxOptions, fn func(tx pgx.Tx) error) (committing bool, err error) {
	conn, err := db.acquire(ctx, pool)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			if stale(err) {
				_ = conn.Conn().Close(context.WithoutCancel(ctx)) // the next one may lead to the host that takes writes
			}
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()
	if err = fn(tx); err != nil {
		return false, err
	}
	err = tx.Commit(ctx)
	return true, err
}

// pause is how long to wait before the next try: a random part of what doubles each time.
func pause(try int) time.Duration {
	return rand.N(min(triesPauseUnit<<min(try, 10), triesPauseMax)) + 1
}

// errConflict says that another transaction changed what this one had read.
var errConflict = errors.New("the record was changed by another server meanwhile")

// conflict says whether a transaction lost against another one: it was rolled back, and may well succeed the next time.
func conflict(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return true
	}
	return errors.Is(err, errConflict)
}

// sqlState is the code of a database's error; "" for any other.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
