// Package accounts keeps the accounts of a server and who may use them: keys, people,
// invites, reset links, sessions and failed sign-ins. What is valid, what conflicts and
// what an error says is decided here; a database only reads and writes rows.
package accounts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/transfer"
)

// Table holds rows of one type, each under a key. A hash is a key as its 32 bytes.
type Table int

// The tables, with the type and the key of their rows.
const (
	Accounts Table = iota // wire.Account by name
	Keys                  // wire.Key by hash
	Users                 // transfer.Person by id
	Invites               // wire.Invite by hash
	Sessions              // wire.Session by hash
	Resets                // wire.Reset by hash
	Failures              // wire.Failures by hash
)

// Moves are the tables that are copied to another database.
var Moves = []Table{Accounts, Keys, Users, Invites, Sessions}

// New returns a pointer to an empty row.
func (t Table) New() any {
	switch t {
	case Accounts:
		return new(wire.Account)
	case Keys:
		return new(wire.Key)
	case Users:
		return new(transfer.Person)
	case Invites:
		return new(wire.Invite)
	case Sessions:
		return new(wire.Session)
	case Resets:
		return new(wire.Reset)
	default:
		return new(wire.Failures)
	}
}

// Database is where the rows are. Safe for concurrent use.
type Database interface {
	// Get is Tx.Get of one row, as each call with a key asks for it.
	Get(ctx context.Context, t Table, key string, row any) (found bool, err error)
	// Read calls fn once. What it reads need not be of one moment.
	Read(ctx context.Context, fn func(Tx) error) error
	// Change calls fn in a transaction, one Change after the other, and makes what
	// it wrote durable; nothing, if fn fails. fn may be called several times; with
	// again also if an earlier call was perhaps committed.
	Change(ctx context.Context, again bool, fn func(Tx) error) error
}

// Tx reads rows and, in a Change, writes them. Reading does not show what was written
// before. A row that is replaced must have been read by Get in the same Change. Rows are
// pointers to the type of the table.
type Tx interface {
	Get(t Table, key string, row any) (found bool, err error)
	List(t Table) ([]Row, error)
	// UserID finds the id of a person by email. Users keeps what it takes.
	UserID(email string) (id string, found bool, err error)

	// Add writes a row that is not there yet, as Get has said.
	Add(t Table, key string, row any) error
	Put(t Table, key string, row any) error
	Delete(t Table, key string) error
	// Expire deletes rows of Sessions or Failures that ended before a
	// moment: all of them, or some near a key.
	Expire(t Table, near string, before time.Time) error
}

// Row is a row and its key.
type Row struct {
	Key string
	Of  any
}

// EndOf returns when a row of Sessions or Failures ends.
func EndOf(row any) time.Time {
	if s, ok := row.(*wire.Session); ok {
		return s.ExpiresAt
	}
	return row.(*wire.Failures).Until
}

// Store is an auth.Store, and an auth.PeopleStore but for the audit log. Safe
// for concurrent use.
type Store struct {
	db  Database
	now func() time.Time
}

// New makes a Store. now stamps accounts.
func New(db Database, now func() time.Time) *Store { return &Store{db, now} }

// changed returns what fn makes in a Change, and nothing if that fails.
func changed[T any](ctx context.Context, s *Store, again bool, fn func(Tx) (T, error)) (T, error) {
	var made T
	err := s.db.Change(ctx, again, func(tx Tx) (err error) {
		made, err = fn(tx)
		return err
	})
	// fn may have made something before its transaction failed. That must not get out.
	if err != nil {
		made = *new(T)
	}

	return made, err
}

// read returns what fn reads.
func read[T any](ctx context.Context, s *Store, fn func(Tx) (T, error)) (found T, err error) {
	err = s.db.Read(ctx, func(tx Tx) error {
		found, err = fn(tx)
		return err
	})

	return found, err
}

// get reads one row. none is the error if it does not exist.
func get[T any](tx Tx, t Table, key string, none func() *wire.Error) (row T, err error) {
	found, err := tx.Get(t, key, &row)
	if err == nil && !found {
		err = none()
	}

	return row, err
}

// find is get of one row by itself.
func find[T any](
	ctx context.Context, s *Store, t Table, hash [32]byte, none func() *wire.Error,
) (row T, err error) {
	found, err := s.db.Get(ctx, t, string(hash[:]), &row)
	if err == nil && !found {
		err = none()
	}

	return row, err
}

// list returns the rows that keep wants, oldest first. It is never nil.
func list[T any](
	ctx context.Context, s *Store, t Table, keep func(*T) bool, age func(*T) (time.Time, string),
) ([]T, error) {
	rows, err := read(ctx, s, func(tx Tx) ([]Row, error) { return tx.List(t) })
	if err != nil {
		return nil, err
	}

	items := []T{}
	for _, r := range rows {
		if row := r.Of.(*T); keep(row) {
			items = append(items, *row)
		}
	}
	slices.SortFunc(items, func(a, b T) int {
		at, aID := age(&a)
		bt, bID := age(&b)
		return cmp.Or(at.Compare(bt), cmp.Compare(aID, bID))
	})

	return items, nil
}

// account returns the id of the account of this name, which is made if there is none.
func (s *Store) account(tx Tx, name string) (id string, err error) {
	var a wire.Account
	// Within the transaction: two calls with the same new
	// name must not make two accounts.
	if found, err := tx.Get(Accounts, name, &a); found || err != nil {
		return a.ID, err
	}

	a = wire.Account{ID: wire.NewID(), Name: name, CreatedAt: s.now().UTC()}
	return a.ID, tx.Add(Accounts, name, &a)
}

// Account returns the id of an account, or makes it; see auth.UserStore.
func (s *Store) Account(ctx context.Context, name string) (id string, err error) {
	return changed(ctx, s, true, func(tx Tx) (string, error) { return s.account(tx, name) })
}
