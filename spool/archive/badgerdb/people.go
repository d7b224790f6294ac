package badgerdb

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

// user is what is stored of a person.
type user struct {
	wire.User
	Password string `json:"password"` // its hash
}

var (
	userPrefix    = []byte{ofServer, 'u'}
	emailPrefix   = []byte{ofServer, 'e'}
	invitePrefix  = []byte{ofServer, 'i'}
	sessionPrefix = []byte{ofServer, 's'}
)

func serverKey[T string | []byte](prefix []byte, rest T) []byte {
	return append(slices.Clone(prefix), rest...)
}

// CreateUser keeps a person; see auth.UserStore.
func (db *DB) CreateUser(ctx context.Context, u wire.User, password string, invite [32]byte) (wire.User, error) {
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		var id string
		if found, err := load(txn, serverKey(emailPrefix, u.Email), &id); found || err != nil {
			return nil, cmp.Or(err, error(wire.Errorf(wire.CodeConflict, "This email is taken.")))
		}
		joined, writes, err := db.join(ctx, txn, &u, invite)
		if err != nil {
			return nil, err
		}
		u.AccountID = joined.ID
		return store(writes, serverKey(userPrefix, u.ID), user{u, password}, serverKey(emailPrefix, u.Email), u.ID)
	})
	if err != nil {
		return wire.User{}, err
	}
	return u, nil
}

// join finds the account of an invite, which it spends, or founds one without. It sets u's account name and role.
func (db *DB) join(ctx context.Context, txn *badger.Txn, u *wire.User, invite [32]byte) (wire.Account, []write, error) {
	if invite == ([32]byte{}) {
		var a wire.Account
		if found, err := load(txn, accountKey(u.AccountName), &a); found || err != nil {
			return a, nil, cmp.Or(err, error(wire.Errorf(wire.CodeConflict, "This account's name is taken.")))
		}
		return db.account(txn, u.AccountName)
	}
	var i wire.Invite
	key := serverKey(invitePrefix, invite[:])
	found, err := load(txn, key, &i)
	if err != nil {
		return wire.Account{}, nil, err
	}
	spent := !found || u.CreatedAt.After(i.ExpiresAt)
	if found && i.Setup {
		spent, err = db.hasOwner(ctx, txn, i.AccountName)
	}
	if spent || err != nil {
		return wire.Account{}, nil, cmp.Or(err, error(errNoInvite()))
	}
	u.AccountName, u.Role = i.AccountName, i.Role
	a, writes, err := db.account(txn, i.AccountName)
	return a, append(writes, write{key, nil}), err
}

func errNoInvite() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such invite, or it is spent.")
}

func errNoUser() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such person.") }

// store appends writes that set keys to the JSON of values: a key, a value, a key, a value.
func store(writes []write, pairs ...any) ([]write, error) {
	for i := 0; i < len(pairs); i += 2 {
		value, err := wire.Marshal(pairs[i+1])
		if err != nil {
			return nil, err
		}
		writes = append(writes, write{pairs[i].([]byte), value})
	}
	return writes, nil
}

// UserByEmail finds a person; see auth.UserStore.
func (db *DB) UserByEmail(ctx context.Context, email string) (wire.User, string, error) {
	var u user
	err := db.view(func(txn *badger.Txn) error {
		var id string
		found, err := load(txn, serverKey(emailPrefix, email), &id)
		if err != nil || !found {
			return cmp.Or(err, error(errNoUser()))
		}
		return loadUser(txn, id, &u)
	})
	return u.User, u.Password, err
}

func loadUser(txn *badger.Txn, id string, u *user) error {
	found, err := load(txn, serverKey(userPrefix, id), u)
	if err == nil && !found {
		err = errNoUser()
	}
	return err
}

// Users lists the people of an account; see auth.UserStore. It reads all of the server's.
func (db *DB) Users(ctx context.Context, account string) ([]wire.User, error) {
	all, err := db.Everybody(ctx)
	return slices.DeleteFunc(all, func(u wire.User) bool { return u.AccountID != account }), err
}

// Everybody lists the people of all accounts; see auth.UserStore.
func (db *DB) Everybody(ctx context.Context) ([]wire.User, error) {
	var users []wire.User
	err := db.view(func(txn *badger.Txn) (err error) {
		users, err = db.users(ctx, txn)
		return err
	})
	return users, err
}

func (db *DB) users(ctx context.Context, txn *badger.Txn) ([]wire.User, error) {
	users := []wire.User{}
	err := db.each(ctx, txn, userPrefix, nil, func(key, value []byte) (bool, error) {
		var u user
		err := decode(key, value, &u)
		users = append(users, u.User)
		return true, err
	})
	slices.SortFunc(users, func(a, b wire.User) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return users, err
}

// Account finds an account, or makes it; see auth.UserStore.
func (db *DB) Account(ctx context.Context, name string) (string, error) {
	var a wire.Account
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		a, writes, err = db.account(txn, name)
		return writes, err
	})
	return a.ID, err
}

// ChangeUser changes a person; see auth.UserStore.
func (db *DB) ChangeUser(ctx context.Context, account, id string, change wire.UserChange) (wire.User, error) {
	var u user
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		u = user{}
		if err := loadUser(txn, id, &u); err != nil {
			return nil, err
		}
		if u.AccountID != account {
			return nil, errNoUser()
		}
		apply(&u, change)
		users, err := db.users(ctx, txn)
		if err != nil {
			return nil, err
		}
		owned := u.Role == wire.RoleOwner && u.DisabledAt == nil
		for _, other := range users {
			owned = owned || other.AccountID == account && other.ID != id &&
				other.Role == wire.RoleOwner && other.DisabledAt == nil
		}
		if !owned {
			return nil, wire.Errorf(wire.CodeConflict, "The account would have no owner.")
		}

		writes, err := db.endResets(ctx, txn, id)
		if err != nil {
			return nil, err
		}
		return store(writes, serverKey(userPrefix, id), u)
	})
	if err != nil {
		return wire.User{}, err
	}
	return u.User, nil
}

