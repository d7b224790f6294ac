package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/connection"
	"promptspool/spool/archive/postgres/schema"
	"promptspool/spool/archive/rowcode"
)

// folding is a group of changes to records. It reads and writes each record once, however
// many events of it are in the group.
type folding struct {
	db       *DB
	slot     int // of account_weeks, to which it adds its counts
	records  map[recordKey]*record
	order    []*record // sorted by load: all writers touch records in this order, so none deadlock
	accounts map[string]*foldedAccount
	held     int // the weight of the states in memory
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

	// As it was read.
	revision int64 // 0 if the record did not exist
	state    archive.Stored
	listed   bool  // it had a header
	bare     bool  // it was only a span
	at       int64 // the list time of that header
	bytes    int64 // of its events
	waiting  archive.Orphans

	// What the group does to it.
	changed bool
	sameRow bool // the header says all of it
	removed bool // it is deleted, or has a tombstone
	buried  bool // a tombstone is to be written
	bodies  []keptBody
}

type keptBody struct {
	event uuid
	body  []byte
}

// foldedAccount is what a group has to know about one account.
type foldedAccount struct {
	orphans archive.Orphans
	hashes  map[[16]byte]bool  // of the metadata values in the group's events
	deletes bool               // the account has deleted metadata values
	deleted map[[16]byte]int64 // those of them that occur in the group: up to when
}

func (db *DB) newFolding(lane int) *folding {
	return &folding{
		db:       db,
		slot:     db.slot + lane,
		records:  make(map[recordKey]*record),
		accounts: make(map[string]*foldedAccount),
	}
}

// addEvent adds an event's record to the group.
func (f *folding) addEvent(account string, e *archive.Event) error {
	if _, err := f.addRecord(account, e.RequestID); err != nil {
		return err
	}
	// Needed to ask for deleted values, before the states are known.
	for name, value := range metadataOf(e) {
		f.accounts[account].hashes[rowcode.HashStored(name, value)] = true
	}

	return nil
}

// addRecord adds a record to the group, or returns the one that is already in it.
func (f *folding) addRecord(account, requestID string) (*record, error) {
	id, ok := parseUUID(requestID)
	if !ok {
		return nil, badID(requestID)
	}
	if f.accounts[account] == nil {
		f.accounts[account] = &foldedAccount{hashes: make(map[[16]byte]bool)}
	}

	// One for all its events of the group, so that it is read and written once.
	key := recordKey{account, id}
	if f.records[key] == nil {
		r := &record{recordKey: key, ts: tsOf(id)}
		r.week = schema.WeekOf(r.ts)
		f.records[key], f.order = r, append(f.order, r)
	}

	return f.records[key], nil
}

// weeks returns the weeks of the records, without duplicates.
func (f *folding) weeks() (weeks []time.Time) {
	for _, r := range f.order {
		if !slices.Contains(weeks, r.week) {
			weeks = append(weeks, r.week)
		}
	}
	return weeks
}

// accountNames returns the accounts in order, in which all writers lock them.
func (f *folding) accountNames() []string { return slices.Sorted(maps.Keys(f.accounts)) }

