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

// QueryRows runs a statement as QueryRow does and returns all its rows. targets returns what
// one row is scanned into. The slice is not nil.
func QueryRows[T any](
	ctx context.Context, p *Pool, targets func(*T) []any, sql string, args ...any,
) ([]T, error) {
	var items []T
	err := p.WithConn(ctx, func(conn *pgx.Conn) error {
		items = []T{} // an earlier attempt may have failed halfway
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}

		var item T
		_, err = pgx.ForEachRow(rows, targets(&item), func() error {
			items = append(items, item)
			item = *new(T) // so that the next row does not share its slices and pointers
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}

	return items, nil
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
