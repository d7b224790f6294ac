// Package accounts keeps what a server holds besides records: accounts, keys, people,
// invites, reset links, sessions, failed sign-ins, the audit log, templates, definitions of
// scores, review queues with the call that each reviewer looks at, and the fleet of
// sidecars. Validity, conflicts and error messages are decided here; a database only keeps
// the values (package keyed).
package accounts

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/keyed"
)

// Kinds of the server's values. A hash is a name as its 32 bytes.
const (
	accounts keyed.Kind = "accounts" // wire.Account by name
	keys     keyed.Kind = "keys"     // wire.Key by hash
	people   keyed.Kind = "people"   // person by id
	emails   keyed.Kind = "emails"   // id of a person by email
	invites  keyed.Kind = "invites"  // wire.Invite by hash
	sessions keyed.Kind = "sessions" // wire.Session by hash
	resets   keyed.Kind = "resets"   // wire.Reset by hash
	failures keyed.Kind = "failures" // wire.Failures by hash
	filled   keyed.Kind = "filled"   // the only value of Filled
	packed   keyed.Kind = "packed"   // the only value of Packed
)

// ofServer is the account whose changes are those of the server's values.
const ofServer = ""

func hashKey(kind keyed.Kind, hash [32]byte) keyed.Key {
	return keyed.Key{Kind: kind, Name: string(hash[:])}
}

// Store is an auth.Store, an auth.PeopleStore, a registry.Store and a wire.Sidecars. Safe for concurrent use.
type Store struct {
	rows        keyed.Store
	now         func() time.Time
	definitions sync.Map // readDefinitions by account
}

// New makes a Store. now stamps accounts and heartbeats.
func New(rows keyed.Store, now func() time.Time) *Store { return &Store{rows: rows, now: now} }

// changed returns what fn makes in a change of the server's values, and nothing if that fails.
// With again, fn may run once more after an attempt that was perhaps committed.
func changed[T any](ctx context.Context, s *Store, again bool, fn func(*keyed.Tx) (T, error)) (T, error) {
	var made T
	err := s.change(ctx, again, func(tx *keyed.Tx) (err error) {
		made, err = fn(tx)
		return err
	})
	// fn may have made something before its transaction failed. That must not get out.
	if err != nil {
		made = *new(T)
	}

	return made, err
}

func (s *Store) change(ctx context.Context, again bool, fn func(*keyed.Tx) error) error {
	return s.rows.Change(ctx, ofServer, again, fn)
}

// put writes a value, whatever was there before.
func (s *Store) put(ctx context.Context, key keyed.Key, value any) error {
	e, err := keyed.EntryOf(key, value)
	if err != nil {
		return err
	}
	return s.rows.Write(ctx, e)
}

// get reads a value. none is the error if it does not exist.
func get[T any](ctx context.Context, r keyed.Reader, key keyed.Key, none func() *wire.Error) (T, error) {
	v, found, err := keyed.Load[T](ctx, r, key)
	if err == nil && !found {
		err = none()
	}
	return v, err
}

// list returns the server's values of a kind, oldest first. It is never nil.
func list[T any](
	ctx context.Context, s *Store, kind keyed.Kind, age func(*T) (time.Time, string),
) ([]T, error) {
	items, err := keyed.List[T](ctx, s.rows, keyed.Key{Kind: kind})
	if err != nil {
		return nil, err
	}

	all := []T{}
	for _, item := range items {
		all = append(all, *item.Of)
	}
	slices.SortFunc(all, func(a, b T) int {
		at, aID := age(&a)
		bt, bID := age(&b)
		return cmp.Or(at.Compare(bt), cmp.Compare(aID, bID))
	})
	return all, nil
}

// find returns the first of the server's values of a kind that is wanted; nil if none is.
func find[T any](
	ctx context.Context, r keyed.Reader, kind keyed.Kind, wanted func(*T) bool,
) (*keyed.Item[T], error) {
	items, err := keyed.List[T](ctx, r, keyed.Key{Kind: kind})
	for i := range items {
		if wanted(items[i].Of) {
			return &items[i], nil
		}
	}
	return nil, err
}

// expireMax bounds how many values expire looks at: signing in pays for it, so it may not
// grow with their number.
const expireMax = 20

// expire deletes some values whose end is before a moment. It looks at those from near on, and
// then at the first. Names are hashes, so near is a random place among them.
func expire[T any](
	ctx context.Context, tx *keyed.Tx, near keyed.Key, before time.Time, end func(*T) time.Time,
) error {
	left := expireMax
	for _, from := range []keyed.Key{near, {Kind: near.Kind}} {
		page, err := tx.Scan(ctx, from, 0, left)
		if err != nil {
			return err
		}

		for _, e := range page {
			v := new(T)
			if err := e.Decode(v); err != nil {
				return err
			}
			if end(v).Before(before) {
				tx.Delete(e.Key)
			}
		}
		left -= len(page)
		if left == 0 {
			break
		}
	}
	return nil
}

// account returns the id of the account of this name, which is made if there is none.
func (s *Store) account(ctx context.Context, tx *keyed.Tx, name string) (id string, err error) {
	key := keyed.Key{Kind: accounts, Name: name}
	// Within the transaction: two calls with the same new name must not make two accounts.
	a, found, err := keyed.Load[wire.Account](ctx, tx, key)
	if found && a.ArchivedAt != nil {
		err = wire.Errorf(wire.CodeConflict, "The project %s is archived. An operator takes that back by: "+
			"promptspool projects archive --undo %s", name, name)
	}
	if found || err != nil {
		return a.ID, err
	}

	a, err = s.newAccount(tx, name)
	return a.ID, err
}

