package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
)

// folding is a group of changes to records: each record is read once and written once, however many of its events are in it.
type folding struct {
	db       *DB
	slot     int // where it counts
	records  map[recordKey]*record
	order    []*record // by account and id, once load has run: the order in which all writers touch them, so that none waits in a circle
	accounts map[string]*foldedAccount
	held     int // what the states weighed when they were read
}

type recordKey struct {
	account string
	id      uuid
}

// record is one record of a group.
type record struct {
	recordKey
	ts   time.Time
	week time.Time

	revision int64 // that was read; 0: there was none
	state    archive.Stored
	listed   bool  // it was listed before the group
	at       int64 // where, if it was
	bytes    int64 // of its events before the group
	waiting  archive.Orphans

	changed bool
	removed bool // and, with a tombstone, never to come back
	buried  bool // a tombstone is to be written
	bodies  []keptBody
}

type keptBody struct {
	event uuid
	body  []byte
}

// foldedAccount is what a group needs to know of one account.
type foldedAccount struct {
	orphans archive.Orphans
	hashes  map[[16]byte]bool  // of the metadata values in the group
	deletes bool               // some metadata value was deleted
	deleted map[[16]byte]int64 // of those in the group and in its records, those that were deleted, and up to when
}

func (db *DB) newFolding(lane int) *folding {
	return &folding{db: db, slot: db.slot + lane, records: make(map[recordKey]*record), accounts: make(map[string]*foldedAccount)}
}

// meet notes that an event's record is needed.
func (f *folding) addEvent(account string, e *archive.Event) error {
	if _, err := f.addRecord(account, e.RequestID); err != nil {
		return err
	}
	for name, value := range metadataOf(e) {
		f.accounts[account].hashes[rowcode.HashStored(name, value)] = true
	}
	return nil
}

// need notes that a record is needed.
func (f *folding) addRecord(account, requestID string) (*record, error) {
	id, ok := parseUUID(requestID)
	if !ok {
		return nil, badID(requestID)
	}
	if f.accounts[account] == nil {
		f.accounts[account] = &foldedAccount{hashes: make(map[[16]byte]bool)}
	}
	key := recordKey{account, id}
	if f.records[key] == nil {
		r := &record{recordKey: key, ts: tsOf(id)}
		r.week = weekOf(r.ts)
		f.records[key], f.order = r, append(f.order, r)
	}
	return f.records[key], nil
}

// weeks are those of the records, each once.
func (f *folding) weeks() (weeks []time.Time) {
	for _, r := range f.order {
		if !slices.Contains(weeks, r.week) {
			weeks = append(weeks, r.week)
		}
	}
	return weeks
}

