package schema

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/database/postgres/connection"
)

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
