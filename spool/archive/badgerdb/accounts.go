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

// accountLetters are what the keys of the tables of accounts begin with, behind ofServer. The letter of emails is that
// of an index: the ids of people.
const (
	accountLetters = "akuisrf" // by accounts.Table
	emailLetter    = 'e'
)

func serverKey(t accounts.Table, key string) []byte {
	return append([]byte{ofServer, accountLetters[t]}, key...)
}

func emailKey(email string) []byte { return append([]byte{ofServer, emailLetter}, email...) }

// accountTables is the accounts.Database of a DB.
type accountTables struct{ *DB }

// Get is accounts.Database's.
func (db accountTables) Get(_ context.Context, t accounts.Table, key string, row any) (found bool, err error) {
	err = db.view(func(txn *badger.Txn) (err error) {
		found, err = load(txn, serverKey(t, key), row)
		return err
	})
	return found, err
}

// Read is accounts.Database's.
func (db accountTables) Read(ctx context.Context, fn func(accounts.Tx) error) error {
	return db.view(func(txn *badger.Txn) error { return fn(&accountTx{db: db.DB, ctx: ctx, txn: txn}) })
}

// Change is accounts.Database's.
func (db accountTables) Change(ctx context.Context, _ bool, fn func(accounts.Tx) error) error {
	return db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		tx := accountTx{db: db.DB, ctx: ctx, txn: txn}
		err := fn(&tx)
		return tx.writes, err
	})
}

// accountTx is an accounts.Tx. It gathers writes, which the committer commits.
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

// accountRow reads what is stored under a key that serverKey made.
func accountRow(key, value []byte) (accounts.Row, error) {
	t := accounts.Table(strings.IndexByte(accountLetters, key[1]))
	row := accounts.Row{Key: string(key[2:]), Of: t.New()}

	return row, decode(key, value, row.Of)
}

func (tx *accountTx) Add(t accounts.Table, key string, row any) error { return tx.Put(t, key, row) }

func (tx *accountTx) Put(t accounts.Table, key string, row any) (err error) {
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

// expireMax bounds how many rows are looked at with each new one.
const expireMax = 100

// Expire looks at some rows from near on, and then from the first on. The key is a hash: a random place among them.
func (tx *accountTx) Expire(t accounts.Table, near string, before time.Time) error {
	seen := 0
	for _, from := range []string{near, ""} {
		err := tx.db.each(tx.ctx, tx.txn, serverKey(t, ""), serverKey(t, from), func(key, value []byte) (bool, error) {
			if seen++; seen > expireMax {
				return false, nil
			}
			row, err := accountRow(key, value)
			if err == nil && accounts.EndOf(row.Of).Before(before) {
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

// store appends writes that set keys to the JSON of values: a key, a value, a key, a value.
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
