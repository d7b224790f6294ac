package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"promptspool/api/auth"
	"promptspool/api/ops"
	"promptspool/api/webhook"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/archivetool"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/metrics"
	"promptspool/registry"
	"promptspool/spool/archive"
	"promptspool/spool/archive/alerts"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/postgres"
)

// database is where a server keeps everything. It is the Badger in the server's data
// folder, or a PostgreSQL that it may share with others.
type database interface {
	archive.Store
	registry.Store
	auth.Store
	auth.PeopleStore
	wire.Sidecars
	wire.Reviews
	wire.Views
	webhook.Store
	alerts.Store

	Size(ctx context.Context) (archive.Size, error)
	FleetOfAll(ctx context.Context) (known, alive int, err error)
	NotifyFleet(ctx context.Context) error

	Run(ctx context.Context) error // tidies until ctx ends
	Close() error
}

// opened is a database and what depends on which it is.
type opened struct {
	db     database
	name   string                 // for people; tells no password
	tools  ops.Archive            // nil: it comes with its own
	failed <-chan error           // ends the process; nil means never
	remote remoteDatabase         // nil: it is in this process
	damage func() badgerdb.Damage // nil: it has no files of ours
	space  func() int64           // how much of the disk stays free; nil as damage
}

// remoteDatabase is a database in another process.
type remoteDatabase interface {
	WatchHealth(ctx context.Context, told func(error)) error // tells again and again whether it answers, until ctx ends
	Connections() (used, most int)

	// NodesAway returns the nodes that do not answer of a database that is spread over several.
	NodesAway(ctx context.Context) ([]string, error)
}

// openDatabase opens what --archive names. readAll has the files of a Badger read before.
func openDatabase(ctx context.Context, c serverConfig, readAll bool) (opened, error) {
	dir := datafolder.Archive(c.data)

	// Badger, in the data folder.
	if c.archive == "" {
		db, err := badgerdb.Open(badgerdb.Config{
			Dir: dir, Logger: c.logger, Retention: c.retention, Usage: c.usage, FreeMin: c.freeMin, ReadAll: readAll,
		})
		if err != nil {
			return opened{}, err
		}
		storage := opened{
			db:     db,
			name:   "badger",
			tools:  archivetool.Live{DB: db},
			failed: db.Failed(),
			damage: db.Damage,
			space:  db.FreeMin,
		}
		return storage, archivetool.RejectHalfCopied(ctx, db, "badger:"+c.data)
	}

	// PostgreSQL.
	if _, err := os.Stat(filepath.Join(dir, "FORMAT")); err == nil {
		c.logger.Warn("the data folder also holds an archive, which this server does not look at; "+
			"`promptspool archive copy` brings what is in it to the database", "folder", dir)
	}
	name := config.ShowArchive(string(c.archive))
	db, err := postgres.Open(ctx, postgres.Config{
		DSN: string(c.archive), Logger: c.logger, Retention: c.retention, Usage: c.usage,
	})
	if ctx.Err() != nil {
		err = errors.New("the server was stopped while it waited for the database")
	}
	if err != nil {
		return opened{}, fmt.Errorf("--archive %s: %s", name, archivetool.Explain(err))
	}
	return opened{db: db, name: name, remote: db}, archivetool.RejectHalfCopied(ctx, db, name)
}

// dbHealth is whether a server's database answers.
type dbHealth struct {
	away    atomic.Pointer[error] // why it does not answer; nil while it does
	metrics *metrics.Metrics
	logger  *slog.Logger
}

// set notes whether the database answers, and logs each change.
func (h *dbHealth) set(err error) {
	if err == nil {
		h.metrics.ArchiveUp.Set(1)
		// Only the change is logged: this is called every two seconds.
		if h.away.Swap(nil) != nil {
			h.logger.Info("the database is back")
		}
		return
	}

	h.metrics.ArchiveUp.Set(0)
	if h.away.Swap(&err) == nil {
		h.logger.Warn("the database does not answer; writes get 503, and the sidecars keep them", "error", err)
	}
}

// err returns why the server cannot take requests, nil if it can.
func (h *dbHealth) err() error {
	if err := h.away.Load(); err != nil {
		return errors.New(strings.TrimSuffix(wire.AsError(*err).Message, "."))
	}
	return nil
}

// watch returns what follows a database until its ctx ends. A nil database is one in this process, which
// always answers.
func (h *dbHealth) watch(db remoteDatabase) func(context.Context) error {
	return func(ctx context.Context) error {
		// A database in this process is not watched: its metric would stay at 0.
		h.set(nil)
		if db == nil {
			<-ctx.Done()
			return nil
		}

		return db.WatchHealth(ctx, func(err error) {
			h.set(err)
			used, most := db.Connections()
			h.metrics.ArchiveConns.Set(float64(used))
			h.metrics.ArchiveConnsMax.Set(float64(most))
		})
	}
}
