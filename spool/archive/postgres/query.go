package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// queryRow runs a statement that returns one row, and scans the row into targets.
//
// The statement is a transaction by itself and may run twice, so it must only read, or write
// the same again. If there is no row, queryRow returns none; it may be nil if there always is
// one.
func (db *DB) queryRow(ctx context.Context, none *wire.Error, targets []any, sql string, args ...any) error {
	err := db.withConn(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(targets...)
	})

	return orNotFound(err, none)
}

// orNotFound returns none if err means that there is no such row, else err.
func orNotFound(err error, none *wire.Error) error {
	if none == nil {
		return err
	}

	// character_not_in_repertoire: a text with a NUL byte or invalid UTF-8. The database cannot
	// store such a text, so no row has it.
	if errors.Is(err, pgx.ErrNoRows) || sqlState(err) == "22021" {
		return none
	}

	return err
}

// queryRows runs a statement as queryRow does and returns all its rows. targets returns what
// one row is scanned into. The slice is not nil.
func queryRows[T any](
	ctx context.Context, db *DB, targets func(*T) []any, sql string, args ...any,
) ([]T, error) {
	var items []T
	err := db.withConn(ctx, func(conn *pgx.Conn) error {
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

// exec runs a statement as queryRow does, and ignores its rows.
func (db *DB) exec(ctx context.Context, sql string, args ...any) error {
	return db.withConn(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

// encode returns a document as it is stored.
func encode(v any) (string, error) {
	document, err := jsonscan.Marshal(v)
	return string(document), err
}

// isDuplicate reports whether err is a unique_violation.
func isDuplicate(err error) bool { return sqlState(err) == "23505" }