// load locks the accounts, and reads what the group has to know. The locks are shared with
// other writers unless exclusive is set; they end with the transaction.
//
// load may run several times, once per attempt: it forgets what an earlier one has read.
func (f *folding) load(ctx context.Context, tx pgx.Tx, exclusive bool) error {
	slices.SortFunc(f.order, func(a, b *record) int {
		return cmp.Or(strings.Compare(a.account, b.account), bytes.Compare(a.id[:], b.id[:]))
	})
	// Of an earlier attempt nothing may stay: the records may have changed since.
	f.held = 0
	for _, r := range f.order {
		*r = record{recordKey: r.recordKey, ts: r.ts, week: r.week}
	}

	lock := `SELECT pg_advisory_xact_lock_shared($1)`
	if exclusive {
		lock = `SELECT pg_advisory_xact_lock($1)`
	}

	// One round trip for all. The locks come first: under READ COMMITTED each statement sees
	// what was committed before it began, so what follows a lock sees every tombstone whose
	// writer held that lock before us.
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

// loadDeltas reads the deltas of large states, which completes the states.
func (f *folding) loadDeltas(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	for _, r := range f.order {
		f.db.codec.queueDeltas(b, r.account, r.id, r.ts, &r.state)
	}

	// Deltas that do not fit their state mean that another server has changed the record since
	// its state was read. If they never fit, the record is damaged and the attempts run out.
	err := sendBatch(ctx, tx, b)
	if errors.Is(err, archive.ErrDelta) {
		return fmt.Errorf("%w: %w", connection.ErrConflict, err)
	}
	if err != nil {
		return err
	}

	// Counted again, now with the deltas.
	f.held = 0
	for _, r := range f.order {
		if err := f.loaded(r); err != nil {
			return err
		}
	}

	return nil
}

// loaded notes how a record is before the group changes it.
func (f *folding) loaded(r *record) error {
	if err := f.hold(r); err != nil {
		return err
	}

	// What counts so far; write subtracts it and adds what there is then.
	r.bytes, r.waiting = int64(r.state.Bytes()), r.state.Waiting()
	r.bare = r.state.Bare() && r.revision > 0
	if r.listed = r.state.Listed() && r.revision > 0; r.listed {
		r.at = nanosOf(r.state.ListTime())
	}

	return nil
}

// hold adds the weight of a record's state. It returns archive.ErrHeavy if the group is too
// heavy, so that the caller divides it; a single record may be.
func (f *folding) hold(r *record) error {
	if f.held += r.state.Weight(); f.held > f.db.heldBytesMax && len(f.order) > 1 {
		return archive.ErrHeavy
	}
	return nil
}

// loadDeleted reads which metadata values were deleted, of those in the group's events and
// in their records.
func (f *folding) loadDeleted(ctx context.Context, tx pgx.Tx) error {
	// A second round trip, which accounts that deleted nothing by metadata never make.
	b := &pgx.Batch{}
	for _, name := range f.accountNames() {
		if a := f.accounts[name]; a.deletes && len(a.hashes) > 0 {
			f.queueDeleted(b, name, a)
		}
	}

	return sendBatch(ctx, tx, b)
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
		// Also what the record no longer shows, because a deletion may be of that.
		for _, m := range r.state.Had() {
			h := rowcode.HashStored(m.Key, m.Value)
			hashes = append(hashes, h[:])
		}
	}

	b.Queue(`SELECT hash, before FROM deleted_values WHERE account_id = $1 AND hash = ANY($2)`, name, hashes).
		Query(func(rows pgx.Rows) error {
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

// queueAccount reads the account's orphans, the tombstones of the group's records, and
// whether the account has deleted metadata values.
func (f *folding) queueAccount(b *pgx.Batch, name string) {
	a := f.accounts[name]
	a.deletes, a.deleted = false, nil

	b.Queue(`
		SELECT coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint
		FROM account_weeks WHERE account_id = $1`, name).
		QueryRow(func(row pgx.Row) error {
			return row.Scan(&a.orphans.Requests, &a.orphans.Events, &a.orphans.Bytes)
		})

	var ids []uuid
	for _, r := range f.order {
		if r.account == name {
			ids = append(ids, r.id)
		}
	}
	b.Queue(`SELECT request_id FROM tombstones WHERE account_id = $1 AND request_id = ANY($2)`, name, ids).
		Query(func(rows pgx.Rows) error {
			var id uuid
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
				f.records[recordKey{name, id}].removed = true
				return nil
			})
			return err
		})

	// Most accounts never delete by metadata, so the values themselves are asked for only if
	// there are any (loadDeleted).
	if len(a.hashes) > 0 {
		b.Queue(`SELECT EXISTS (SELECT 1 FROM deleted_values WHERE account_id = $1)`, name).
			QueryRow(func(row pgx.Row) error { return row.Scan(&a.deletes) })
	}
}

// part is the records of one account and week. One statement can ask for all of them and
// still read a single partition.
type part struct {
	account string
	week    time.Time
	records []*record
}

// parts divides the records, which must be sorted.
func (f *folding) parts() (parts []*part) {
	for _, r := range f.order {
		p := findPart(parts, r.account, r.week)
		if p == nil {
			p = &part{account: r.account, week: r.week}
			parts = append(parts, p)
		}
		p.records = append(p.records, r)
	}
	return parts
}

func findPart(parts []*part, account string, week time.Time) *part {
	for _, p := range slices.Backward(parts) { // it is nearly always the last
		if p.account == account && p.week.Equal(week) {
			return p
		}
	}
	return nil
}

// selectStates reads the states of records of a few neighbouring weeks.
const selectStates = `
	SELECT request_id, revision, state FROM record_states
	WHERE account_id = $1 AND request_id = ANY($2) AND ts >= $3 AND ts < $4`

// queueStates reads the states of a part's records.
func (f *folding) queueStates(b *pgx.Batch, p *part) {
	ids := make([]uuid, len(p.records))
	for i, r := range p.records {
		ids[i] = r.id
	}

	// The bounds of ts let the planner keep to the partition of the week.
	from, to := schema.WeekEnds(p.week)
	b.Queue(selectStates, p.account, ids, from, to).Query(func(rows pgx.Rows) error {
		var id uuid
		var revision int64
		var packed []byte
		_, err := pgx.ForEachRow(rows, []any{&id, &revision, &packed}, func() (err error) {
			// Every id in the answer was asked for, so the record is in the group.
			r := f.records[recordKey{p.account, id}]
			r.revision = revision
			r.removed = false // the record exists, whatever its tombstone says
			if r.state, err = f.db.codec.unpackState(packed, id); err != nil {
				return err
			}
			return f.hold(r)
		})
		return err
	})
}

// remove deletes a record with the group. With a tombstone it never comes back.
func (f *folding) remove(r *record, tombstone bool) {
	if r.removed {
		return
	}

	// A later event of the group may take the place in the account's tally.
	f.accounts[r.account].orphans.Add(archive.Orphans{}.Minus(r.state.Waiting()))
	r.removed, r.changed, r.buried = true, true, tombstone
}
