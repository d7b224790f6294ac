package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive/postgres/connection"
)

// insert adds rows. A row that another server has added meanwhile is a conflict.
func (f *folding) insert(ctx context.Context, tx pgx.Tx, table string, columns []string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}

	var err error
	if f.db.spread {
		err = insertValues(ctx, tx, table, columns, rows)
	} else {
		_, err = tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)) // the fastest way
	}

	// Without ON CONFLICT: whoever adds a record first wins, and we start over.
	if connection.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", connection.ErrConflict, err)
	}

	return err
}

// insertValues adds rows by INSERT, to tables that Citus spreads.
//
// Citus does not note a COPY as a write on a connection over which the transaction has read from
// the shard. It would commit there last and in one phase, and if the node died in that moment,
// the rows would be lost, although the transaction was committed. And of a COPY the coordinator
// does not pass on a worker's SQLSTATE, so that nobody could tell what is refused or a duplicate.
func insertValues(ctx context.Context, tx pgx.Tx, table string, columns []string, rows [][]any) error {
	b := &pgx.Batch{}
	queueInserts(b, table, columns, rows, "")

	return tx.SendBatch(ctx, b).Close()
}

// insertSizes are how many rows one INSERT has, so that few different statements are prepared.
var insertSizes = []int{64, 16, 4, 1}

// queueInserts queues INSERTs that end with suffix. Each has rows of one account only, which
// are all on one node.
func queueInserts(b *pgx.Batch, table string, columns []string, rows [][]any, suffix string) {
	for len(rows) > 0 {
		same := 1
		for same < len(rows) && rows[same][0] == rows[0][0] { // account_id is the first column
			same++
		}
		for _, size := range insertSizes {
			for ; same >= size; same, rows = same-size, rows[size:] {
				b.Queue(insertStatement(table, columns, size)+suffix, slices.Concat(rows[:size]...)...)
			}
		}
	}
}

// insertStatement returns an INSERT of so many rows.
func insertStatement(table string, columns []string, rows int) string {
	var sql strings.Builder
	sql.WriteString("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES ")

	for i := range rows * len(columns) {
		switch {
		case i == 0:
			sql.WriteByte('(')
		case i%len(columns) == 0:
			sql.WriteString("), (")
		default:
			sql.WriteString(", ")
		}
		fmt.Fprintf(&sql, "$%d", i+1)
	}

	return sql.String() + ")"
}
