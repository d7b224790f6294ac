package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/accounts"
)

// Config says where the database is.
type Config struct {
	DSN    string           // postgres://user:password@host1,host2/name?target_session_attrs=read-write, or the same in words: host=... dbname=...
	Logger *slog.Logger     // nil: slog.Default
	Now    func() time.Time // nil: time.Now; stamps what the database stores

	Retention archive.Retention // what Run keeps
}

// DB is the database of a server: an archive.Store, a registry.Store and an auth.Store. Safe for concurrent use, and for any
// number of servers at the same time.
type DB struct {
	*accounts.Store

	pool      *pgxpool.Pool
	searches  *pgxpool.Pool // pool, unless a standby is searched
	logger    *slog.Logger
	now       func() time.Time
	retention archive.Retention
	closed    atomic.Bool

	codec          *codec
	commits        *archive.Committer[application]
	partitions     partitions
	summarizing    summarizing
	bodiesBytesMax int64
	unseenMax      int // see archive.UnseenMax
	heldBytesMax   int // see archive.HeldBytesMax
	slot           int // the first of those in which this server counts what accounts have
}

// What the connection string leaves open.
const (
	connectTimeout    = 5 * time.Second
	statementTimeout  = "30s"
	connectionsMax    = 16
	openPatience      = 20 * time.Second // how long Open waits for a database that is starting
	acquirePatience   = 5 * time.Second  // how long a call waits for a connection
	applicationName   = "promptspool"
	openRetryInterval = 500 * time.Millisecond
)

// Open connects to the database, and makes its tables or brings them up to date: one server at a time does. It waits a while for a
// database that is starting. ctx bounds the opening, not what is done with the DB afterwards. The caller closes the DB.
func Open(ctx context.Context, c Config) (*DB, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	config, err := poolConfig(c.DSN)
	if err != nil {
		return nil, err
	}
	codec, err := newCodec()
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	pool, searches, err := newPools(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	db := &DB{pool: pool, searches: searches, logger: c.Logger, now: c.Now, retention: c.Retention, codec: codec, slot: rand.N(slotsOf) * lanes, summarizing: summarizingDefault,
		bodiesBytesMax: bodiesBytesDefault, heldBytesMax: archive.HeldBytesMax, unseenMax: archive.UnseenMax}
	db.Store = accounts.New(accountTables{db}, func() time.Time { return db.now() })
	db.commits = newCommitter(db.applyGroup)
	if err := db.start(ctx); err != nil {
		db.closePools()
		return nil, fmt.Errorf("open the database %s: %w", where(config.ConnConfig), err)
	}
	return db, nil
}

// poolConfig reads the connection string; what it does not say gets our defaults.
func poolConfig(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the connection string of the database: %w", err) // it tells no password
	}
	settings := config.ConnConfig.RuntimeParams
	if settings["statement_timeout"] == "" {
		settings["statement_timeout"] = statementTimeout
	}
	if b := newBound(settings["statement_timeout"]); b != nil {
		config.ConnConfig.Tracer = b
	}
	if settings["application_name"] == "" {
		settings["application_name"] = applicationName
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		// Times come in UTC, whatever this machine's zone is.
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		return nil
	}
	if !saysConnections(dsn) {
		config.MaxConns = connectionsMax
	}
	return config, nil
}

// start brings the tables up to date, and waits for a database that is not there yet.
func (db *DB) start(ctx context.Context) error {
	deadline := time.Now().Add(openPatience)
	for waited := false; ; waited = true {
		err := db.migrate(ctx)
		if err == nil {
			err = db.makeAhead(ctx)
		}
		if err == nil {
			err = db.warnOfLoss(ctx)
		}
		if err == nil || !away(err) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		if !waited {
			db.logger.Warn("the database does not answer yet; the server waits for it", "error", err, "at_most", openPatience)
		}
		select {
		case <-ctx.Done():
		case <-time.After(openRetryInterval):
		}
	}
}

// warnOfLoss says so when the database acknowledges what is not on its disk: then a 200 of ours promises too much.
func (db *DB) warnOfLoss(ctx context.Context) error {
	var fsync, commit string
	err := db.one(ctx, nil, []any{&fsync, &commit}, `SELECT current_setting('fsync'), current_setting('synchronous_commit')`)
	if err == nil && (fsync == "off" || commit == "off") {
		db.logger.Warn("the database acknowledges writes before they are on its disk; a crash of its machine may lose some that were answered 200. Set fsync and synchronous_commit to on",
			"fsync", fsync, "synchronous_commit", commit)
	}
	return err
}

// Close waits for the calls that run and ends the connections. Every call after it fails with CodeUnavailable. Closing again does nothing.
func (db *DB) Close() error {
	db.closed.Store(true)
	db.closePools()
	return nil
}

// acquire takes a connection, and gives up with CodeUnavailable when all stay in use.
func (db *DB) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	if db.closed.Load() {
		return nil, wire.Unavailable(0, "The database is closed: the server is stopping. Send it again, to another server or to this one when it is back.")
	}
	patient, cancel := context.WithTimeout(ctx, acquirePatience)
	defer cancel()
	conn, err := pool.Acquire(patient)
	if err != nil && ctx.Err() == nil && errors.Is(patient.Err(), context.DeadlineExceeded) {
		if s := pool.Stat(); s.AcquiredConns() >= s.MaxConns() {
			return nil, &wire.Error{Code: wire.CodeUnavailable, RetryAfter: retryAfter, Cause: err, Message: fmt.Sprintf(
				"All %d connections of this server to the database are in use. Raise pool_max_conns in --archive, or start another server.", s.MaxConns())}
		}
	}
	return conn, err
}

// view runs reads on the database as of one moment.
func (db *DB) view(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return db.transact(ctx, db.pool, viewing, true, fn)
}

// search runs reads as view does, at a standby if the connection string wants that and one answers.
func (db *DB) search(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return db.transact(ctx, db.searches, viewing, true, fn)
}

var viewing = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// change runs fn in a transaction, again from its beginning after a conflict with another or a lost connection, so fn must
// have no effects of its own. It reads what others have committed (READ COMMITTED). again says that fn may be run even if an earlier run
// was perhaps committed, of which nobody can tell when the connection is lost at that moment.
func (db *DB) change(ctx context.Context, again bool, fn func(tx pgx.Tx) error) error {
	return db.transact(ctx, db.pool, pgx.TxOptions{}, again, fn)
}
