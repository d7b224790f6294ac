package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
	"promptspool/spool/database/repack"
)

// Config says how to reach the database and what to keep in it.
type Config struct {
	// DSN is a connection string, as a URL or as key=value pairs:
	// postgres://user:password@host1,host2/name?target_session_attrs=read-write
	DSN string

	Logger *slog.Logger     // default: slog.Default
	Now    func() time.Time // default: time.Now; the clock for the times that are stored

	Retention archive.Retention // enforced by Run
	Usage     *metrics.Usage    // what calls used is counted in it; nil does not count

	// HalfSpread opens a database of which only some tables are spread, for Distribute.
	HalfSpread bool
}

// DB is a server's database: an archive.Store, a registry.Store and an auth.Store.
//
// It is safe for concurrent use, also by any number of servers at the same time.
type DB struct {
	*accounts.Store
	archive.RecordReader

	pool      *connection.Pool
	tables    *schema.Tables
	packer    *repack.Packer
	logger    *slog.Logger
	now       func() time.Time
	retention archive.Retention
	usage     *metrics.Usage

	spread      bool         // the tables are spread over the nodes of a Citus
	insertUntil atomic.Int64 // where they are spread: nothing is copied before this time

	codec          *codec
	commits        *archive.Committer[application]
	isolated       isolated
	patience       time.Duration // with statements that may wait for a worker of a Citus
	summarizing    summarizing
	bodiesBytesMax int64
	heldBytesMax   int // see archive.HeldBytesMax
	slot           int // the first of this server's slots in account_weeks; see newCommitter
}

// How long Open waits for a database that is starting.
const (
	openPatience      = 20 * time.Second
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

	// Before the pool, which would have to be closed.
	codec, err := newCodec()
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	pool, err := connection.Open(ctx, c.DSN)
	if err != nil {
		return nil, err
	}

	db := &DB{
		pool:           pool,
		logger:         c.Logger,
		now:            c.Now,
		retention:      c.Retention,
		usage:          c.Usage,
		codec:          codec,
		summarizing:    summarizingDefault,
		bodiesBytesMax: bodiesBytesDefault,
		heldBytesMax:   archive.HeldBytesMax,
		patience:       patienceDefault,

		// Chosen at random, so that two servers rarely update the same row of counts.
		slot: rand.N(slotsOf) * lanes,
	}
	now := func() time.Time { return db.now() }
	db.Store = accounts.New(db.small(), now)
	db.RecordReader = db.readRecord
	db.packer = repack.NewPacker(db, codec.Codec, c.Logger, now)
	db.tables = schema.New(pool, c.Logger, now)
	db.commits = newCommitter(0, db.applyTogether)
	db.isolated.commits = newCommitter(slotsOf*lanes, db.applyIsolated)

	if err := db.start(ctx, c.HalfSpread); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}

	return db, nil
}

