package schema

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive/postgres/connection"
)

// Migrations are the files of this version.
//
// A migration is a file NNNN_words.sql, numbered from 1 without gaps. Migrations only go
// forward, each in one transaction. During a rollout, servers of the previous version keep
// working on the new tables, so a migration only adds; what must go is dropped one version
// later. Its first line is "-- works with N": the oldest schema number whose servers can
// work on the tables that it leaves.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// migration is one step from a schema to the next.
type migration struct {
	number    int
	name      string
	worksWith int // the number in its first line
	sql       string
}

// statements divides a migration. Citus passes on to its workers all that came in one message,
// and they take one statement at a time.
func (m *migration) statements() (all []string) {
	begun := ""
	for part := range strings.SplitAfterSeq(m.sql, ";\n") {
		// What is between $$ and $$ has statements of its own.
		if begun += part; strings.Count(begun, "$$")%2 == 0 {
			all, begun = append(all, begun), ""
		}
	}

	return all
}

// migrations parses the migration files, in order.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}

	var all []migration
	for i, path := range names { // Glob sorts them
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}

		m := migration{
			name: strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql"),
			sql:  string(text),
		}
		number, _, _ := strings.Cut(m.name, "_")
		first, _, _ := strings.Cut(m.sql, "\n")
		works, found := strings.CutPrefix(first, "-- works with ")
		m.number, _ = strconv.Atoi(number)
		m.worksWith, _ = strconv.Atoi(works)

		if m.number != i+1 || len(number) != 4 || !found || m.worksWith < 1 || m.worksWith > m.number {
			return nil, fmt.Errorf("%s: must have number %04d and begin with \"-- works with N\", "+
				"where N is between 1 and its own number", path, i+1)
		}
		all = append(all, m)
	}

	return all, nil
}

// schemaTable records the migrations that were applied. It exists before the first of them.
const schemaTable = `CREATE TABLE IF NOT EXISTS promptspool_schema (
	number int PRIMARY KEY,
	name text NOT NULL,
	works_with int NOT NULL,
	applied_at timestamptz NOT NULL
)`

// Migrate applies the migrations that the database lacks. It rejects tables of a newer
// version that this one cannot work on. files are Migrations, except in tests.
func (t *Tables) Migrate(ctx context.Context, files fs.FS) error {
	all, err := migrations(files)
	if err != nil {
		return err
	}

	done, worksWith, err := t.schema(ctx, all)
	if err == nil && done < len(all) {
		done, worksWith, err = t.advance(ctx, all)
	}

	if err == nil && worksWith > len(all) {
		err = wire.Errorf(wire.CodeUnavailable, "its tables are of version %d and need a promptspool that knows "+
			"at least version %d; this one knows %d. Start the newer version again, or restore a backup of the "+
			"older tables.", done, worksWith, len(all))
	}

	return err
}

// schema returns the number of migrations applied, and the oldest version that can work on
// the tables. It only reads and takes no lock, so a server that finds nothing to do does not
// wait for others.
func (t *Tables) schema(ctx context.Context, all []migration) (done, worksWith int, err error) {
	err = t.pool.View(ctx, func(tx pgx.Tx) error {
		exists := false
		err := tx.QueryRow(ctx, `SELECT to_regclass('promptspool_schema') IS NOT NULL`).Scan(&exists)
		if err != nil || !exists {
			return err
		}
		done, worksWith, err = readSchema(ctx, tx, all)
		return err
	})

	return done, worksWith, err
}

// readSchema is schema within a transaction. It rejects tables made by migrations that have
// our numbers and other names: they are of a version that was never released.
func readSchema(ctx context.Context, tx pgx.Tx, all []migration) (done, worksWith int, err error) {
	var names []string
	// One row, whatever the table holds: an empty one gives zeros and no names.
	err = tx.QueryRow(ctx, `
		SELECT coalesce(max(number), 0), coalesce(max(works_with), 0),
			coalesce(array_agg(name ORDER BY number), '{}')
		FROM promptspool_schema`).Scan(&done, &worksWith, &names)

	// Behind ours there may be those of a newer version, which worksWith decides about.
	for i := range min(len(names), len(all)) {
		if err == nil && names[i] != all[i].name {
			err = wire.Errorf(wire.CodeUnavailable, "its tables were made by %s, where this version has %s: "+
				"they are of a version that was never released. Copy its records with that version's "+
				"requests export into an empty database.", names[i], all[i].name)
		}
	}

	return done, worksWith, err
}

// advance applies the missing migrations, each in a transaction, one server at a time.
func (t *Tables) advance(ctx context.Context, all []migration) (done, worksWith int, err error) {
	ctx = connection.Patiently(ctx)

	for err == nil {
		err = t.pool.Change(ctx, true, func(tx pgx.Tx) error {
			if err := beginMigration(ctx, tx); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, schemaTable); err != nil {
				return err
			}

			// Another server may have migrated while we waited for the lock.
			if done, worksWith, err = readSchema(ctx, tx, all); err != nil || done >= len(all) {
				return err
			}

			m := all[done]
			t.logger.Info("Creating database tables", "migration", m.name)
			for _, sql := range m.statements() {
				if _, err := tx.Conn().PgConn().Exec(ctx, sql).ReadAll(); err != nil {
					return fmt.Errorf("migration %s: %w", m.name, err)
				}
			}
			if err := spreadNew(ctx, tx); err != nil {
				return fmt.Errorf("migration %s: %w", m.name, err)
			}

			// In the same transaction: a migration is applied and known, or neither.
			_, err := tx.Exec(ctx, `
				INSERT INTO promptspool_schema (number, name, works_with, applied_at)
				VALUES ($1, $2, $3, $4)`, m.number, m.name, m.worksWith, t.now().UTC())
			done, worksWith = done+1, max(worksWith, m.worksWith)
			return err
		})
		if done >= len(all) {
			break
		}
	}

	return done, worksWith, err
}

// beginMigration prepares a transaction to change tables, while no other does.
func beginMigration(ctx context.Context, tx pgx.Tx) error {
	for _, sql := range []string{
		// Creating tables may take longer than a query may.
		`SET LOCAL statement_timeout = 0`,
		// On Citus one connection to each node then changes all shards, so that a transaction
		// can change several tables. Elsewhere the setting has no meaning.
		`SET LOCAL citus.multi_shard_modify_mode = 'sequential'`,
		// The lock is the transaction's, not the session's, so it is also released behind a
		// connection pooler.
		fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, connection.MigrationLock),
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}

	return nil
}
