package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/repack"
)

// keptBodies are bodies as they are stored, by record and event.
type keptBodies map[uuid]map[uuid][]byte

// readKept reads the rows of such a statement as selectBodies.
func readKept(rows pgx.Rows, err error) (keptBodies, error) {
	if err != nil {
		return nil, err
	}

	kept := make(keptBodies)
	var id, event uuid
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &event, &body}, func() error {
		kept.put(id, event, body)
		// The next row must not overwrite it.
		body = nil
		return nil
	})

	return kept, err
}

func (k keptBodies) put(id, event uuid, body []byte) {
	if k[id] == nil {
		k[id] = make(map[uuid][]byte)
	}
	k[id][event] = body
}

// of returns what a body is packed against, nil if it was not read; see compress.Codec.
func (k keptBodies) of(b compress.Base) ([]byte, error) { return k[b.Request][b.Event], nil }

// bases returns the records of what bodies are packed against.
func (k keptBodies) bases() (ids []uuid) {
	for _, events := range k {
		for _, packed := range events {
			base, ok := compress.BaseOf(packed)
			if ok && !slices.Contains(ids, base.Request) {
				ids = append(ids, base.Request)
			}
		}
	}
	return ids
}

// readBases reads what bodies of an account are packed against. They are not among the bodies
// themselves. It must be of the same moment as these: in a transaction that sees one.
func (k keptBodies) readBases(ctx context.Context, tx pgx.Tx, account string) (bases keptBodies, err error) {
	ids := k.bases()
	if len(ids) == 0 {
		return nil, nil
	}

	// With the other bodies of these records, which mostly have none.
	return readKept(tx.Query(ctx, selectBodiesOfMany, account, ids, timesOf(ids)))
}

// timesOf returns the times in ids, which name their partitions.
func timesOf(ids []uuid) []time.Time {
	times := make([]time.Time, len(ids))
	for i, id := range ids {
		times[i] = id.Time()
	}
	slices.SortFunc(times, time.Time.Compare)

	return slices.CompactFunc(times, time.Time.Equal)
}

// readBodies reads bodies by a statement like selectBodies, and what they are packed against.
func readBodies(
	ctx context.Context, tx pgx.Tx, account, sql string, args ...any,
) (bodies, bases keptBodies, err error) {
	bodies, err = readKept(tx.Query(ctx, sql, args...))
	if err == nil {
		bases, err = bodies.readBases(ctx, tx, account)
	}

	return bodies, bases, err
}

// forUpdate locks rows of one account, so of one node of a Citus, in an order that all keep to.
const forUpdate = ` ORDER BY request_id, event_id FOR UPDATE`

// lockedBodies reads all bodies of some records of an account, which stay as they are until the
// transaction ends.
func lockedBodies(ctx context.Context, tx pgx.Tx, account string, ids []uuid) ([]repack.Body, error) {
	rows, _ := tx.Query(ctx, `
		SELECT request_id, event_id, body, dependants FROM record_bodies
		WHERE account_id = $1 AND request_id = ANY($2) AND ts = ANY($3)`+forUpdate, account, ids, timesOf(ids))

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b repack.Body, err error) {
		err = row.Scan(&b.Request, &b.Event, &b.Value, &b.Dependants)
		return b, err
	})
}

// storeBodies stores bodies of an account that were packed in another way.
func storeBodies(ctx context.Context, tx pgx.Tx, account string, bodies []repack.Body) error {
	var rows columnArrays
	var ids []uuid
	for _, b := range bodies {
		ids = append(ids, b.Request)
		rows.add(b.Request, b.Event, b.Value, []byte(b.Dependants))
	}

	// A base only gets its list: its body is not written again.
	b := &pgx.Batch{}
	rows.queue(b, `
		UPDATE record_bodies b SET body = coalesce(u.body, b.body), dependants = coalesce(u.dependants, b.dependants)
		FROM unnest($3::uuid[], $4::uuid[], $5::bytea[], $6::bytea[]) AS u (id, event, body, dependants)
		WHERE b.account_id = $1 AND b.ts = ANY($2)
			AND b.request_id = ANY($3) AND b.request_id = u.id AND b.event_id = u.event`, account, timesOf(ids))

	return sendBatch(ctx, tx, b)
}

// Repack packs bodies against each other; see repack.Store. A change or a deletion of one of them waits for
// it.
func (db *DB) Repack(
	ctx context.Context, account string, ids []uuid, pack func([]repack.Body) ([]repack.Body, error),
) error {
	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		bodies, err := lockedBodies(ctx, tx, account, ids)
		if err != nil {
			return err
		}
		changed, err := pack(bodies)
		if err != nil {
			return err
		}
		return storeBodies(ctx, tx, account, changed)
	})
}

// bodyPlace is where a body is stored.
type bodyPlace struct{ request, event uuid }

// free packs by itself each body that is packed against one which the changes of a part delete or replace.
// If they write such a body, too, that comes after it.
func (f *folding) free(ctx context.Context, tx pgx.Tx, c *partChanges) error {
	if len(c.going) == 0 {
		return nil
	}
	var ids []uuid
	going := make(map[bodyPlace]bool)
	for _, place := range c.going {
		ids = append(ids, place.request)
		going[place] = true
	}

	// All of them are locked, those without dependants as well: they may get some until we read on.
	type list struct {
		bodyPlace
		dependants repack.Dependants
	}
	rows, _ := tx.Query(ctx, `
		SELECT request_id, event_id, dependants FROM record_bodies
		WHERE account_id = $1 AND request_id = ANY($2) AND ts = ANY($3)`+forUpdate, c.account, ids, timesOf(ids))
	lists, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l list, err error) {
		err = row.Scan(&l.request, &l.event, &l.dependants)
		return l, err
	})

	for _, l := range lists {
		if err == nil && len(l.dependants) > 0 && going[l.bodyPlace] {
			err = f.freeOf(ctx, tx, c.account, l.bodyPlace, l.dependants)
		}
	}
	return err
}

// freeOf is free for one base.
func (f *folding) freeOf(
	ctx context.Context, tx pgx.Tx, account string, base bodyPlace, dependants repack.Dependants,
) error {
	ids := []uuid{base.request}
	err := dependants.All(func(request, _ archive.UUID) error {
		if r := f.Record(account, request); r == nil || !r.Removed {
			ids = append(ids, request)
		}
		return nil
	})
	if err != nil {
		return err
	}
	bodies, err := lockedBodies(ctx, tx, account, ids)
	if err != nil {
		return err
	}

	stored := make(keptBodies)
	for _, b := range bodies {
		stored.put(b.Request, b.Event, b.Value)
	}
	var freed []repack.Body
	of := repack.Body{
		Request: base.request, Event: base.event, Value: stored[base.request][base.event], Dependants: dependants,
	}
	err = repack.Free(f.db.codec.Codec, of, func(request, event archive.UUID) ([]byte, error) {
		return stored[request][event], nil
	}, func(b repack.Body) { freed = append(freed, b) })
	if err != nil {
		return err
	}

	return storeBodies(ctx, tx, account, freed)
}
