package badgerdb

import (
	"bytes"
	"context"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

// Audit stores what somebody changed; see auth.AuditStore.
func (db *DB) Audit(ctx context.Context, account string, e wire.AuditEntry) error {
	k, id, err := auditKeys(account, e.ID)
	if err != nil {
		return err
	}

	return db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) {
		return store(nil, k.audit(id), e)
	})
}

// AuditLog lists what people changed, the newest first; see auth.AuditStore.
func (db *DB) AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error) {
	k, id, err := auditKeys(account, before)
	if before == "" { // from the beginning: there is no id to parse
		k, err = keysOf(account)
	}
	if err != nil {
		return nil, err
	}

	var from []byte
	if before != "" {
		from = append(k.audit(id), 0) // the first key behind it
	}

	entries := []wire.AuditEntry{}
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, k.table(tableAudit), from, func(key, value []byte) (bool, error) {
			var e wire.AuditEntry
			err := decode(key, value, &e)
			entries = append(entries, e)
			return len(entries) < limit, err
		})
	})

	return entries, err
}

// trimStep is how many entries one transaction deletes.
const trimStep = 1000

// TrimAudit deletes old entries; see auth.AuditStore.
func (db *DB) TrimAudit(ctx context.Context, oldest, fresh time.Time, most int) error {
	old, _ := parseUUID(wire.NewIDAt(oldest))
	stale, _ := parseUUID(wire.NewIDAt(fresh))
	accounts, err := db.accountKeys()
	for k := range accounts {
		if err == nil {
			err = db.trimAudit(ctx, k, k.audit(old), k.audit(stale), most)
		}
	}

	return err
}

// trimAudit deletes an account's entries from the key old on, and those from the key stale on that
// are behind the first most.
func (db *DB) trimAudit(ctx context.Context, k keys, old, stale []byte, most int) error {
	from := old
	n := 0
	err := db.view(func(txn *badger.Txn) error {
		return db.eachItem(ctx, txn, k.table(tableAudit), nil, func(item *badger.Item) (bool, error) {
			key := item.Key()
			if bytes.Compare(key, old) >= 0 {
				return false, nil
			}
			if n++; n <= most || bytes.Compare(key, stale) < 0 {
				return true, nil
			}
			from = item.KeyCopy(nil)
			return false, nil
		})
	})

	// A few at a time, so that writes come in between.
	for err == nil {
		var gone []write
		err = db.view(func(txn *badger.Txn) error {
			return db.eachItem(ctx, txn, k.table(tableAudit), from, func(item *badger.Item) (bool, error) {
				gone = append(gone, write{key: item.KeyCopy(nil)})
				return len(gone) < trimStep, nil
			})
		})
		if err != nil || len(gone) == 0 {
			return err
		}

		from = append(gone[len(gone)-1].key, 0) // the first key behind it
		err = db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) { return gone, nil })
	}

	return err
}

// auditKeys parses an account and the id of an entry.
func auditKeys(account, id string) (keys, uuid, error) {
	k, err := keysOf(account)
	if err != nil {
		return "", uuid{}, err
	}

	parsed, ok := parseUUID(id)
	if !ok {
		return "", uuid{}, wire.Invalid(wire.FieldError{Field: "before", Reason: "must be the id of an entry"})
	}
	return k, parsed, nil
}

// audit returns the key of an entry. Ids grow with time, so a plain walk meets the newest
// first.
func (k keys) audit(id uuid) []byte {
	key := k.table(tableAudit)
	for _, b := range id {
		key = append(key, ^b)
	}
	return key
}
