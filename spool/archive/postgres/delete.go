package postgres

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// deleteStep is how many records one transaction deletes.
const deleteStep = 200

// Delete deletes records and leaves tombstones; see archive.Store. When the bytes leave the files is up to the database.
func (db *DB) Delete(ctx context.Context, account string, d wire.Deletion) (sum wire.Deleted, err error) {
	key, err := accountKey(account)
	if err != nil {
		return sum, err
	}
	if d.RequestID != "" {
		sum, err = db.deleteRecords(ctx, key, []string{d.RequestID}, true)
	} else {
		sum, err = db.deleteValue(ctx, account, key, d)
	}
	return sum, err
}

// valuesMax bounds the deleted metadata values of an account.
const valuesMax = 100_000

// forget makes the tombstone of a metadata value. When it returns, every write that did not see it is committed, and every later one sees it.
func (db *DB) forget(ctx context.Context, key string, d wire.Deletion) error {
	hash := archive.HashValue(d.Key, d.Value)
	return db.change(ctx, true, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, accountLock(key)); err != nil {
			return err
		}
		others := 0
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM deleted_values WHERE account_id = $1 AND hash <> $2`, key, hash[:]).Scan(&others); err != nil {
			return err
		}
		if others >= valuesMax {
			return wire.Errorf(wire.CodeTooLarge, "This account has deleted by %d metadata values; no more can be remembered. Delete by request_id.", valuesMax)
		}
		_, err := tx.Exec(ctx, `INSERT INTO deleted_values AS v (account_id, hash, before) VALUES ($1, $2, $3)
			ON CONFLICT (account_id, hash) DO UPDATE SET before = greatest(v.before, excluded.before)`, key, hash[:], nanosOf(d.Before))
		return err
	})
}

func (db *DB) deleteValue(ctx context.Context, account, key string, d wire.Deletion) (sum wire.Deleted, err error) {
	// The tombstone comes first, so that nothing slips in behind the walk.
	if err := db.forget(ctx, key, d); err != nil {
		return sum, err
	}
	value, err := json.Marshal(d.Value)
	if err != nil {
		return sum, err
	}
	before, err := json.Marshal(d.Before)
	if err != nil {
		return sum, err
	}
	q, err := archive.Compile(wire.Search{FilterGroup: &wire.Filter{Filters: []wire.Filter{
		{Field: "metadata", NestedKey: d.Key, Operator: "is", Value: value},
		{Field: "accepted_at", Operator: "lte", Value: before},
	}}})
	if err != nil {
		return sum, err
	}
	sum, err = db.deleteOrphans(ctx, key, func(s *archive.State) bool {
		v, ok := s.Metadata[d.Key]
		return ok && v.Value == d.Value && !v.At.After(d.Before)
	}, true)
	for err == nil {
		var ids []string
		if ids, err = db.firstIDs(ctx, account, q, deleteStep); err != nil {
			break
		}
		var step wire.Deleted
		step, err = db.deleteRecords(ctx, key, ids, true)
		sum.Records, sum.Events = sum.Records+step.Records, sum.Events+step.Events
		if len(ids) < deleteStep {
			break
		}
	}
	return sum, err
}

// firstIDs are those of the first records that a query finds.
func (db *DB) firstIDs(ctx context.Context, account string, q archive.Query, limit int) (ids []string, err error) {
	_, err = db.Scan(ctx, account, q, placeColumns, func(row *wire.Row) (bool, error) {
		ids = append(ids, row.RequestID)
		return len(ids) < limit, nil
	})
	return ids, err
}

// deleteOrphans deletes records whose request has not come, as which says.
func (db *DB) deleteOrphans(ctx context.Context, key string, which func(*archive.State) bool, tombstones bool) (sum wire.Deleted, err error) {
	var ids []string
	err = db.view(ctx, func(tx pgx.Tx) error {
		ids = nil
		var tally archive.Orphans
		weeks, err := orphanWeeks(ctx, tx, key, &tally)
		for _, week := range weeks {
			if err == nil {
				err = db.orphansOf(ctx, tx, key, week, uuid{}, archive.OrphanEventsMax, func(s *archive.State) {
					if len(s.History) > 0 && which(s) {
						ids = append(ids, s.RequestID)
					}
				})
			}
		}
		return err
	})
	for step := range slices.Chunk(ids, deleteStep) {
		if err != nil {
			break
		}
		var part wire.Deleted
		part, err = db.deleteRecords(ctx, key, step, tombstones)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
	}
	return sum, err
}

// deleteRecords deletes records by their ids in one transaction. With tombstones they are kept out for ever: nobody writes to the
// account meanwhile.
func (db *DB) deleteRecords(ctx context.Context, key string, ids []string, tombstones bool) (sum wire.Deleted, err error) {
	f := db.newFolding(0)
	for _, id := range ids {
		if _, err := f.need(key, id); err != nil {
			return sum, err
		}
	}
	if len(ids) == 0 {
		return sum, nil
	}
	err = db.change(ctx, true, func(tx pgx.Tx) error {
		sum = wire.Deleted{}
		if err := f.load(ctx, tx, true); err != nil {
			return err
		}
		for _, r := range f.order {
			if n := len(r.state.History); n > 0 {
				sum.Records++
				sum.Events += int64(n)
			} else if !tombstones {
				continue // somebody else has deleted it
			}
			f.remove(r, tombstones)
		}
		return f.write(ctx, tx)
	})
	return sum, err
}
