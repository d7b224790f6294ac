package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/database/postgres/connection"
)

// insert adds rows. A row that another server has added meanwhile is a conflict.
//
// COPY is the fastest way. To tables that Citus spreads, a few rows are added by INSERT, and after
// a COPY that failed there, all are for a while.
//
// Citus does not note a COPY as a write on a connection over which the transaction has read from
// the shard. It would commit there last and in one phase, and if the node died in that moment,
// the rows would be lost, although the transaction was committed. It does note what write sends
// after the rows, over the same connection: the INSERT of the account's counts.
func (f *folding) insert(ctx context.Context, tx pgx.Tx, table string, columns []string, rows [][]any) (err error) {
	switch {
	case len(rows) == 0:
		return nil
	case f.db.spread && (len(rows) < copyLeast || f.db.now().UnixNano() < f.db.insertUntil.Load()):
		err = insertValues(ctx, tx, table, columns, rows)
	default:
		_, err = tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
		err = f.copyFailure(err)
	}

	// Without ON CONFLICT: whoever adds a record first wins, and we start over.
	if connection.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", connection.ErrConflict, err)
	}

	return err
}

// Where tables are spread, fewer than copyLeast rows are not copied, nor any for insertFor after
// a COPY that failed.
const (
	copyLeast = 16
	insertFor = time.Minute
)

// copyFailure turns the error of a COPY to spread tables into a conflict, so that the transaction
// starts over with INSERT. Of a COPY, the coordinator does not pass on a worker's SQLSTATE, and
// nobody could tell what is refused and what is a duplicate.
func (f *folding) copyFailure(err error) error {
	if !f.db.spread || connection.SQLState(err) == "" || connection.Away(err) {
		return err
	}
	f.db.insertUntil.Store(f.db.now().Add(insertFor).UnixNano())

	return fmt.Errorf("%w: %w", connection.ErrConflict, err)
}

// insertValues adds rows by INSERT.
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
