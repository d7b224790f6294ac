package connection

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// QueryRow runs a statement that returns one row, and scans the row into targets.
//
// The statement is a transaction by itself and may run twice, so it must only read, or write
// the same again.
func (p *Pool) QueryRow(ctx context.Context, targets []any, sql string, args ...any) error {
	// No BEGIN and COMMIT around it, which would be two more round trips.
	return p.WithConn(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(targets...)
	})
}

// QueryRows runs a statement as QueryRow does and returns all its rows, as row reads them.
func QueryRows[T any](
	ctx context.Context, p *Pool, row pgx.RowToFunc[T], sql string, args ...any,
) (items []T, err error) {
	err = p.WithConn(ctx, func(conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, sql, args...)
		items, err = pgx.CollectRows(rows, row)
		return err
	})
	return items, err
}

// Exec runs a statement as QueryRow does, and ignores its rows.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) error {
	return p.WithConn(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

// IsDuplicate reports whether err is a unique_violation.
func IsDuplicate(err error) bool { return SQLState(err) == "23505" }