// accountNames are sorted.
func (f *folding) accountNames() []string {
	names := make([]string, 0, len(f.accounts))
	for name := range f.accounts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// load locks the accounts, shared with other writers or alone, and reads what the group needs. It forgets what an earlier try found out.
func (f *folding) load(ctx context.Context, tx pgx.Tx, alone bool) error {
	slices.SortFunc(f.order, func(a, b *record) int {
		return cmp.Or(strings.Compare(a.account, b.account), bytes.Compare(a.id[:], b.id[:]))
	})
	f.held = 0
	for _, r := range f.order {
		*r = record{recordKey: r.recordKey, ts: r.ts, week: r.week}
	}
	lock := `SELECT pg_advisory_xact_lock_shared($1)`
	if alone {
		lock = `SELECT pg_advisory_xact_lock($1)`
	}
	b := &pgx.Batch{}
	names := f.accountNames()
	for _, name := range names {
		b.Queue(lock, accountLock(name))
	}
	for _, name := range names {
		f.queueAccount(b, name)
	}
	for _, part := range f.parts() {
		f.queueStates(b, part)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if err := f.loadDeltas(ctx, tx); err != nil {
		return err
	}
	return f.loadDeleted(ctx, tx)
}

// loadDeltas reads what is stored beside the states.
func (f *folding) loadDeltas(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	for _, r := range f.order {
		f.db.codec.queueDeltas(b, r.account, r.id, r.ts, &r.state)
	}
	err := sendBatch(ctx, tx, b)
	if errors.Is(err, archive.ErrDelta) {
		return fmt.Errorf("%w: %w", errConflict, err) // or damage, if it is so again
	}
	if err != nil {
		return err
	}

	f.held = 0
	for _, r := range f.order {
		if err := f.loaded(r); err != nil {
			return err
		}
	}
	return nil
}

// loaded notes how a record was before the group.
func (f *folding) loaded(r *record) error {
	if f.held += r.state.Weight(); f.held > f.db.heldBytesMax && len(f.order) > 1 {
		return archive.ErrHeavy
	}
	r.bytes, r.waiting = int64(r.state.Bytes()), r.state.Waiting()
	if r.listed = !r.state.Orphan() && r.revision > 0; r.listed {
		r.at = nanosOf(r.state.Request.At)
	}
	return nil
}

// loadDeleted reads which metadata values were deleted, among those of the events and of the records that they meet.
func (f *folding) loadDeleted(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	for _, name := range f.accountNames() {
		if a := f.accounts[name]; a.deletes && len(a.hashes) > 0 {
			f.queueDeleted(b, name, a)
		}
	}
	if b.Len() == 0 {
		return nil
	}

	return tx.SendBatch(ctx, b).Close()
}

func (f *folding) queueDeleted(b *pgx.Batch, name string, a *foldedAccount) {
	var hashes [][]byte
	for h := range a.hashes {
		hashes = append(hashes, bytes.Clone(h[:]))
	}
	for _, r := range f.order {
		if r.account != name {
			continue
		}
		for _, m := range r.state.Had() {
			h := rowcode.HashStored(m.Key, m.Value)
			hashes = append(hashes, h[:])
		}
	}

	b.Queue(`SELECT hash, before FROM deleted_values WHERE account_id = $1 AND hash = ANY($2)`, name, hashes).Query(func(rows pgx.Rows) error {
		var hash []byte
		var before int64
		_, err := pgx.ForEachRow(rows, []any{&hash, &before}, func() error {
			if a.deleted == nil {
				a.deleted = make(map[[16]byte]int64)
			}
			a.deleted[[16]byte(hash)] = before
			return nil
		})
		return err
	})
}

// queueAccount reads the account's orphans and tombstones, and whether it has deleted values.
func (f *folding) queueAccount(b *pgx.Batch, name string) {
	a := f.accounts[name]
	a.deletes, a.deleted = false, nil
	b.Queue(`SELECT coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint, coalesce(sum(orphan_bytes), 0)::bigint FROM account_weeks WHERE account_id = $1`, name).
		QueryRow(func(row pgx.Row) error { return row.Scan(&a.orphans.Requests, &a.orphans.Events, &a.orphans.Bytes) })
	var ids []uuid
	for _, r := range f.order {
		if r.account == name {
			ids = append(ids, r.id)
		}
	}
	b.Queue(`SELECT request_id FROM tombstones WHERE account_id = $1 AND request_id = ANY($2)`, name, ids).Query(func(rows pgx.Rows) error {
		var id uuid
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { f.records[recordKey{name, id}].removed = true; return nil })
		return err
	})
	if len(a.hashes) > 0 {
		b.Queue(`SELECT EXISTS (SELECT 1 FROM deleted_values WHERE account_id = $1)`, name).
			QueryRow(func(row pgx.Row) error { return row.Scan(&a.deletes) })
	}
}

// part is the records of one account and week: what one statement can ask about and still tell which partition it needs.
type part struct {
	account string
	week    time.Time
	records []*record
}

// parts splits the records; they stand in order.
func (f *folding) parts() (parts []*part) {
	for _, r := range f.order {
		p := find(parts, r.account, r.week)
		if p == nil {
			p = &part{account: r.account, week: r.week}
			parts = append(parts, p)
		}
		p.records = append(p.records, r)
	}
	return parts
}

func find(parts []*part, account string, week time.Time) *part {
	for i := len(parts) - 1; i >= 0; i-- { // mostly the last
		if parts[i].account == account && parts[i].week.Equal(week) {
			return parts[i]
		}
	}
	return nil
}

// selectStates reads the states of records of one week.
const selectStates = `SELECT request_id, revision, state FROM record_states WHERE account_id = $1 AND request_id = ANY($2) AND ts >= $3 AND ts < $4`

// queueStates reads the states of a part.
func (f *folding) queueStates(b *pgx.Batch, p *part) {
	ids := make([]uuid, len(p.records))
	for i, r := range p.records {
		ids[i] = r.id
	}
	from, to := weekEnds(p.week)
	b.Queue(selectStates, p.account, ids, from, to).
		Query(func(rows pgx.Rows) error {
			var id uuid
			var revision int64
			var packed []byte
			_, err := pgx.ForEachRow(rows, []any{&id, &revision, &packed}, func() (err error) {
				r := f.records[recordKey{p.account, id}]
				r.revision = revision
				r.removed = false
				if r.state, err = f.db.codec.unpackState(packed, id); err != nil {
					return err
				}
				if f.held += r.state.Weight(); f.held > f.db.heldBytesMax && len(f.order) > 1 {
					return archive.ErrHeavy
				}
				return nil
			})
			return err
		})
}

// remove takes a record out of the database. With a tombstone it never comes back.
func (f *folding) remove(r *record, tombstone bool) {
	if r.removed {
		return
	}
	f.accounts[r.account].orphans.Add(archive.Orphans{}.Minus(r.state.Waiting()))
	r.removed, r.changed, r.buried = true, true, tombstone
}
