package schema

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/database/postgres/connection"
)

// version is the version of the tables of SQL. Releases may have made earlier ones; a
// server does not work on later ones.
const version = 1

// SQL creates the tables in an empty database.
//
//go:embed schema.sql
var SQL string

// versionTable records the version of the tables: the highest number in it.
const versionTable = `CREATE TABLE IF NOT EXISTS promptspool_schema (
	number int PRIMARY KEY,
	applied_at timestamptz NOT NULL
)`

// Create creates the tables in an empty database. It rejects tables of a later version.
func (t *Tables) Create(ctx context.Context) error {
	found, err := t.version(ctx)
	if err == nil && found == 0 {
		found, err = t.create(ctx)
	}

	if err == nil && found > version {
		err = wire.Errorf(wire.CodeUnavailable, "its tables are of a newer version of promptspool (schema %d; this "+
			"one works with up to %d): run that version, or restore a dump from before the upgrade into another "+
			"database", found, version)
	}

	return err
}

// version returns the version of the tables, 0 if there are none. It takes no lock, so a
// server that finds nothing to do does not wait for others.
func (t *Tables) version(ctx context.Context) (found int, err error) {
	err = t.pool.View(ctx, func(tx pgx.Tx) error {
		exists := false
		err := tx.QueryRow(ctx, `SELECT to_regclass('promptspool_schema') IS NOT NULL`).Scan(&exists)
		if err != nil || !exists {
			return err
		}
		found, err = readVersion(ctx, tx)
		return err
	})

	return found, err
}

func readVersion(ctx context.Context, tx pgx.Tx) (found int, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(max(number), 0) FROM promptspool_schema`).Scan(&found)
	return found, err
}

// create creates the tables in one transaction, one server at a time.
func (t *Tables) create(ctx context.Context) (found int, err error) {
	err = t.pool.Change(connection.Patiently(ctx), true, func(tx pgx.Tx) error {
		if err := lockTables(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, versionTable); err != nil {
			return err
		}

		// Another server may have created them while we waited for the lock.
		if found, err = readVersion(ctx, tx); err != nil || found > 0 {
			return err
		}

		// One by one: Citus passes on to its workers everything that came in one message,
		// and they take one statement at a time.
		t.logger.Info("Creating database tables")
		for sql := range strings.SplitAfterSeq(SQL, ";\n") {
			if _, err := tx.Conn().PgConn().Exec(ctx, sql).ReadAll(); err != nil {
				return fmt.Errorf("create the tables: %w", err)
			}
		}

		// In the same transaction: the tables and their version are there, or neither.
		found = version
		_, err := tx.Exec(ctx, `INSERT INTO promptspool_schema (number, applied_at) VALUES ($1, $2)`,
			version, t.now().UTC())
		return err
	})

	return found, err
}

// lockTables prepares a transaction to change tables, while no other does.
func lockTables(ctx context.Context, tx pgx.Tx) error {
	for _, sql := range []string{
		// Creating tables may take longer than a query may.
		`SET LOCAL statement_timeout = 0`,
		// On Citus one connection to each node then changes all shards, so that a transaction
		// can change several tables. Elsewhere the setting has no meaning.
		`SET LOCAL citus.multi_shard_modify_mode = 'sequential'`,
		// The lock is the transaction's, not the session's, so it is also released after a
		// connection pooler.
		fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, connection.TablesLock),
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}

	return nil
}
