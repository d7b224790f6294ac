package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
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
		*conn, err = p.Connect(patient)
		if err != nil {
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

// Defaults for what the connection string leaves open.
const (
	connectTimeout   = 5 * time.Second
	statementTimeout = "30s"
	connectionsMax   = 16
)

// ApplicationName is what the database knows servers by. A copy uses another one.
const ApplicationName = "promptspool"

// poolConfig parses the connection string and fills in our defaults.
func poolConfig(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// pgx leaves the password out of this error.
		return nil, fmt.Errorf("the connection string of the database: %w", err)
	}

	settings := config.ConnConfig.RuntimeParams
	if settings["statement_timeout"] == "" {
		settings["statement_timeout"] = statementTimeout
	}
	config.ConnConfig.Tracer = cmp.Or(newBound(settings["statement_timeout"]), &bound{})
	if settings["application_name"] == "" {
		settings["application_name"] = ApplicationName
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if !saysConnections(dsn) {
		config.MaxConns = connectionsMax
	}
	// A count whose time is up ends its query. Without this, it would end the connection.
	config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Second}
	}

	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		// Times are read as UTC, whatever this machine's time zone is.
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name:  "timestamptz",
			OID:   pgtype.TimestamptzOID,
			Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}

	return config, nil
}

// saysConnections reports whether a connection string sets the size of the pool.
func saysConnections(dsn string) bool {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		return u.Query().Has("pool_max_conns")
	}
	return strings.Contains(dsn, "pool_max_conns")
}

// search=prefer-standby in the connection string sends searches, statistics and exports to a
// standby. Their answers are as old as its data.
const (
	searchParameter = "search"
	searchStandby   = "prefer-standby"
)

// searchLifetime is how long a connection for searches is used. New ones find a standby that
// was away.
const searchLifetime = 5 * time.Minute

var errSearch = errors.New("the connection string of the database: search must be " + searchStandby +
	" (search a standby), or left out to search the primary")

// newPools opens the pool for everything that must be current, and the pool for searches.
// They are the same unless the connection string asks for a standby.
func newPools(ctx context.Context, config *pgxpool.Config) (pool, searches *pgxpool.Pool, err error) {
	settings := config.ConnConfig.RuntimeParams
	wanted, standby := settings[searchParameter]
	delete(settings, searchParameter)
	if standby && wanted != searchStandby {
		return nil, nil, errSearch
	}

	pool, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil || !standby {
		return pool, pool, err
	}
	// If no standby answers, pgx falls back to the primary.
	config = config.Copy()
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPreferStandby
	config.MaxConnLifetime = searchLifetime
	searches, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("for searches: %w", err)
	}

	return pool, searches, nil
}

// bound ends statements that the database should have ended by itself. A database whose disk
// hangs, or whose machine is gone, does not. bound is a pgx.QueryTracer: pgx calls it around
// each statement, and lets it replace the context.
type bound struct {
	most time.Duration // 0 if the database has no timeout
}

// This side waits longer than statement_timeout, so that normally the database is the one to
// end a statement. A batch has several statements.
const (
	answerGrace = 5 * time.Second
	batchFactor = 2
)

// newBound parses a statement_timeout as the database does: milliseconds, or a number with a
// unit. It returns nil if there is no timeout.
func newBound(statementTimeout string) *bound {
	// PostgreSQL allows spaces, and says min where Go says m.
	text := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(statementTimeout), " ", ""), "min", "m")
	most, err := time.ParseDuration(text)
	if ms, errNumber := strconv.Atoi(text); errNumber == nil {
		most, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || most <= 0 {
		return nil
	}

	return &bound{most}
}

// ending is the key of the cancel function that end calls.
type ending struct{}

// patient marks a context whose statements have no bound.
type patient struct{}

// Patiently returns a context for statements that may take any time.
func Patiently(ctx context.Context) context.Context { return context.WithValue(ctx, patient{}, true) }

func (b *bound) start(ctx context.Context, factor time.Duration) context.Context {
	most := factor*b.most + answerGrace
	hurry, hurried := ctx.Value(impatient{}).(time.Duration)
	switch {
	case hurried:
		most = hurry
	case ctx.Value(patient{}) != nil || b.most == 0:
		return ctx
	}
	// end finds cancel in the context: pgx passes it to the end of the same statement.
	ctx, cancel := context.WithTimeout(ctx, most)
	return context.WithValue(ctx, ending{}, cancel)
}

func end(ctx context.Context) {
	if cancel, ok := ctx.Value(ending{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (b *bound) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return b.start(ctx, 1)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (b *bound) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { end(ctx) }

// TraceBatchStart implements pgx.BatchTracer.
func (b *bound) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return b.start(ctx, batchFactor)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (b *bound) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (b *bound) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { end(ctx) }

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (b *bound) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return b.start(ctx, batchFactor)
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (b *bound) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	end(ctx)
}
