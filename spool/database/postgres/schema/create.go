package schema

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"log/slog"
	"math"
	"slices"
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
const version = 4

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
		found, err = readVersion(ctx, tx)
		if err != nil || found >= version {
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

// The first and the last time that Nanos can return.
var (
	timeLeast = time.Unix(0, math.MinInt64+1).UTC()
	timeMost  = time.Unix(0, math.MaxInt64-1).UTC()
)

// Nanos returns a time as it is stored: in nanoseconds since 1970. Times before 1677 or after
// 2262 are stored as the nearest that fits: no real one is there, and the records keep their own.
func Nanos(t time.Time) int64 {
	switch {
	case t.Before(timeLeast):
		return math.MinInt64 + 1
	case t.After(timeMost):
		return math.MaxInt64 - 1
	}
	return t.UnixNano()
}

// spread are the tables that Citus spreads over its workers, the others in step with the first.
//
// All are spread by account and in step, so an account's rows are on one worker: a write or a
// page of a list goes to one node. The other tables are small and stay on the coordinator,
// through which every statement goes anyway. They can be used while a worker is away.
var spread = []string{
	"record_states", "record_deltas", "record_calls", "records", "record_bodies", "rollups",
	"rollup_totals", "tombstones", "account_weeks", "summaries", "text_units", "text_pages",
	"deleted_values",
}

// spreadColumn is the column by which tables are spread.
const spreadColumn = "account_id"

// shardsPerWorker is how many shards each worker gets. The number of shards is fixed when the
// tables are spread, so that is by how many times the number of workers can grow.
const shardsPerWorker = 4

// errHalfSpread is for a database of which only some tables are spread.
func errHalfSpread(missing []string) *wire.Error {
	return wire.Errorf(wire.CodeUnavailable, "Only some of its tables are spread over the nodes of Citus, not %s. "+
		"Run `promptspool archive spread --archive URL`, which continues where it was interrupted.",
		strings.Join(missing, ", "))
}

// Spread reports whether the tables are spread over the nodes of a Citus. It returns an error
// if they are in another way than Distribute spreads them or, unless half is allowed, if only
// some are.
func (t *Tables) Spread(ctx context.Context, half bool) (is bool, err error) {
	err = t.pool.View(ctx, func(tx pgx.Tx) error {
		done, missing, err := spreadState(ctx, tx)
		is = len(done) > 0
		if err == nil && is && len(missing) > 0 && !half {
			err = errHalfSpread(missing)
		}
		return err
	})

	return is, err
}

// spreadState returns which of the tables are spread, and which exist and are not.
func spreadState(ctx context.Context, tx pgx.Tx) (done, missing []string, err error) {
	if citus, err := hasCitus(ctx, tx); err != nil || !citus {
		return nil, nil, err
	}

	var name string
	var column *string
	rows, _ := tx.Query(ctx, `
		SELECT name, CASE WHEN p.logicalrelid IS NOT NULL
			THEN coalesce(column_to_column_name(p.logicalrelid, p.partkey), 'copies on every node') END
		FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, place)
		LEFT JOIN pg_dist_partition p ON p.logicalrelid = to_regclass(name)
		WHERE to_regclass(name) IS NOT NULL ORDER BY place`, spread)
	_, err = pgx.ForEachRow(rows, []any{&name, &column}, func() error {
		switch {
		case column == nil:
			missing = append(missing, name)
		case *column != spreadColumn:
			return wire.Errorf(wire.CodeUnavailable, "Its table %s is spread by %s, not by %s. "+
				"Run SELECT undistribute_table('%s'), then `promptspool archive spread --archive URL`.",
				name, *column, spreadColumn, name)
		default:
			done = append(done, name)
		}
		return nil
	})

	return done, missing, err
}

func hasCitus(ctx context.Context, tx pgx.Tx) (has bool, err error) {
	err = tx.QueryRow(ctx, `SELECT to_regclass('pg_dist_partition') IS NOT NULL`).Scan(&has)
	return has, err
}

// errNoCitus is for a database without the extension.
var errNoCitus = wire.Errorf(wire.CodeUnavailable, "It has no Citus. Run CREATE EXTENSION citus in it, "+
	"and in the database of the same name on each worker.")

// Distribute spreads the tables over the workers of a Citus, with the rows that they hold.
//
// One table follows the other, and what is spread already stays, so it may be interrupted and
// repeated.
//
// told is called with the name of each table that was spread. No server may use the database
// meanwhile.
func (t *Tables) Distribute(ctx context.Context, told func(table string)) (shards int, err error) {
	ctx = connection.Patiently(ctx) // rows are copied

	for next := "next"; next != "" && err == nil; {
		err = t.pool.Change(ctx, true, func(tx pgx.Tx) error {
			if err := lockTables(ctx, tx); err != nil {
				return err
			}
			if citus, err := hasCitus(ctx, tx); err != nil || !citus {
				return cmp.Or(err, error(errNoCitus))
			}

			next = ""
			_, missing, err := spreadState(ctx, tx)
			if err != nil || len(missing) == 0 {
				return err
			}
			next = missing[0]
			return spreadTable(ctx, tx, next)
		})
		if err == nil && next != "" {
			told(next)
		}
	}
	if err != nil {
		return 0, err
	}

	err = t.pool.QueryRow(ctx, []any{&shards},
		`SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = to_regclass($1)`, spread[0])
	return shards, err
}

// spreadTable spreads one table and removes its rows from the coordinator.
func spreadTable(ctx context.Context, tx pgx.Tx, table string) error {
	with := spread[0]
	if table == with {
		with = "none"
		workers, err := workers(ctx, tx)
		if err != nil {
			return err
		}
		// Only the first table has a number of shards, and the others follow it.
		sql := fmt.Sprintf(`SET LOCAL citus.shard_count = %d`, shardsPerWorker*workers)
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}

	for _, step := range []struct {
		sql  string
		args []any
	}{
		{
			`SELECT create_distributed_table($1::text::regclass, $2, colocate_with => $3)`,
			[]any{table, spreadColumn, with},
		},
		// Otherwise the copied rows stay on the coordinator's disk.
		{`SELECT truncate_local_data_after_distributing_table($1::text::regclass)`, []any{table}},
	} {
		if _, err := tx.Exec(ctx, step.sql, step.args...); err != nil {
			return fmt.Errorf("spread the table %s: %w", table, err)
		}
	}

	return nil
}

// workers returns how many nodes of a Citus take shards.
func workers(ctx context.Context, tx pgx.Tx) (n int, err error) {
	err = tx.QueryRow(ctx, `
		SELECT count(*) FROM pg_dist_node
		WHERE noderole = 'primary' AND isactive AND shouldhaveshards`).Scan(&n)
	if err == nil && n == 0 {
		err = wire.Errorf(wire.CodeUnavailable, "Citus has no workers in this database. "+
			"Create the database and the extension on each, then add it: SELECT citus_add_node('HOST', 5432).")
	}

	return n, err
}

// IsSpread reports whether Distribute spreads a table.
func IsSpread(table string) bool { return slices.Contains(spread, table) }