// newAccount makes an account of a name that none has.
func (s *Store) newAccount(tx *keyed.Tx, name string) (wire.Account, error) {
	a := wire.Account{ID: wire.NewID(), Name: name, CreatedAt: s.now().UTC()}
	return a, tx.Put(keyed.Key{Kind: accounts, Name: name}, a)
}

// unused returns wire.CodeConflict if an account has this name.
func unused(ctx context.Context, r keyed.Reader, name string) error {
	_, taken, err := keyed.Load[wire.Account](ctx, r, keyed.Key{Kind: accounts, Name: name})
	if err == nil && taken {
		err = wire.Errorf(wire.CodeConflict, "There is a project %s already.", name)
	}
	return err
}

// Account returns the id of an account, or makes it; see auth.PeopleStore.
func (s *Store) Account(ctx context.Context, name string) (id string, err error) {
	return changed(ctx, s, true, func(tx *keyed.Tx) (string, error) { return s.account(ctx, tx, name) })
}

// Filled implements archive.Renewed.
func (s *Store) Filled(ctx context.Context) (rowcode.Column, error) {
	end, found, err := keyed.Load[rowcode.Column](ctx, s.rows, keyed.Key{Kind: filled})
	if err == nil && !found {
		end = rowcode.FirstColumns // 0.1.0 wrote the rows
	}

	return end, err
}

// SetFilled implements archive.Renewed.
func (s *Store) SetFilled(ctx context.Context, end rowcode.Column) error {
	return s.put(ctx, keyed.Key{Kind: filled}, end)
}

// Packed implements repack.Store.
func (s *Store) Packed(ctx context.Context) (until time.Time, err error) {
	until, _, err = keyed.Load[time.Time](ctx, s.rows, keyed.Key{Kind: packed})
	return until, err
}

// SetPacked implements repack.Store.
func (s *Store) SetPacked(ctx context.Context, until time.Time) error {
	return s.put(ctx, keyed.Key{Kind: packed}, until)
}

// Entries of the audit log, by account and inverted id. Ids grow with time, so the newest
// entry is the first.
const auditEntries keyed.Kind = "audit entries" // wire.AuditEntry

func auditKey(account, id string) (keyed.Key, error) { return newestFirst(auditEntries, account, id) }

// newestFirst returns the key of what has an id that grows with time, in a kind with the newest first.
func newestFirst(kind keyed.Kind, account, id string) (keyed.Key, error) {
	parsed, ok := archive.ParseUUID(id)
	if !ok {
		return keyed.Key{}, wire.Invalid(wire.FieldError{Field: "before", Reason: "must be the id of an entry"})
	}

	for i := range parsed {
		parsed[i] = ^parsed[i]
	}
	return keyed.Key{Kind: kind, Account: account, Name: string(parsed[:])}, nil
}

// Audit stores a change that a person or a key made; see auth.PeopleStore.
func (s *Store) Audit(ctx context.Context, account string, e wire.AuditEntry) error {
	key, err := auditKey(account, e.ID)
	if err != nil {
		return err
	}
	e.From = cmp.Or(e.From, wire.From(ctx))
	return s.put(ctx, key, e)
}

// AuditLog lists what people changed, the newest first; see auth.PeopleStore.
func (s *Store) AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error) {
	from := keyed.Key{Kind: auditEntries, Account: account}
	if before != "" {
		last, err := auditKey(account, before)
		if err != nil {
			return nil, err
		}
		// The first name after it.
		from.Name = last.Name + "\x00"
	}

	return decoded[wire.AuditEntry](s.rows.Scan(ctx, from, 0, limit))
}

// decoded returns the values of a page that was read, unless that failed. It is never nil.
func decoded[T any](page []keyed.Entry, err error) ([]T, error) {
	values := make([]T, len(page))
	for i := range page {
		if err == nil {
			err = page[i].Decode(&values[i])
		}
	}
	return values, err
}

// trimStep is how many entries are deleted at a time, so that writes come in between.
const trimStep = 1000

// TrimAudit deletes old entries; see auth.PeopleStore.
func (s *Store) TrimAudit(ctx context.Context, oldest, fresh time.Time, most int) error {
	all, err := keyed.List[wire.Account](ctx, s.rows, keyed.Key{Kind: accounts})
	for _, a := range all {
		if err == nil {
			err = s.trimAudit(ctx, a.Of.ID, oldest, fresh, most)
		}
	}
	return err
}

func (s *Store) trimAudit(ctx context.Context, account string, oldest, fresh time.Time, most int) error {
	from, _ := auditKey(account, wire.NewIDAt(oldest))
	stale, _ := auditKey(account, wire.NewIDAt(fresh))

	// The first entry beyond those that are kept, of which there may be a million: they are
	// passed once. Fresh ones stay however many they are.
	beyond, err := s.rows.Scan(ctx, keyed.Key{Kind: auditEntries, Account: account}, most, 1)
	if len(beyond) > 0 {
		from.Name = min(from.Name, max(stale.Name, beyond[0].Name))
	}

	for n := trimStep; n == trimStep && err == nil; {
		var gone []keyed.Entry
		gone, err = s.rows.Scan(ctx, from, 0, trimStep)
		for i := range gone {
			gone[i].Value = nil
			from.Name = gone[i].Name
		}
		n = len(gone)
		if err == nil {
			err = s.rows.Write(ctx, gone...)
		}
	}
	return err
}
