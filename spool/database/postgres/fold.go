package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// folding is a group of changes to records, in one transaction.
type folding struct {
	*archive.Group

	db     *DB
	slot   int                          // of account_weeks, to which it adds its counts
	hashes map[string]map[[16]byte]bool // of the metadata values in the group's events, by account
	keys   map[string]map[uuid]bool     // of the sets that they ask for, by account

	// Of the current attempt.
	ctx     context.Context
	tx      pgx.Tx
	deletes map[string]bool // accounts that have deleted metadata values
}

func (db *DB) newFolding(lane int) *folding {
	return &folding{
		Group:  archive.NewGroup(db.heldBytesMax, db.usage),
		db:     db,
		slot:   db.slot + lane,
		hashes: make(map[string]map[[16]byte]bool),
		keys:   make(map[string]map[uuid]bool),
	}
}

// addEvent adds an event's record to the group.
func (f *folding) addEvent(account string, e *archive.Event) error {
	if _, err := f.Add(account, e.RequestID); err != nil {
		return err
	}
	if f.hashes[account] == nil {
		f.hashes[account], f.keys[account] = make(map[[16]byte]bool), make(map[uuid]bool)
	}
	for _, key := range e.Keys() {
		f.keys[account][key] = true
	}
	// Needed to ask for deleted values, before the states are known.
	for _, value := range e.Selectable() {
		f.hashes[account][rowcode.HashStored(value.Key, value.Value)] = true
	}

	return nil
}

// Change changes records in one transaction; see archive.Store.
func (db *DB) Change(
	ctx context.Context, account string, ids []string, alone bool,
	decide func(*archive.Group, archive.Loader) error,
) error {
	if len(ids) == 0 {
		return nil
	}
	f := db.newFolding(0)
	for _, id := range ids {
		if _, err := f.Add(account, id); err != nil {
			return err
		}
	}

	// A record of another database may be new here. Those that are changed alone never are.
	if !alone {
		if err := db.tables.Ensure(ctx, f.weeks()); err != nil {
			return err
		}
	}

	return f.change(ctx, alone, func() error { return decide(f.Group, f) })
}

// change loads the group's records, calls decide, and writes what that changed. It does so again
// if another server was faster. alone keeps all other writers to the accounts out.
func (f *folding) change(ctx context.Context, alone bool, decide func() error) error {
	// load sends the guard, prepared: by itself it would take a tenth of a small write's time.
	err := f.db.pool.Unguarded(ctx, func(tx pgx.Tx) error {
		if err := f.load(ctx, tx, alone); err != nil {
			return err
		}
		if err := decide(); err != nil {
			return err
		}
		return f.write(ctx, tx)
	})
	for _, name := range f.accountNames() {
		if err == nil {
			f.db.packer.Add(name, f.Came(name))
			f.CountUsage(name)
		}
	}

	return err
}

// Bodies reads bodies of a record's events; see archive.Loader.
func (f *folding) Bodies(r *archive.Record) (map[string]json.RawMessage, error) {
	packed, bases, err := readBodies(f.ctx, f.tx, r.Account, selectBodies, r.Account, r.ID, r.ID.Time())
	if err != nil {
		return nil, err
	}

	// Between the two statements, another server may have changed a base and packed its dependants again.
	bodies, err := r.ReadBodies(f.db.codec.reader(packed[r.ID], bases))
	if errors.Is(err, compress.ErrBase) {
		err = fmt.Errorf("%w: %w", connection.ErrConflict, err)
	}
	return bodies, err
}

// Pack packs a body; see archive.Loader.
func (f *folding) Pack(body []byte) []byte { return f.db.codec.Body(body) }

// OfTraces reads the ids of traces' records; see archive.Loader.
func (f *folding) OfTraces(account string, traces []uuid, limit int) (map[uuid][]uuid, error) {
	rows, _ := f.tx.Query(f.ctx, `
		SELECT wanted.trace, r.request_id
		FROM (SELECT DISTINCT unnest($2::uuid[])) AS wanted (trace)
		CROSS JOIN LATERAL (
			SELECT s.request_id FROM record_states s
			WHERE s.account_id = $1 AND s.trace = wanted.trace
			ORDER BY s.request_id LIMIT $3) AS r`, account, traces, limit)
	found := make(map[uuid][]uuid)
	var trace, id uuid
	_, err := pgx.ForEachRow(rows, []any{&trace, &id}, func() error {
		found[trace] = append(found[trace], id)
		return nil
	})

	return found, err
}

// weekOf returns the week that a record is in.
func weekOf(r *archive.Record) time.Time { return schema.WeekOf(r.ID.Time()) }

