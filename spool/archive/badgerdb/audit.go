package badgerdb

import (
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

// Audit keeps what somebody changed; see auth.AuditStore.
func (db *DB) Audit(ctx context.Context, account string, e wire.AuditEntry) error {
	k, id, err := auditKeys(account, e.ID)
	if err != nil {
		return err
	}
	return db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) {
		return store(nil, k.audit(id), e)
	})
}

// AuditLog lists what people changed; see auth.AuditStore.
func (db *DB) AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error) {
	k, id, err := auditKeys(account, before)
	if before == "" {
		k, err = keysOf(account)
	}
	if err != nil {
		return nil, err
	}
	var from []byte
	if before != "" {
		from = append(k.audit(id), 0) // behind it
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

// audit is where an entry stands: a plain walk meets the newest first, for ids grow with time.
func (k keys) audit(id uuid) []byte {
	key := k.table(tableAudit)
	for _, b := range id {
		key = append(key, ^b)
	}
	return key
}
