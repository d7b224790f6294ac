package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive/accounts"
	"promptspool/spool/archive/postgres/connection"
	"promptspool/spool/archive/transfer"
)

// accountTable is where the rows of an accounts.Table are.
type accountTable struct {
	name    string
	key     string // its column; a hash if that is not one of columns
	columns string // in the order of placesOf
	end     string // the column of when a row ends
}

var accountTablesOf = [...]accountTable{
	accounts.Accounts: {name: "accounts", key: "name", columns: "id, name, created_at"},
	accounts.Keys: {name: "keys", key: "hash",
		columns: "id, account_id, account_name, name, scope, created_at, revoked_at, last_used_at"},
	accounts.Users: {name: "users", key: "id",
		columns: "id, email, account_id, account_name, role, created_at, disabled_at, " +
			"sessions_from, founder, password"},
	accounts.Invites: {name: "invites", key: "hash",
		columns: "id, account_name, role, created_at, expires_at, setup, made_by"},
	accounts.Sessions: {name: "sessions", key: "hash", columns: "user_id, created_at, expires_at", end: "expires_at"},
	accounts.Resets:   {name: "resets", key: "hash", columns: "user_id, made_by, created_at, expires_at"},
	accounts.Failures: {name: "sign_in_failures", key: "source", columns: "count, until", end: "until"},
}

// placesOf are where the columns of a row are scanned to, and taken from.
func scanTargets(row any) []any {
	switch r := row.(type) {
	case *wire.Account:
		return []any{&r.ID, &r.Name, &r.CreatedAt}
	case *wire.Key:
		return []any{&r.ID, &r.AccountID, &r.AccountName, &r.Name, &r.Scope, &r.CreatedAt, &r.RevokedAt, &r.LastUsedAt}
	case *transfer.Person:
		return []any{
			&r.ID, &r.Email, &r.AccountID, &r.AccountName, &r.Role, &r.CreatedAt,
			&r.DisabledAt, &r.SessionsFrom, &r.Founder, &r.Password,
		}
	case *wire.Invite:
		return []any{&r.ID, &r.AccountName, &r.Role, &r.CreatedAt, &r.ExpiresAt, &r.Setup, &r.By}
	case *wire.Session:
		return []any{&r.UserID, &r.CreatedAt, &r.ExpiresAt}
	case *wire.Reset:
		return []any{&r.UserID, &r.By, &r.CreatedAt, &r.ExpiresAt}

	default:
		f := row.(*wire.Failures)
		return []any{&f.Count, &f.Until}
	}
}

// hashed reports whether the key is a hash.
func (t *accountTable) hashed() bool { return t.end != "" || t.key == "hash" }

// keyOf is a key as it stands in the column.
func (t *accountTable) keyOf(key string) any {
	if t.hashed() {
		return []byte(key)
	}
	return key
}

// insert makes the statement that adds a row, and its arguments.
func (t *accountTable) insert(key string, row any) (sql string, args []any) {
	columns, args := t.columns, scanTargets(row)
	if t.hashed() {
		columns, args = t.key+", "+columns, append([]any{[]byte(key)}, args...)
	}
	values := make([]string, len(args))
	for i := range values {
		values[i] = fmt.Sprintf("$%d", i+1)
	}

	return "INSERT INTO " + t.name + " (" + columns + ") VALUES (" + strings.Join(values, ", ") + ")", args
}