// weeks returns the weeks of the records, without duplicates.
func (f *folding) weeks() (weeks []time.Time) {
	for _, r := range f.Records {
		if week := weekOf(r); !slices.Contains(weeks, week) {
			weeks = append(weeks, week)
		}
	}
	return weeks
}

// accountNames returns the accounts in order, in which all writers lock them.
func (f *folding) accountNames() []string { return slices.Sorted(maps.Keys(f.Accounts)) }

// load locks the accounts, and reads what the group has to know. The locks are shared with
// other writers unless exclusive is set; they end with the transaction.
//
// load may run several times, once per attempt: it forgets what an earlier one has read.
func (f *folding) load(ctx context.Context, tx pgx.Tx, exclusive bool) error {
	f.ctx, f.tx = ctx, tx
	sortRecords(f.Records)
	// Of an earlier attempt nothing may stay: the records may have changed since.
	f.Forget()
	f.deletes = make(map[string]bool)

	lock := `SELECT pg_advisory_xact_lock_shared($1)`
	if exclusive {
		lock = `SELECT pg_advisory_xact_lock($1)`
	}

	// One round trip for all. The locks come first: under READ COMMITTED each statement sees
	// what was committed before it began, so what follows a lock sees every tombstone whose
	// writer held that lock before us.
	b := &pgx.Batch{}
	b.Queue(schema.Guard)
	names := f.accountNames()
	for _, name := range names {
		b.Queue(lock, accountLock(name))
	}
	for _, name := range names {
		f.queueAccount(b, name)
	}
	for _, name := range names {
		// Others that change them wait: the spans of a trace come in many transactions at a time.
		f.queueSets(b, name, slices.Collect(maps.Keys(f.keys[name])), "ORDER BY call FOR UPDATE")
	}
	for _, part := range parts(f.Records) {
		f.queueStates(b, part)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}

	if err := f.loadDeltas(ctx, tx, f.Records); err != nil {
		return err
	}

	return f.loadDeleted(ctx, tx)
}

// sortRecords puts records in the order in which all writers touch them, so that none deadlock.
func sortRecords(records []*archive.Record) {
	slices.SortFunc(records, func(a, b *archive.Record) int {
		return cmp.Or(strings.Compare(a.Account, b.Account), bytes.Compare(a.ID[:], b.ID[:]))
	})
}

// Load reads records; see archive.Loader.
func (f *folding) Load(records []*archive.Record) error {
	sortRecords(records)
	b := &pgx.Batch{}
	for _, part := range parts(records) {
		f.queueStates(b, part)
	}
	if err := sendBatch(f.ctx, f.tx, b); err != nil {
		return err
	}

	return f.loadDeltas(f.ctx, f.tx, records)
}

// Sets reads sets; see archive.Loader.
func (f *folding) Sets(account string, keys []uuid) error {
	b := &pgx.Batch{}
	f.queueSets(b, account, keys, "")

	return sendBatch(f.ctx, f.tx, b)
}

// queueSets reads sets, and locks those that exist if the statement ends so.
func (f *folding) queueSets(b *pgx.Batch, account string, keys []uuid, end string) {
	if len(keys) == 0 {
		return
	}

	for _, key := range keys {
		f.Accounts[account].AddSet(key, archive.Set{})
	}
	b.Queue(`
		SELECT call, revision, members FROM record_calls
		WHERE account_id = $1 AND call = ANY($2) AND ts = ANY($3) `+end,
		account, keys, timesOf(keys)).Query(func(rows pgx.Rows) error {
		var key uuid
		var revision int64
		var value []byte
		_, err := pgx.ForEachRow(rows, []any{&key, &revision, &value}, func() error {
			set := archive.DecodeSet(value)
			set.Revision = revision
			f.Accounts[account].AddSet(key, set)
			return nil
		})
		return err
	})
}

// loadDeltas reads the deltas of large states, which completes the states.
func (f *folding) loadDeltas(ctx context.Context, tx pgx.Tx, records []*archive.Record) error {
	b := &pgx.Batch{}
	for _, r := range records {
		f.db.codec.queueDeltas(b, r.Account, r.ID, &r.State)
	}

	// Deltas that do not fit their state mean that another server has changed the record since
	// its state was read. If they never fit, the record is damaged and the attempts run out.
	err := sendBatch(ctx, tx, b)
	if errors.Is(err, archive.ErrDelta) {
		return fmt.Errorf("%w: %w", connection.ErrConflict, err)
	}
	for _, r := range records {
		if err == nil {
			err = f.Loaded(r)
		}
	}

	return err
}

// loadDeleted reads which metadata values were deleted, of those in the group's events and
// in their records.
func (f *folding) loadDeleted(ctx context.Context, tx pgx.Tx) error {
	// A second round trip, which accounts that deleted nothing by metadata never make.
	b := &pgx.Batch{}
	for _, name := range f.accountNames() {
		if f.deletes[name] {
			f.queueDeleted(b, name)
		}
	}

	return sendBatch(ctx, tx, b)
}

