package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
)

// A migration is a file NNNN_words.sql, numbered from 1 without a gap. They go forward only, and each in one transaction. A server of the
// version before goes on working beside the new tables during a rollout, so a migration adds; what must go, goes a version later. Its first
// line says "-- works with N": the oldest schema whose servers can work on the tables that it leaves.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step from a schema to the next.
type migration struct {
	number    int
	name      string
	worksWith int // the oldest number of a server that can work on what it leaves
	sql       string
}

// migrations reads all steps, in their order.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for i, path := range names { // sorted
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		m := migration{name: strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql"), sql: string(text)}
		number, _, _ := strings.Cut(m.name, "_")
		first, _, _ := strings.Cut(m.sql, "\n")
		works, said := strings.CutPrefix(first, "-- works with ")
		m.number, _ = strconv.Atoi(number)
		m.worksWith, _ = strconv.Atoi(works)
		if m.number != i+1 || len(number) != 4 || !said || m.worksWith < 1 || m.worksWith > m.number {
			return nil, fmt.Errorf("%s: it must be number %04d and begin with \"-- works with N\", N from 1 to its own", path, i+1)
		}
		all = append(all, m)
	}
	return all, nil
}

// schemaTable holds what was done. It comes before the first migration.
const schemaTable = `CREATE TABLE IF NOT EXISTS promptspool_schema (
	number int PRIMARY KEY,
	name text NOT NULL,
	works_with int NOT NULL,
	applied_at timestamptz NOT NULL
)`

// migrate brings the tables up to date.
func (db *DB) migrate(ctx context.Context) error {
	all, err := migrations(migrationFiles)
	if err != nil {
		return err
	}
	return db.migrateTo(ctx, all)
}

// migrateTo carries out the migrations that the database has not seen. It refuses tables that a newer version has made such that this one
// cannot work on them.
func (db *DB) migrateTo(ctx context.Context, all []migration) error {
	done, worksWith, err := db.schema(ctx, all)
	if err == nil && done < len(all) {
		done, worksWith, err = db.advance(ctx, all)
	}
	if err == nil && worksWith > len(all) {
		err = wire.Errorf(wire.CodeUnavailable, "its tables are of version %d and need a promptspool that knows at least version %d; this one knows %d. "+
			"Start the newer version again, or restore a backup of the older tables.", done, worksWith, len(all))
	}
	return err
}

// schema says which migrations were carried out, and the oldest version that can work on them. It only reads, so that servers that find
// nothing to do wait for nobody.
func (db *DB) schema(ctx context.Context, all []migration) (done, worksWith int, err error) {
	err = db.view(ctx, func(tx pgx.Tx) error {
		there := false
		if err := tx.QueryRow(ctx, `SELECT to_regclass('promptspool_schema') IS NOT NULL`).Scan(&there); err != nil || !there {
			return err
		}
		done, worksWith, err = readSchema(ctx, tx, all)
		return err
	})
	return done, worksWith, err
}

// readSchema refuses tables that other migrations have made than ours of the same numbers: those of a version that was never released.
func readSchema(ctx context.Context, tx pgx.Tx, all []migration) (done, worksWith int, err error) {
	var names []string
	err = tx.QueryRow(ctx, `SELECT coalesce(max(number), 0), coalesce(max(works_with), 0), coalesce(array_agg(name ORDER BY number), '{}') FROM promptspool_schema`).Scan(&done, &worksWith, &names)
	for i := range min(len(names), len(all)) {
		if err == nil && names[i] != all[i].name {
			err = wire.Errorf(wire.CodeUnavailable, "its tables were made by %s, where this version has %s: they are of a version that was never released. Carry its records over with that version's requests export, into a database that is empty.",
				names[i], all[i].name)
		}
	}
	return done, worksWith, err
}

// advance carries out what is missing, one server at a time, each step in a transaction.
func (db *DB) advance(ctx context.Context, all []migration) (done, worksWith int, err error) {
	ctx = patiently(ctx)
	for err == nil {
		err = db.change(ctx, true, func(tx pgx.Tx) error {
			// Making tables may take longer than a question may. The lock ends with the transaction, also behind a pool of connections.
			for _, sql := range []string{`SET LOCAL statement_timeout = 0`, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, migrationLock), schemaTable} {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
			if done, worksWith, err = readSchema(ctx, tx, all); err != nil || done >= len(all) {
				return err
			}
			m := all[done]
			db.logger.Info("making the tables of the database", "migration", m.name)
			if _, err := tx.Conn().PgConn().Exec(ctx, m.sql).ReadAll(); err != nil {
				return fmt.Errorf("migration %s: %w", m.name, err)
			}
			_, err := tx.Exec(ctx, `INSERT INTO promptspool_schema (number, name, works_with, applied_at) VALUES ($1, $2, $3, $4)`, m.number, m.name, m.worksWith, db.now().UTC())
			done, worksWith = done+1, max(worksWith, m.worksWith)
			return err
		})
		if done >= len(all) {
			break
		}
	}
	return done, worksWith, err
}