// replace is what follows insert if the row may be there.
func (t *accountTable) replace() string {
	var set []string
	// All of them, also those that stay: the caller has read the whole row.
	for column := range strings.SplitSeq(t.columns, ", ") {
		set = append(set, column+" = EXCLUDED."+column)
	}

	return " ON CONFLICT (" + t.key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// querier is a transaction, or a connection on which each statement is one.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// reader is a connection or a transaction that may also be sent several statements at a time.
type reader interface {
	querier
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// accountRows reads rows of a table; where follows its name.
func accountRows(ctx context.Context, q querier, of accounts.Table, where string, args ...any) ([]accounts.Row, error) {
	t := &accountTablesOf[of]
	rows, err := q.Query(ctx, "SELECT "+t.key+", "+t.columns+" FROM "+t.name+where, args...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (accounts.Row, error) {
		var key []byte
		to := of.New()
		err := row.Scan(append([]any{&key}, scanTargets(to)...)...)
		return accounts.Row{Key: string(key), Of: to}, err
	})
}

// accountTables is the accounts.Database of a DB.
type accountTables struct{ *DB }

// Get implements accounts.Database.
func (db accountTables) Get(ctx context.Context, t accounts.Table, key string, row any) (bool, error) {
	return db.reader(ctx).Get(t, key, row)
}

// Read implements accounts.Database.
func (db accountTables) Read(ctx context.Context, fn func(accounts.Tx) error) error {
	return fn(db.reader(ctx))
}

func (db accountTables) reader(ctx context.Context) *accountTx {
	return &accountTx{ctx: ctx, ask: func(fn func(q querier) error) error {
		return db.pool.WithConn(ctx, func(conn *pgx.Conn) error { return fn(conn) })
	}}
}

// Change implements accounts.Database. An advisory lock lets only one change run at a time, at
// all servers together.
func (db accountTables) Change(ctx context.Context, again bool, fn func(accounts.Tx) error) error {
	return db.pool.Change(ctx, again, func(tx pgx.Tx) error {
		// Row locks would not do: two owners may demote each other at once, each in another row.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, connection.PeopleLock); err != nil {
			return err
		}
		// Rows that fn reads it may write, so they are locked: TouchKeys takes no advisory lock.
		a := accountTx{ctx: ctx, ask: func(fn func(q querier) error) error { return fn(tx) }, lock: " FOR UPDATE"}
		if err := fn(&a); err != nil {
			return err
		}
		return sendBatch(ctx, tx, &a.writes)
	})
}

// accountTx is an accounts.Tx. It gathers writes, which are sent together.
type accountTx struct {
	ctx    context.Context
	ask    func(func(q querier) error) error
	lock   string // what follows a SELECT of a row that may be replaced
	writes pgx.Batch
}

func (tx *accountTx) Get(of accounts.Table, key string, row any) (bool, error) {
	t := &accountTablesOf[of]
	return tx.one(scanTargets(row), "SELECT "+t.columns+" FROM "+t.name+" WHERE "+t.key+" = $1"+tx.lock, t.keyOf(key))
}

func (tx *accountTx) UserID(email string) (id string, found bool, err error) {
	found, err = tx.one([]any{&id}, `SELECT id FROM users WHERE email = $1`, email)
	return id, found, err
}

func (tx *accountTx) one(places []any, sql string, key any) (found bool, err error) {
	// An error of our own, to tell a missing row from one of the database's.
	none := wire.Errorf(wire.CodeNotFound, "There is no such row.")
	err = tx.ask(func(q querier) error { return q.QueryRow(tx.ctx, sql, key).Scan(places...) })
	err = connection.OrNotFound(err, none)
	if errors.Is(err, none) {
		return false, nil
	}
	return err == nil, err
}

func (tx *accountTx) List(t accounts.Table) (rows []accounts.Row, err error) {
	err = tx.ask(func(q querier) (err error) {
		rows, err = accountRows(tx.ctx, q, t, "")
		return err
	})
	return rows, err
}

func (tx *accountTx) Add(t accounts.Table, key string, row any) error {
	sql, args := accountTablesOf[t].insert(key, row)
	tx.writes.Queue(sql, args...)
	return nil
}

func (tx *accountTx) Put(t accounts.Table, key string, row any) error {
	sql, args := accountTablesOf[t].insert(key, row)
	tx.writes.Queue(sql+accountTablesOf[t].replace(), args...)
	return nil
}

func (tx *accountTx) Delete(of accounts.Table, key string) error {
	t := &accountTablesOf[of]
	tx.writes.Queue("DELETE FROM "+t.name+" WHERE "+t.key+" = $1", t.keyOf(key))
	return nil
}

// Expire deletes all rows that ended.
func (tx *accountTx) Expire(of accounts.Table, _ string, before time.Time) error {
	t := &accountTablesOf[of]
	tx.writes.Queue("DELETE FROM "+t.name+" WHERE "+t.end+" < $1", before.UTC())
	return nil
}

// TouchKeys stores when keys were last used; see auth.Store. One statement does it for all of
// them.
func (db *DB) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	ids, times := make([]string, 0, len(used)), make([]time.Time, 0, len(used))

	// All servers lock the rows in the same order, so they cannot deadlock.
	for _, id := range slices.Sorted(maps.Keys(used)) {
		ids, times = append(ids, id), append(times, used[id].UTC())
	}

	return db.pool.Exec(ctx, `
		UPDATE keys SET last_used_at = u.at FROM unnest($1::text[], $2::timestamptz[]) AS u (id, at)
		WHERE keys.id = u.id AND (last_used_at IS NULL OR last_used_at < u.at)`, ids, times)
}

// exportAccountRows returns the step that exports a table of accounts; see exportSteps.
func exportAccountRows(of accounts.Table) func(*DB, context.Context, [3]string) ([]exported, error) {
	t := &accountTablesOf[of]
	return func(db *DB, ctx context.Context, after [3]string) (page []exported, err error) {
		// The empty hash comes before all others, so it begins the table.
		key := any(after[0])
		if t.hashed() {
			key, err = hex.DecodeString(after[0])
		}
		if err != nil {
			return nil, err
		}

		var rows []accounts.Row
		err = db.pool.WithConn(ctx, func(conn *pgx.Conn) (err error) {
			rows, err = accountRows(ctx, conn, of, " WHERE "+t.key+" > $1 ORDER BY "+t.key+" LIMIT $2", key, exportPage)
			return err
		})

		for _, r := range rows {
			place := r.Key
			if t.hashed() {
				place = hex.EncodeToString([]byte(r.Key))
			}
			page = append(page, exported{r.Item(), [3]string{place}})
		}
		return page, err
	}
}