func (f *folding) queueDeleted(b *pgx.Batch, name string) {
	var hashes [][]byte
	for h := range f.hashes[name] {
		hashes = append(hashes, bytes.Clone(h[:]))
	}
	for _, r := range f.Records {
		if r.Account != name {
			continue
		}
		// Also what the record no longer shows, because a deletion may be of that.
		for _, m := range r.State.Selectable() {
			h := rowcode.HashStored(m.Key, m.Value)
			hashes = append(hashes, h[:])
		}
	}

	b.Queue(`SELECT hash, before FROM deleted_values WHERE account_id = $1 AND hash = ANY($2)`, name, hashes).
		Query(func(rows pgx.Rows) error {
			deleted := make(map[[16]byte]time.Time)
			var hash []byte
			var before int64
			_, err := pgx.ForEachRow(rows, []any{&hash, &before}, func() error {
				deleted[[16]byte(hash)] = time.Unix(0, before)
				return nil
			})
			f.Accounts[name].Deleted = deleted
			return err
		})
}

// queueAccount reads the account's orphans, the tombstones of the group's records, and
// whether the account has deleted metadata values.
func (f *folding) queueAccount(b *pgx.Batch, name string) {
	orphans := &f.Accounts[name].Orphans
	b.Queue(`
		SELECT coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint
		FROM account_weeks WHERE account_id = $1`, name).
		QueryRow(func(row pgx.Row) error {
			return row.Scan(&orphans.Requests, &orphans.Events, &orphans.Bytes)
		})

	var ids []uuid
	for _, r := range f.Records {
		if r.Account == name {
			ids = append(ids, r.ID)
		}
	}
	b.Queue(`SELECT request_id FROM tombstones WHERE account_id = $1 AND request_id = ANY($2)`, name, ids).
		Query(func(rows pgx.Rows) error {
			var id uuid
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
				f.Record(name, id).Removed = true
				return nil
			})
			return err
		})

	// Most accounts never delete by metadata, so the values themselves are asked for only if
	// there are any (loadDeleted).
	if len(f.hashes[name]) > 0 {
		b.Queue(`SELECT EXISTS (SELECT 1 FROM deleted_values WHERE account_id = $1)`, name).
			QueryRow(func(row pgx.Row) error {
				var deletes bool
				err := row.Scan(&deletes)
				f.deletes[name] = deletes
				return err
			})
	}
}

// part is the records of one account and week. One statement can ask for all of them and
// still read a single partition.
type part struct {
	account string
	week    time.Time
	records []*archive.Record
}

// parts divides records, which must be sorted: an id begins with its time, so weeks are in order too.
func parts(records []*archive.Record) (parts []*part) {
	for _, r := range records {
		week, n := weekOf(r), len(parts)
		if n == 0 || parts[n-1].account != r.Account || !parts[n-1].week.Equal(week) {
			parts = append(parts, &part{account: r.Account, week: week})
		}
		last := parts[len(parts)-1]
		last.records = append(last.records, r)
	}

	return parts
}

// selectStates reads the states of records of a week.
const selectStates = `
	SELECT request_id, revision, state FROM record_states
	WHERE account_id = $1 AND request_id = ANY($2) AND ts >= $3 AND ts < $4`

// queueStates reads the states of a part's records.
func (f *folding) queueStates(b *pgx.Batch, p *part) {
	ids := make([]uuid, len(p.records))
	for i, r := range p.records {
		ids[i] = r.ID
	}

	// The bounds of ts let the planner keep to the partition of the week.
	from, to := schema.WeekEnds(p.week)
	b.Queue(selectStates, p.account, ids, from, to).Query(func(rows pgx.Rows) error {
		var id uuid
		var revision int64
		var packed []byte
		held := 0
		_, err := pgx.ForEachRow(rows, []any{&id, &revision, &packed}, func() (err error) {
			// Every id in the answer was asked for, so the record is in the group.
			r := f.Record(p.account, id)
			// It exists, whatever its tombstone says.
			r.Revision, r.Removed = revision, false
			r.State, err = f.db.codec.unpackState(packed, id)
			if err != nil {
				return err
			}
			// Not only at the end (Loaded): they fill the memory before that.
			if held += r.State.Weight(); held > f.db.heldBytesMax && f.Several() {
				return archive.ErrHeavy
			}
			return nil
		})
		return err
	})
}

// accountLock returns the advisory lock of an account's records. Writers hold it shared; who
// must keep writers out holds it exclusively.
func accountLock(account string) int64 {
	sum := sha256.Sum256([]byte("records of " + account))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
