package connection

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"promptspool/api/wire"
)

// Pool is a server's connections to the database. It is safe for concurrent use.
type Pool struct {
	primary  *pgxpool.Pool
	searches *pgxpool.Pool // the same as primary, unless searches go to a standby
	changes  pgx.TxOptions // of Change; see Guard
	closed   atomic.Bool
}

// Open prepares connections to the database of a connection string. It does not wait for
// the database. ctx carries values only, and bounds nothing. The caller must call Close.
func Open(ctx context.Context, dsn string) (*Pool, error) {
	config, err := poolConfig(dsn)
	if err != nil {
		return nil, err
	}

	primary, searches, err := newPools(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}

	return &Pool{primary: primary, searches: searches}, nil
}

// Name describes the database without its password.
func (p *Pool) Name() string { return where(p.primary.Config().ConnConfig) }

// Connect opens a connection outside the pool. The caller closes it.
func (p *Pool) Connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, p.primary.Config().ConnConfig)
}

// Close waits for running calls and closes the connections. Later calls fail with
// CodeUnavailable. It is safe to call Close more than once.
func (p *Pool) Close() {
	p.closed.Store(true)
	// From here on calls may end, and none begins.
	for _, pool := range p.pools() {
		pool.Close()
	}
}

// pools returns the pools, without duplicates.
func (p *Pool) pools() []*pgxpool.Pool {
	if p.searches == p.primary {
		return []*pgxpool.Pool{p.primary}
	}
	return []*pgxpool.Pool{p.searches, p.primary}
}

// Connections returns how many of this server's connections are in use, and the limit.
func (p *Pool) Connections() (used, most int) {
	for _, pool := range p.pools() {
		s := pool.Stat()
		used += int(s.AcquiredConns())
		most += int(s.MaxConns())
	}

	return used, most
}

// acquirePatience is how long a call waits for a connection.
const acquirePatience = 5 * time.Second

// acquire takes a connection from pool. It returns CodeUnavailable if all of them stay in
// use for acquirePatience.
func (p *Pool) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	if p.closed.Load() {
		return nil, wire.Unavailable(0, "The server is stopping and has closed its database. "+
			"Retry with another server, or with this one when it is back.")
	}

	patient, cancel := context.WithTimeout(ctx, acquirePatience)
	defer cancel()
	conn, err := pool.Acquire(patient)

	// Our patience ended, not the caller's. If connections were free, it was the database
	// that did not answer: that error stays as it is.
	if err != nil && ctx.Err() == nil && errors.Is(patient.Err(), context.DeadlineExceeded) {
		if s := pool.Stat(); s.AcquiredConns() >= s.MaxConns() {
			return nil, &wire.Error{
				Code:       wire.CodeUnavailable,
				RetryAfter: retryAfter,
				Cause:      err,
				Message: fmt.Sprintf("All %d database connections of this server are in use. "+
					"Raise pool_max_conns in --archive, or add a server.", s.MaxConns()),
			}
		}
	}

	return conn, err
}

// snapshot makes all reads of a transaction see the database as of one moment.
var snapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// View runs fn in a read-only transaction that sees the database as of one moment.
func (p *Pool) View(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return p.transact(ctx, p.primary, snapshot, true, fn)
}

// Search is View, on a standby if the connection string asks for one and one answers.
func (p *Pool) Search(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if ctx.Value(current{}) != nil {
		return p.View(ctx, fn)
	}
	return p.transact(ctx, p.searches, snapshot, true, fn)
}

// current marks a context whose searches go to no standby.
type current struct{}

// Current returns a context for searches that must see what was committed before them.
func Current(ctx context.Context) context.Context { return context.WithValue(ctx, current{}, true) }

// Guard has each later Change begin with a statement, which takes no round trip more. If that fails, so
// does the change. It is called before others use the pool.
func (p *Pool) Guard(sql string) { p.changes.BeginQuery = "begin; " + sql }

// Change runs fn in a transaction that may write. Each statement sees what others have
// committed before it (READ COMMITTED).
//
// After a conflict or a lost connection fn runs again from its beginning, so it must have
// no effects outside the transaction. again allows this even if the connection was lost
// during COMMIT, when it is unknown whether the first run was committed.
func (p *Pool) Change(ctx context.Context, again bool, fn func(tx pgx.Tx) error) error {
	return p.transact(ctx, p.primary, p.changes, again, fn)
}

// Unguarded is Change without the statement of Guard. It is for a transaction that only holds a lock,
// perhaps for minutes, and for one that sends the statement with others.
func (p *Pool) Unguarded(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return p.transact(ctx, p.primary, pgx.TxOptions{}, true, fn)
}

// QueryRow runs a statement that returns one row, and scans the row into targets.
//
// The statement is a transaction by itself and may run twice, so it must only read, or write
// the same again.
func (p *Pool) QueryRow(ctx context.Context, targets []any, sql string, args ...any) error {
	// No BEGIN and COMMIT around it, which would be two more round trips.
	return p.WithConn(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(targets...)
	})
}

// QueryRows runs a statement as QueryRow does and returns all its rows, as row reads them.
func QueryRows[T any](
	ctx context.Context, p *Pool, row pgx.RowToFunc[T], sql string, args ...any,
) (items []T, err error) {
	err = p.WithConn(ctx, func(conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, sql, args...)
		items, err = pgx.CollectRows(rows, row)
		return err
	})
	return items, err
}

// Exec runs a statement as QueryRow does, and ignores its rows.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) error {
	return p.WithConn(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

// IsDuplicate reports whether err is a unique_violation.
func IsDuplicate(err error) bool { return SQLState(err) == "23505" }

// Advisory locks are numbers that all users of a database have to agree on. Ours begin with
// the letters "psp". Each kind of work has its own number, so that none waits for another.
const (
	_             = 0x707370<<32 + iota
	TablesLock    // changes the tables
	PartitionLock // creates or drops partitions
	RunLock       // maintains the database: one server at a time, for minutes
)

const (
	healthInterval = 2 * time.Second
	healthPatience = 2 * time.Second
)

// WatchHealth calls report every two seconds with whether the database answers, until ctx ends.
//
// report gets nil, or a wire error that says why not. WatchHealth uses its own
// connection: if it took one from the pool, a busy server would take the database for
// dead. It always returns nil.
func (p *Pool) WatchHealth(ctx context.Context, report func(error)) error {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()

	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		err := p.ping(ctx, &conn)
		// The end of ctx fails the ping, too, but says nothing about the database.
		if ctx.Err() != nil {
			return nil
		}
		report(err)

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ping asks the database for an answer on *conn, which it opens first if it is nil.
func (p *Pool) ping(ctx context.Context, conn **pgx.Conn) (err error) {
	patient, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()

	if *conn == nil {
		if *conn, err = p.Connect(patient); err != nil {
			*conn = nil
			// too_many_connections: the database is alive and serves others.
			if SQLState(err) == "53300" {
				return nil
			}
			return Failure(ctx, err)
		}
	}

	// A broken connection is not mended: the next ping opens another.
	if err := (*conn).Ping(patient); err != nil {
		_ = (*conn).Close(context.WithoutCancel(ctx))
		*conn = nil
		return Failure(ctx, err)
	}

	return nil
}