func apply(u *user, c wire.UserChange) {
	u.SessionsFrom = c.At.UTC()
	if c.Role != nil {
		u.Role = *c.Role
	}
	if c.Password != nil {
		u.Password = *c.Password
	}
	switch {
	case c.Disabled != nil && !*c.Disabled:
		u.DisabledAt = nil
	case c.Disabled != nil && u.DisabledAt == nil:
		at := c.At.UTC()
		u.DisabledAt = &at
	}
}

// HasOwner reports whether an account has an owner; see auth.UserStore.
func (db *DB) HasOwner(ctx context.Context, accountName string) (has bool, err error) {
	err = db.view(func(txn *badger.Txn) (err error) {
		has, err = db.hasOwner(ctx, txn, accountName)
		return err
	})
	return has, err
}

func (db *DB) hasOwner(ctx context.Context, txn *badger.Txn, accountName string) (bool, error) {
	users, err := db.users(ctx, txn)
	return slices.ContainsFunc(users, func(u wire.User) bool {
		return u.AccountName == accountName && u.Role == wire.RoleOwner
	}), err
}

// CreateInvite keeps an invite; see auth.InviteStore.
func (db *DB) CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error {
	return db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) {
		return store(nil, serverKey(invitePrefix, hash[:]), i)
	})
}

// Invite finds an invite; see auth.InviteStore.
func (db *DB) Invite(ctx context.Context, hash [32]byte) (i wire.Invite, err error) {
	err = db.view(func(txn *badger.Txn) error {
		found, err := load(txn, serverKey(invitePrefix, hash[:]), &i)
		if err == nil && !found {
			err = errNoInvite()
		}
		return err
	})
	return i, err
}

// Invites lists the invites of an account; see auth.InviteStore.
func (db *DB) Invites(ctx context.Context, accountName string) ([]wire.Invite, error) {
	invites := []wire.Invite{}
	err := db.view(func(txn *badger.Txn) error {
		return db.eachInvite(ctx, txn, accountName, func(_ []byte, i wire.Invite) { invites = append(invites, i) })
	})
	slices.SortFunc(invites, func(a, b wire.Invite) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return invites, err
}

// DeleteInvite takes an invite back; see auth.InviteStore.
func (db *DB) DeleteInvite(ctx context.Context, accountName, id string) error {
	return db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		err = db.eachInvite(ctx, txn, accountName, func(key []byte, i wire.Invite) {
			if i.ID == id {
				writes = append(writes, write{key, nil})
			}
		})
		if err == nil && writes == nil {
			err = errNoInvite()
		}
		return writes, err
	})
}

// eachInvite calls fn for the invites of an account that are not of a fresh server. fn may keep the key.
func (db *DB) eachInvite(ctx context.Context, txn *badger.Txn, accountName string, fn func(key []byte, i wire.Invite)) error {
	return db.each(ctx, txn, invitePrefix, nil, func(key, value []byte) (bool, error) {
		var i wire.Invite
		err := decode(key, value, &i)
		if err == nil && i.AccountName == accountName && !i.Setup {
			fn(bytes.Clone(key), i)
		}
		return true, err
	})
}

// CreateSession keeps a session; see auth.SessionStore.
func (db *DB) CreateSession(ctx context.Context, hash [32]byte, s wire.Session) error {
	return db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		key := serverKey(sessionPrefix, hash[:])
		writes, err = db.sweep(ctx, txn, sessionPrefix, key, func(key, value []byte) (bool, error) {
			var old wire.Session
			err := decode(key, value, &old)
			return old.ExpiresAt.Add(wire.SessionKept).Before(s.CreatedAt), err
		})
		if err != nil {
			return nil, err
		}
		return store(writes, key, s)
	})
}

// sweepMax bounds how many sessions, or failed sign-ins, are looked at with each new one.
const sweepMax = 100

// sweep deletes what is over among those from a key on, and then from the first on. The key holds a hash: a random place among them.
func (db *DB) sweep(ctx context.Context, txn *badger.Txn, prefix, from []byte, over func(key, value []byte) (bool, error)) (writes []write, err error) {
	seen := 0
	for _, start := range [][]byte{from, nil} {
		err = db.each(ctx, txn, prefix, start, func(key, value []byte) (bool, error) {
			if seen++; seen > sweepMax {
				return false, nil
			}
			gone, err := over(key, value)
			if err == nil && gone {
				writes = append(writes, write{bytes.Clone(key), nil})
			}
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// Session finds a session; see auth.SessionStore.
func (db *DB) Session(ctx context.Context, hash [32]byte) (s wire.Session, _ wire.User, err error) {
	var u user
	err = db.view(func(txn *badger.Txn) error {
		found, err := load(txn, serverKey(sessionPrefix, hash[:]), &s)
		if err == nil && !found {
			err = wire.Errorf(wire.CodeNotFound, "There is no such session.")
		}
		if err != nil {
			return err
		}
		return loadUser(txn, s.UserID, &u)
	})
	return s, u.User, err
}

// EndSession ends a session; see auth.SessionStore.
func (db *DB) EndSession(ctx context.Context, hash [32]byte, at time.Time) error {
	key := serverKey(sessionPrefix, hash[:])
	return db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		var s wire.Session
		found, err := load(txn, key, &s)
		if !found || err != nil || s.ExpiresAt.Before(at) {
			return nil, err
		}
		s.ExpiresAt = at.UTC()
		return store(nil, key, s)
	})
}
