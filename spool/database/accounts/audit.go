package accounts

import (
	"cmp"
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
)

// Entries of the audit log, by account and inverted id. Ids grow with time, so the newest
// entry is the first.
const auditEntries keyed.Kind = "audit entries" // wire.AuditEntry

func auditKey(account, id string) (keyed.Key, error) {
	parsed, ok := archive.ParseUUID(id)
	if !ok {
		return keyed.Key{}, wire.Invalid(wire.FieldError{Field: "before", Reason: "must be the id of an entry"})
	}

	for i := range parsed {
		parsed[i] = ^parsed[i]
	}
	return keyed.Key{Kind: auditEntries, Account: account, Name: string(parsed[:])}, nil
}

// Audit stores a change that a person or a key made; see auth.AuditStore.
func (s *Store) Audit(ctx context.Context, account string, e wire.AuditEntry) error {
	key, err := auditKey(account, e.ID)
	if err != nil {
		return err
	}
	e.From = cmp.Or(e.From, wire.From(ctx))
	return s.put(ctx, key, e)
}

// AuditLog lists what people changed, the newest first; see auth.AuditStore.
func (s *Store) AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error) {
	from := keyed.Key{Kind: auditEntries, Account: account}
	if before != "" {
		last, err := auditKey(account, before)
		if err != nil {
			return nil, err
		}
		from.Name = last.Name + "\x00" // the first name after it
	}

	page, err := s.rows.Scan(ctx, from, 0, limit)
	entries := make([]wire.AuditEntry, len(page))
	for i := range page {
		if err == nil {
			err = page[i].Decode(&entries[i])
		}
	}
	return entries, err
}

// trimStep is how many entries are deleted at a time, so that writes come in between.
const trimStep = 1000

// TrimAudit deletes old entries; see auth.AuditStore.
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