// start creates the tables if there are none, and waits for a database that does not answer yet.
func (db *DB) start(ctx context.Context, halfSpread bool) error {
	deadline := time.Now().Add(openPatience)

	// Each step may be repeated: what is done already is found to be done.
	for waited := false; ; waited = true {
		var err error
		db.spread, err = db.tables.Spread(ctx, halfSpread)
		if err == nil {
			err = db.tables.Create(ctx)
		}
		if err == nil {
			err = db.tables.MakeAhead(ctx)
		}
		if err == nil {
			err = db.warnOfLoss(ctx)
		}
		// The tables change once those who read or write them for long have ended, however long that takes.
		away := connection.Away(err)
		if err == nil || !away && !connection.Busy(err) || ctx.Err() != nil {
			return err
		}
		if away && time.Now().After(deadline) {
			return connection.Unavailable(fmt.Sprintf("The database did not answer for %s, so the server ends. "+
				"Check that it runs and that --archive names the right host and port, then start the server again.",
				openPatience), errors.Unwrap(err))
		}

		if !waited {
			db.logger.Warn("Database is not ready yet; waiting for it", "at_most", openPatience, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(openRetryInterval):
		}
	}
}

// settingsOfLoss are whether a commit is on disk when it is answered.
const settingsOfLoss = `SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit')`

// warnOfLoss logs a warning if the database acknowledges writes before they are on disk, on any
// node. A 200 of ours would then promise too much.
func (db *DB) warnOfLoss(ctx context.Context) error {
	return db.pool.WithConn(ctx, func(conn *pgx.Conn) error {
		database := worker{name: "of --archive", ok: true}
		err := conn.QueryRow(ctx, settingsOfLoss).Scan(&database.result)
		nodes := []worker{database}
		if err == nil && db.spread {
			var workers []worker
			workers, err = askWorkers(ctx, conn, settingsOfLoss)
			nodes = append(nodes, workers...)
		}
		if err != nil {
			return err
		}

		for _, n := range nodes {
			fsync, commit, _ := strings.Cut(n.result, " ")
			if n.ok && (fsync == "off" || commit == "off") {
				db.logger.Warn("Database acknowledges writes before they are on disk: a crash of its machine may "+
					"lose events that were answered with 200. Set fsync and synchronous_commit to on",
					"node", n.name, "fsync", fsync, "synchronous_commit", commit)
			}
		}
		return nil
	})
}

// Distribute spreads the tables over the workers of a Citus, and returns how many shards each
// has. It can be interrupted and repeated; no server may use the database meanwhile. The DB
// must be opened again to be used after it.
func (db *DB) Distribute(ctx context.Context, told func(table string)) (shards int, err error) {
	return db.tables.Distribute(ctx, told)
}

// Close waits for running calls and closes the connections. Later calls fail with
// CodeUnavailable. It is safe to call Close more than once.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// Connections returns how many of this server's connections are in use, and the limit.
func (db *DB) Connections() (used, most int) { return db.pool.Connections() }

// WatchHealth calls report every two seconds with whether the database answers, until ctx ends.
//
// report gets nil, or a wire error that says why not. It always returns nil.
func (db *DB) WatchHealth(ctx context.Context, report func(error)) error {
	return db.pool.WatchHealth(ctx, report)
}

const (
	runEvery    = time.Minute
	retainEvery = 10 * time.Minute
)

// Run maintains the database until ctx ends; it then returns nil.
//
// It creates the partitions of the next weeks, enforces the retention, makes summaries and indexes of words,
// and renews what an earlier version wrote.
// Of several servers one does so at a time; when it stops, another takes over.
func (db *DB) Run(ctx context.Context) error {
	// Each server packs what came over it.
	var packing sync.WaitGroup
	defer packing.Wait()
	packing.Go(func() { db.packer.Run(ctx) })

	tick := time.NewTicker(runEvery)
	defer tick.Stop()

	retained := time.Time{}
	maintain := func() error {
		// First, since without the next week nothing could be written.
		err := db.tables.MakeAhead(ctx)

		if time.Since(retained) >= retainEvery {
			retained = time.Now()
			dropped, e := archive.Retain(ctx, db, db.retention, db.now())
			err = errors.Join(err, e)
			if dropped > 0 {
				db.logger.Info("Deleted records beyond the retention", "records", dropped)
			}
			now := db.now()
			err = errors.Join(err,
				db.TrimAudit(ctx, now.Add(-wire.AuditAge), now.Add(-wire.AuditFresh), wire.AuditMost))
		}

		// After an upgrade, searches for words wait most for what is made again. Summaries come last, as a
		// row that is filled removes its own.
		err = errors.Join(err, db.IndexTexts(ctx), archive.Renew(connection.Current(ctx), db, db.logger))
		return errors.Join(err, db.Summarize(ctx))
	}

	for {
		// One server of a database does this at a time; the others try again later.
		err := db.withLock(ctx, connection.RunLock, maintain)
		if err != nil && ctx.Err() == nil {
			db.logger.Error("Database maintenance failed; it will be retried", "error", err)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// withLock runs fn while holding an advisory lock, unless another server holds it.
func (db *DB) withLock(ctx context.Context, lock int64, fn func() error) error {
	var failed error
	err := db.pool.Unguarded(ctx, func(tx pgx.Tx) error {
		// Not waited for: its holder does the same work.
		locked := false
		err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, lock).Scan(&locked)
		if err != nil || !locked {
			return err
		}

		// fn uses its own transactions; this one only holds the lock. Its error must not be
		// returned here, or this transaction would be retried and fn run again.
		failed = fn()
		return nil
	})

	return errors.Join(err, failed)
}
