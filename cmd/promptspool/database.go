package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"promptspool/api"
	"promptspool/api/auth"
	"promptspool/api/dashboard"
	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/registry"
	"promptspool/spool/archive"
	"promptspool/spool/archive/badgerdb"
	"promptspool/spool/archive/postgres"
)

// database is where a server keeps all that it holds: the Badger in its data folder, which is its own, or a PostgreSQL that it may share
// with others.
type database interface {
	archive.Store
	registry.Store
	auth.Store
	auth.PeopleStore
	api.Fleet
	dashboard.Storage

	Size(ctx context.Context) (archive.Size, error)
	OrphansOfAll(ctx context.Context) (archive.Orphans, error)
	FleetOfAll(ctx context.Context) (known, alive int, err error)

	Run(ctx context.Context) error // tidies until ctx ends
	Close() error
}

// opened is a database and what depends on which it is.
type opened struct {
	db     database
	name   string                 // for people; tells no password
	tools  ops.Archive            // nil: it comes with its own
	failed <-chan error           // ends the process; nil: never
	remote remoteDatabase         // nil: it is in this process
	damage func() badgerdb.Damage // nil: it has no files of ours
}

// remoteDatabase is a database in another process.
type remoteDatabase interface {
	Pulse(ctx context.Context, told func(error)) error // tells again and again whether it answers, until ctx ends
	Connections() (used, most int)
}

// openDatabase opens what --archive names. readAll has the files of a Badger read before.
func openDatabase(ctx context.Context, c serverConfig, readAll bool) (opened, error) {
	dir := datafolder.Archive(c.data)
	if c.archive == "" {
		db, err := badgerdb.Open(badgerdb.Config{
			Dir: dir, Logger: c.logger, Retention: c.retention, FreeMin: c.freeMin, ReadAll: readAll,
		})
		if err != nil {
			return opened{}, err
		}
		return opened{db: db, name: "badger", tools: liveArchive{db}, failed: db.Failed(), damage: db.Damage}, whole(ctx, db, "badger:"+c.data)
	}
	if _, err := os.Stat(filepath.Join(dir, "FORMAT")); err == nil {
		c.logger.Warn("the data folder holds an archive of its own, which this server does not look at; `promptspool archive copy` brings what is in it to the database", "folder", dir)
	}
	name := config.ShowArchive(string(c.archive))
	db, err := postgres.Open(ctx, postgres.Config{DSN: string(c.archive), Logger: c.logger, Retention: c.retention})
	if ctx.Err() != nil {
		err = errors.New("the server was stopped while it waited for the database")
	}
	if err != nil {
		return opened{}, fmt.Errorf("--archive %s: %s", name, explained(err))
	}
	return opened{db: db, name: name, remote: db}, whole(ctx, db, name)
}

// explained is what a database's error says to a person, and what is behind it.
func explained(err error) string {
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Cause != nil {
		return e.Message + " (" + strings.Join(strings.Fields(e.Cause.Error()), " ") + ")"
	} else if ok {
		return e.Message
	}
	return err.Error()
}

// whole refuses a database into which a copy was begun and not finished, and closes it.
func whole(ctx context.Context, db movable, name string) error {
	_, unfinished, err := db.Copying(ctx)
	if err == nil && unfinished {
		err = fmt.Errorf("an archive is being copied to %s, or such a copy broke off: run `promptspool archive copy` to its end first", name)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}
