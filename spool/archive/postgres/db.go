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

// Config says how to reach the database and what to keep in it.
type Config struct {
	// DSN is a connection string, as a URL or as key=value pairs:
	// postgres://user:password@host1,host2/name?target_session_attrs=read-write
	DSN string

	Logger *slog.Logger     // default: slog.Default
	Now    func() time.Time // default: time.Now; the clock behind the times that are stored

	Retention archive.Retention // enforced by Run
}

// DB is a server's database: an archive.Store, a registry.Store and an auth.Store.
//
// It is safe for concurrent use, also by any number of servers at the same time.
type DB struct {
	*accounts.Store

	pool      *pgxpool.Pool
	searches  *pgxpool.Pool // the same as pool, unless searches go to a standby
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
	slot           int // the first of this server's slots in account_weeks, one per lane
}

// Defaults for what the connection string leaves open, and how long we wait.
const (
	connectTimeout    = 5 * time.Second
	statementTimeout  = "30s"
	connectionsMax    = 16
	openPatience      = 20 * time.Second // how long Open waits for a database that is starting
	acquirePatience   = 5 * time.Second  // how long a call waits for a connection
	applicationName   = "promptspool"
	openRetryInterval = 500 * time.Millisecond
)

// Open connects to the database and creates or upgrades its tables.
//
// Only one server at a time upgrades; the others wait for it. Open also waits a while for a
// database that is still starting. ctx bounds the opening only, not the use of the DB. The
// caller must call Close.
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

	db := &DB{
		pool:           pool,
		searches:       searches,
		logger:         c.Logger,
		now:            c.Now,
		retention:      c.Retention,
		codec:          codec,
		summarizing:    summarizingDefault,
		bodiesBytesMax: bodiesBytesDefault,
		heldBytesMax:   archive.HeldBytesMax,
		unseenMax:      archive.UnseenMax,

		// Chosen at random, so that two servers rarely update the same row of counts.
		slot: rand.N(slotsOf) * lanes,
	}
	db.Store = accounts.New(accountTables{db}, func() time.Time { return db.now() })
	db.commits = newCommitter(db.applyGroup)

	if err := db.start(ctx); err != nil {
		db.closePools()
		return nil, fmt.Errorf("open the database %s: %w", where(config.ConnConfig), err)
	}

	return db, nil
}

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
	if b := newBound(settings["statement_timeout"]); b != nil {
		config.ConnConfig.Tracer = b
	}
	if settings["application_name"] == "" {
		settings["application_name"] = applicationName
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if !saysConnections(dsn) {
		config.MaxConns = connectionsMax
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

// start upgrades the tables, and waits for a database that does not answer yet.
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
			db.logger.Warn("Database does not answer yet; waiting for it", "error", err, "at_most", openPatience)
		}
		select {
		case <-ctx.Done():
		case <-time.After(openRetryInterval):
		}
	}
}

// warnOfLoss logs a warning if the database acknowledges writes before they are on disk. A
// 200 of ours would then promise too much.
func (db *DB) warnOfLoss(ctx context.Context) error {
	var fsync, commit string
	err := db.queryRow(ctx, nil, []any{&fsync, &commit},
		`SELECT current_setting('fsync'), current_setting('synchronous_commit')`)
	if err == nil && (fsync == "off" || commit == "off") {
		db.logger.Warn("Database acknowledges writes before they are on disk: a crash of its machine may lose "+
			"events that were answered with 200. Set fsync and synchronous_commit to on",
			"fsync", fsync, "synchronous_commit", commit)
	}

	return err
}

// Close waits for running calls and closes the connections. Later calls fail with
// CodeUnavailable. It is safe to call Close more than once.
func (db *DB) Close() error {
	db.closed.Store(true)
	db.closePools()
	return nil
}

// acquire takes a connection from pool. It returns CodeUnavailable if all of them stay in
// use for acquirePatience.
func (db *DB) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	if db.closed.Load() {
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

// view runs fn in a read-only transaction that sees the database as of one moment.
func (db *DB) view(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return db.transact(ctx, db.pool, snapshot, true, fn)
}

// search is view, on a standby if the connection string asks for one and one answers.
func (db *DB) search(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return db.transact(ctx, db.searches, snapshot, true, fn)
}

// change runs fn in a transaction that may write. Each statement sees what others have
// committed before it (READ COMMITTED).
//
// After a conflict or a lost connection fn runs again from its beginning, so it must have no
// effects outside the transaction. again allows this even if the connection was lost during
// COMMIT, when nobody can know whether the first run was committed.
func (db *DB) change(ctx context.Context, again bool, fn func(tx pgx.Tx) error) error {
	return db.transact(ctx, db.pool, pgx.TxOptions{}, again, fn)
}
