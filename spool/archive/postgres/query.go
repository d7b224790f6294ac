package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// one runs a statement that gives one row, and scans it. The statement is a transaction of its own, and may be run twice: it reads, or
// writes what it would write again. none is the error for no row; nil where there always is one.
func (db *DB) queryRow(ctx context.Context, none *wire.Error, places []any, sql string, args ...any) error {
	err := db.withConn(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(places...) })
	return orNotFound(err, none)
}

// orNotFound is none if err says that no row was found, else err. A text that the database cannot hold, with a zero byte or no UTF-8, is
// not in it.
func orNotFound(err error, none *wire.Error) error {
	if none != nil && (errors.Is(err, pgx.ErrNoRows) || sqlState(err) == "22021") { // character_not_in_repertoire
		return none
	}
	return err
}

// list runs a statement as one does, and returns its rows; places are where one of them is scanned to. Not nil.
func queryRows[T any](ctx context.Context, db *DB, places func(*T) []any, sql string, args ...any) ([]T, error) {
	var items []T
	err := db.withConn(ctx, func(conn *pgx.Conn) error {
		items = []T{} // an attempt before may have ended in the middle
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		var item T
		_, err = pgx.ForEachRow(rows, places(&item), func() error {
			items = append(items, item)
			item = *new(T)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// do runs a statement as one does, and looks at no row.
func (db *DB) exec(ctx context.Context, sql string, args ...any) error {
	return db.withConn(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

// encode makes a stored document.
func encode(v any) (string, error) {
	document, err := jsonscan.Marshal(v)
	return string(document), err
}

// isDuplicate says whether a statement would have made a second row of one key.
func isDuplicate(err error) bool { return sqlState(err) == "23505" } // unique_violation
