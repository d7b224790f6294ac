package badgerdb

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive/accounts"
	"promptspool/spool/archive/transfer"
)

// The first letter of the keys of each table of accounts, behind ofServer. emailLetter is
// that of an index: the ids of people by email.
const (
	accountLetters = "akuisrf" // indexed by accounts.Table
	emailLetter    = 'e'
)

// serverKey returns the key of a row.
func serverKey(t accounts.Table, key string) []byte {
	return append([]byte{ofServer, accountLetters[t]}, key...)
}

// emailKey returns the key under which the id of a person is.
func emailKey(email string) []byte { return append([]byte{ofServer, emailLetter}, email...) }

// accountTables is the accounts.Database of a DB.
type accountTables struct{ *DB }

// Get reads one row; see accounts.Database.
func (db accountTables) Get(_ context.Context, t accounts.Table, key string, row any) (found bool, err error) {
	err = db.view(func(txn *badger.Txn) (err error) {
		found, err = load(txn, serverKey(t, key), row)
		return err
	})
	return found, err
}

// Read runs fn on a snapshot; see accounts.Database.
func (db accountTables) Read(ctx context.Context, fn func(accounts.Tx) error) error {
	return db.view(func(txn *badger.Txn) error { return fn(&accountTx{db: db.DB, ctx: ctx, txn: txn}) })
}

// Change runs fn and commits what it writes; see accounts.Database.
func (db accountTables) Change(ctx context.Context, _ bool, fn func(accounts.Tx) error) error {
	// The committer runs one change after the other: fn meets no other writer.
	return db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		tx := accountTx{db: db.DB, ctx: ctx, txn: txn}
		err := fn(&tx)

		return tx.writes, err
	})
}

// accountTx is an accounts.Tx. It collects writes, which the committer commits.
type accountTx struct {
	db     *DB
	ctx    context.Context
	txn    *badger.Txn
	writes []write
}

func (tx *accountTx) Get(t accounts.Table, key string, row any) (bool, error) {
	return load(tx.txn, serverKey(t, key), row)
}

func (tx *accountTx) UserID(email string) (id string, found bool, err error) {
	found, err = load(tx.txn, emailKey(email), &id)
	return id, found, err
}

func (tx *accountTx) List(t accounts.Table) (rows []accounts.Row, err error) {
	err = tx.db.each(tx.ctx, tx.txn, serverKey(t, ""), nil, func(key, value []byte) (bool, error) {
		row, err := accountRow(key, value)
		rows = append(rows, row)
		return true, err
	})
	return rows, err
}

// accountRow decodes a row from a key that serverKey returned, and its value.
func accountRow(key, value []byte) (accounts.Row, error) {
	// The letter is behind ofServer; every row of a table decodes into the same type.
	t := accounts.Table(strings.IndexByte(accountLetters, key[1]))
	row := accounts.Row{Key: string(key[2:]), Of: t.New()}
	return row, decode(key, value, row.Of)
}

// Add is Put: every key is new, or may be overwritten.
func (tx *accountTx) Add(t accounts.Table, key string, row any) error { return tx.Put(t, key, row) }

// Put writes a row, and for a person the index by email.
func (tx *accountTx) Put(t accounts.Table, key string, row any) (err error) {
	// A person never changes the email, so no older entry of the index is left behind.
	if p, ok := row.(*transfer.Person); ok {
		tx.writes, err = store(tx.writes, emailKey(p.Email), p.ID)
	}
	if err == nil {
		tx.writes, err = store(tx.writes, serverKey(t, key), row)
	}
	return err
}

func (tx *accountTx) Delete(t accounts.Table, key string) error {
	tx.writes = append(tx.writes, write{key: serverKey(t, key)})
	return nil
}

// expireMax bounds how many rows Expire looks at.
const expireMax = 100

// Expire deletes some of the rows that ended before a time. It looks at the rows from
// near on, and then at the first. Keys are hashes, so near is a random place among them.
func (tx *accountTx) Expire(t accounts.Table, near string, before time.Time) error {
	seen := 0
	for _, from := range []string{near, ""} {
		prefix, begin := serverKey(t, ""), serverKey(t, from)
		err := tx.db.each(tx.ctx, tx.txn, prefix, begin, func(key, value []byte) (bool, error) {
			// Signing in pays for it, so it may not grow with the number of rows.
			if seen++; seen > expireMax {
				return false, nil
			}

			row, err := accountRow(key, value)
			if err == nil && accounts.EndOf(row.Of).Before(before) {
				// The key is lent until we return, and the write outlives that.
				tx.writes = append(tx.writes, write{key: bytes.Clone(key)})
			}

			return true, err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// store appends writes that set keys to the JSON of values. pairs are a key, a value, a
// key ...
func store(writes []write, pairs ...any) ([]write, error) {
	for i := 0; i < len(pairs); i += 2 {
		value, err := jsonscan.Marshal(pairs[i+1])
		if err != nil {
			return nil, err
		}
		writes = append(writes, write{pairs[i].([]byte), value})
	}
	return writes, nil
}
