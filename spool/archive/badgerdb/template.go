package badgerdb

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive"
)

// UpdateTemplate changes one template in one durable transaction; see registry.Store. A
// head with many versions takes long to decode and encode, so that happens outside the
// committer: only updates of the same account wait for it.
func (db *DB) UpdateTemplate(
	ctx context.Context, account, name string, change func(t *wire.Template) (v *wire.Version, changed bool, err error),
) (wire.Template, error) {
	k, err := keysOf(account)
	if err != nil {
		return wire.Template{}, err
	}

	// Held over the read and the commit: else another update would be lost.
	updating := db.updating.of(k)
	updating.Lock()
	defer updating.Unlock()

	if err := db.stopped(ctx); err != nil {
		return wire.Template{}, err
	}

	u := update{keys: k}
	err = db.view(func(txn *badger.Txn) error {
		if err := u.load(txn, name); err != nil {
			return err
		}

		before := u.head.Revision
		version, changed, err := change(&u.head)
		if err != nil || !changed {
			return err
		}

		return u.store(version, before)
	})
	if err == nil && len(u.writes) > 0 {
		// Nobody else writes these keys while the lock is held, so the writes are still
		// valid.
		err = db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) { return u.writes, nil })
	}
	if err != nil {
		return wire.Template{}, err
	}

	return u.head, nil
}

// accountLocks has a lock for each account, which an account may share with others.
type accountLocks struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

// of returns the lock of an account.
func (l *accountLocks) of(k keys) *sync.Mutex {
	return &l.locks[maphash.String(l.seed, string(k))%uint64(len(l.locks))]
}

// update is one change of a template, being made.
type update struct {
	keys   keys
	head   wire.Template
	last   archive.Registry
	isNew  bool
	writes []write
}

// load reads the head, or begins a new one, and the last ids given out.
func (u *update) load(txn *badger.Txn, name string) error {
	if _, err := load(txn, u.keys.last(), &u.last); err != nil {
		return err
	}

	found, err := load(txn, u.keys.head(name), &u.head)
	if err == nil && !found {
		// Not stored yet: publishing may still be refused.
		u.isNew = true
		u.head = u.last.NewTemplate(name)
	}
	return err
}

// store appends the writes for the head, the version if there is one, and the new
// revision. before is the revision at which the template changed last.
func (u *update) store(v *wire.Version, before uint64) error {
	u.last.Change(&u.head, v)

	if v != nil {
		if err := u.put(u.keys.version(v.TemplateID, v.Number), v); err != nil {
			return err
		}
	}

	// The feed of changes has one key for each template: its last change.
	if u.isNew {
		u.writes = append(u.writes, write{u.keys.templateName(u.head.ID), []byte(u.head.Name)})
	} else {
		u.writes = append(u.writes, write{key: u.keys.change(before)})
	}
	u.writes = append(u.writes, write{u.keys.change(u.last.Revision), []byte(u.head.Name)})

	if err := u.put(u.keys.head(u.head.Name), u.head); err != nil {
		return err
	}
	return u.put(u.keys.last(), u.last)
}

// put appends the write of a JSON value.
func (u *update) put(key []byte, v any) error {
	value, err := jsonscan.Marshal(v)
	u.writes = append(u.writes, write{key, value})
	return err
}

// Template returns a head by name, or else by its id in decimal; see registry.Store.
func (db *DB) Template(ctx context.Context, account, ident string) (wire.Template, error) {
	var head wire.Template
	k, err := keysOf(account)
	if err != nil {
		return head, err
	}

	err = db.view(func(txn *badger.Txn) error {
		// A name may look like an id, and comes first.
		found, err := load(txn, k.head(ident), &head)

		if id, ok := archive.TemplateID(ident); ok && err == nil && !found {
			var name []byte
			if name, err = loadBytes(txn, k.templateName(id)); err == nil && name != nil {
				found, err = load(txn, k.head(string(name)), &head)
			}
		}

		if err == nil && !found {
			err = archive.ErrNoTemplate(ident)
		}
		return err
	})

	return head, err
}

// TemplateVersion returns one version; see registry.Store.
func (db *DB) TemplateVersion(ctx context.Context, account string, id int64, number int) (wire.Version, error) {
	var v wire.Version
	k, err := keysOf(account)
	if err != nil {
		return v, err
	}

	err = db.view(func(txn *badger.Txn) error {
		// Read by itself: the head has only the stamps of versions, not their content.
		found, err := load(txn, k.version(id, number), &v)
		if err == nil && !found {
			err = archive.ErrNoVersion(id, number)
		}
		return err
	})

	return v, err
}

// TemplateName returns the name of the template with an id; see registry.Store.
func (db *DB) TemplateName(ctx context.Context, account string, id int64) (string, error) {
	k, err := keysOf(account)
	if err != nil {
		return "", err
	}

	var name []byte
	err = db.view(func(txn *badger.Txn) (err error) {
		if name, err = loadBytes(txn, k.templateName(id)); err == nil && name == nil {
			err = archive.ErrNoTemplateID(id)
		}
		return err
	})

	return string(name), err
}

// Templates returns one page of heads, and how many match; see registry.Store. It reads
// every head of the account.
func (db *DB) Templates(
	ctx context.Context, account string, q wire.TemplateListQuery,
) ([]wire.Template, int, error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, 0, err
	}

	heads := []wire.Template{}
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, k.table(tableHead), nil, func(key, value []byte) (bool, error) {
			var head wire.Template
			err := decode(key, value, &head)
			if err == nil && q.Match(&head) {
				heads = append(heads, head)
			}
			return true, err
		})
	})
	if err != nil {
		return nil, 0, err
	}

	// Sorted and cut after the read, which holds up Erase while it lasts.
	page, total := q.PageOf(heads)
	return page, total, nil
}

// TemplateChanges lists the templates changed after a revision; see registry.Store.
func (db *DB) TemplateChanges(ctx context.Context, account string, since uint64) (wire.Changes, error) {
	changes := wire.Changes{Success: true, Names: []string{}}
	k, err := keysOf(account)
	if err != nil {
		return wire.Changes{}, err
	}

	err = db.view(func(txn *badger.Txn) error {
		var now archive.Registry
		if _, err := load(txn, k.last(), &now); err != nil {
			return err
		}

		changes.Revision, changes.Reset = now.Revision, since > now.Revision
		if since >= now.Revision {
			return nil
		}

		// Truncated, the revision is that of the last name listed: the caller goes on
		// from there.
		last := uint64(0)
		return db.each(ctx, txn, k.table(tableChange), k.change(since+1), func(key, name []byte) (bool, error) {
			if len(changes.Names) == archive.TemplateChangesMax {
				changes.Revision = last
				return false, nil
			}

			changes.Names = append(changes.Names, string(name))
			last = revisionOf(key)
			return true, nil
		})
	})
	if err != nil {
		return wire.Changes{}, err
	}
	return changes, nil
}
