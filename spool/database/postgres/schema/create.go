package schema

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/crashpoint"
	"promptspool/spool/database/postgres/connection"
)

// version is the version of the tables of SQL. A server brings earlier ones to it, step by step, and
// does not work on later ones.
const version = 3

// SQL creates the tables in an empty database.
//
//go:embed schema.sql
var SQL string

// steps are the files that bring the tables from each version to the next: step_N.sql to version N.
//
// Servers of the version before may be at work. Those of 0.1.0 do not ask for the number, so a step
// from theirs leaves a column whose default is an error. Their statements, which do not name it, fail
// with 42P01, which they answer with 503, and their sidecars hold what they have. Later servers ask;
// see Guard.
//
//go:embed step_*.sql
var steps embed.FS

// versionTable records the version of the tables: the highest number in it.
const versionTable = `CREATE TABLE IF NOT EXISTS promptspool_schema (
	number int PRIMARY KEY,
	applied_at timestamptz NOT NULL
)`

// Guard is a statement that fails once the tables are of a later version. Each change begins with it.
// The SQLSTATE is 42704, as there is no such setting. It locks out a step until its transaction ends.
var Guard = fmt.Sprintf(
	`SELECT current_setting('promptspool.schema_' || number) FROM promptspool_schema WHERE number > %d`, version)

// Create creates the tables in an empty database, and brings those of an earlier version to this one:
// each step in its own transaction, one server at a time. It rejects tables of a later version.
func (t *Tables) Create(ctx context.Context) error {
	found, err := t.version(ctx)
	for err == nil && found < version {
		found, err = t.step(ctx)
	}

	if err == nil && found > version {
		err = wire.Errorf(wire.CodeUnavailable, "its tables are of a newer version of promptspool (schema %d; this "+
			"one works with up to %d): run that version, or restore a dump from before the upgrade into another "+
			"database", found, version)
	}
	if err == nil {
		t.pool.Guard(Guard)
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

// step creates the tables, or brings them to the next version, in one transaction. It returns the
// version that they have then.
func (t *Tables) step(ctx context.Context) (found int, err error) {
	err = t.pool.Change(connection.Patiently(ctx), true, func(tx pgx.Tx) error {
		if err := lockTables(ctx, tx); err != nil {
			return err
		}
		for _, sql := range []string{
			versionTable,
			`SET LOCAL lock_timeout = '1s'`, // everybody else queues after a lock that waits
			`LOCK TABLE promptspool_schema IN ACCESS EXCLUSIVE MODE`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}

		// Another server may have been faster while we waited for the lock.
		if found, err = readVersion(ctx, tx); err != nil || found >= version {
			return err
		}
		sql, to := SQL, version
		if found > 0 {
			to = found + 1
			step, err := steps.ReadFile(fmt.Sprintf("step_%d.sql", to))
			if err != nil {
				return err
			}
			sql = string(step)
		}
		t.logger.Info("Bringing the database's tables to another version", "from", found, "to", to)
		crashpoint.Reach(crashpoint.StepBegun)

		// One by one: Citus passes on to its workers everything that came in one message,
		// and they take one statement at a time.
		for sql := range strings.SplitAfterSeq(sql, ";\n") {
			if _, err := tx.Conn().PgConn().Exec(ctx, sql).ReadAll(); err != nil {
				return fmt.Errorf("change the tables: %w", err)
			}
		}

		// In the same transaction: the tables and their version are there, or neither.
		found = to
		_, err := tx.Exec(ctx, `INSERT INTO promptspool_schema (number, applied_at) VALUES ($1, $2)`,
			found, t.now().UTC())
		crashpoint.Reach(crashpoint.StepWritten)
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

// Tables are the tables of a database. It is safe for concurrent use, also by any number of
// servers at the same time.
type Tables struct {
	pool   *connection.Pool
	logger *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	known map[time.Time]bool // by Monday: which weeks have partitions; guarded by mu
}

// New returns the tables of a database, which Create creates.
func New(pool *connection.Pool, logger *slog.Logger, now func() time.Time) *Tables {
	return &Tables{pool: pool, logger: logger, now: now}
}
