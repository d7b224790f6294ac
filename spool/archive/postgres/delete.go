package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
)

// deleteStep is how many records one transaction deletes.
const deleteStep = 200

// Delete deletes records and leaves tombstones; see archive.Store. When the bytes leave the
// disk is up to the database (VACUUM).
func (db *DB) Delete(ctx context.Context, account string, d wire.Deletion) (sum wire.Deleted, err error) {
	key, err := accountKey(account)
	if err != nil {
		return sum, err
	}

	if d.RequestID != "" {
		return db.deleteRecords(ctx, key, []string{d.RequestID}, nil, true)
	}
	return db.deleteValue(ctx, key, d)
}

// valuesMax bounds the deleted metadata values of an account.
const valuesMax = 100_000

// putDeletedValue stores the tombstone of a metadata value. When it returns, every write that
// did not see the tombstone is committed, and every later one sees it.
func (db *DB) putDeletedValue(ctx context.Context, key string, d wire.Deletion) error {
	hash := rowcode.HashValue(d.Key, d.Value)

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		// The account's lock, exclusively: it waits for all writers that have begun.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, accountLock(key)); err != nil {
			return err
		}

		// Without this one, which may be deleted again however many there are.
		others := 0
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM deleted_values WHERE account_id = $1 AND hash <> $2`,
			key, hash[:]).Scan(&others); err != nil {
			return err
		}
		if others >= valuesMax {
			return wire.Errorf(wire.CodeTooLarge, "This account has deleted requests by %d metadata values, "+
				"which is the limit. Delete by request_id instead.", valuesMax)
		}

		_, err := tx.Exec(ctx, `
			INSERT INTO deleted_values AS v (account_id, hash, before) VALUES ($1, $2, $3)
			ON CONFLICT (account_id, hash) DO UPDATE SET before = greatest(v.before, excluded.before)`,
			key, hash[:], nanosOf(d.Before))
		return err
	})
}

// deleteValue deletes the records that have a metadata value.
func (db *DB) deleteValue(ctx context.Context, key string, d wire.Deletion) (sum wire.Deleted, err error) {
	// The tombstone comes first: a record that arrives behind the walk is removed by its writer.
	if err := db.putDeletedValue(ctx, key, d); err != nil {
		return sum, err
	}

	match := func(s *archive.State) bool { return s.Deleted(archive.SelectorOf(d)) }
	sum, err = db.deleteOrphans(ctx, key, match, true)

	stored := rowcode.StoredValue(d.Key, d.Value)
	terms := []int64{
		term(key, hiddenKeys, d.Key, ""),
		term(key, rowcode.ColumnMetadata, d.Key, stored),
		term(key, hiddenMetadata, d.Key, stored),
	}

	// Behind the last place, not from the start: some of what was found may have to stay.
	after := place{at: nanosMost}
	for err == nil {
		var ids []string
		if ids, after, err = db.termIDs(ctx, key, terms, after); err != nil {
			break
		}
		var step wire.Deleted
		step, err = db.deleteRecords(ctx, key, ids, match, true)
		sum.Records, sum.Events = sum.Records+step.Records, sum.Events+step.Events
		if len(ids) < deleteStep {
			break
		}
	}
	if err != nil {
		return sum, err
	}

	// Last, as nothing finds spans by a value: all with metadata are looked at, and if that
	// takes too long, the requests are gone.
	spans, err := db.deleteSpans(ctx, key, match)
	sum.Records, sum.Events = sum.Records+spans.Records, sum.Events+spans.Events

	return sum, err
}

// termIDs returns the ids of the next records behind a place that have one of the terms,
// newest first, and the place of the last of them.
func (db *DB) termIDs(
	ctx context.Context, key string, terms []int64, after place,
) (ids []string, last place, err error) {
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		ids, last = nil, after
		// Over all partitions: the terms' indexes find few rows in each.
		rows, err := tx.Query(ctx, `
			SELECT at, request_id FROM records
			WHERE account_id = $1 AND terms && $2::bigint[] AND (at, request_id) < ($3, $4)
			ORDER BY at DESC, request_id DESC LIMIT $5`,
			key, terms, after.at, after.id, deleteStep)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&last.at, &last.id}, func() error {
			ids = append(ids, last.id.String())
			return nil
		})
		return err
	})

	return ids, last, err
}

// deleteOrphans deletes the records that match, of those whose request has not arrived.
func (db *DB) deleteOrphans(
	ctx context.Context, key string, match func(*archive.State) bool, tombstones bool,
) (sum wire.Deleted, err error) {
	var ids []string
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		ids = nil
		var tally archive.Orphans
		weeks, err := orphanWeeks(ctx, tx, key, &tally)
		for _, week := range weeks {
			if err != nil {
				break
			}
			err = db.orphansOf(ctx, tx, key, week, uuid{}, archive.OrphanEventsMax, func(s *archive.State) bool {
				if len(s.History) > 0 && match(s) {
					ids = append(ids, s.RequestID)
				}
				return true
			})
		}
		return err
	})

	// Outside the read, so that no transaction holds a snapshot while others are committed.
	for step := range slices.Chunk(ids, deleteStep) {
		if err != nil {
			break
		}
		var part wire.Deleted
		part, err = db.deleteRecords(ctx, key, step, match, tombstones)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
	}

	return sum, err
}

// deleteRecords deletes the records with these ids that match; a nil match matches all. With
// tombstones they can never come back.
func (db *DB) deleteRecords(
	ctx context.Context, key string, ids []string, match func(*archive.State) bool, tombstones bool,
) (sum wire.Deleted, err error) {
	err = archive.Apart(ids, func(part []string) error {
		deleted, err := db.deleteTogether(ctx, key, part, match, tombstones)
		sum.Records, sum.Events = sum.Records+deleted.Records, sum.Events+deleted.Events
		return err
	})

	return sum, err
}

// deleteTogether is deleteRecords in one transaction. It holds the account's lock
// exclusively, so no event can be folded beside a tombstone that its writer did not see.
func (db *DB) deleteTogether(
	ctx context.Context, key string, ids []string, match func(*archive.State) bool, tombstones bool,
) (sum wire.Deleted, err error) {
	f := db.newFolding(0)
	for _, id := range ids {
		if _, err := f.addRecord(key, id); err != nil {
			return sum, err
		}
	}
	if len(ids) == 0 {
		return sum, nil
	}

	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		sum = wire.Deleted{}
		if err := f.load(ctx, tx, true); err != nil {
			return err
		}

		for _, r := range f.order {
			// It may have changed since it was found.
			if match != nil && (len(r.state.History) == 0 || !match(&r.state.State)) {
				continue
			}

			switch n := len(r.state.History); {
			case n > 0:
				sum.Records++
				sum.Events += int64(n)
			case !tombstones || r.removed:
				continue // already deleted
			default:
				if err := db.mayRememberUnseen(ctx, tx, key); err != nil {
					return err
				}
			}
			f.remove(r, tombstones)
		}

		return f.write(ctx, tx)
	})
	if err != nil {
		return wire.Deleted{}, err
	}

	return sum, nil
}

// mayRememberUnseen rejects one more deletion of a record that does not exist if the account
// has too many. The account's lock must be held exclusively.
func (db *DB) mayRememberUnseen(ctx context.Context, tx pgx.Tx, key string) error {
	// Anybody with a key may invent ids, and each would leave a row for ever.
	unseen := 0
	err := tx.QueryRow(ctx, `SELECT count(*) FROM tombstones WHERE account_id = $1 AND unseen`, key).Scan(&unseen)
	if err == nil && unseen >= db.unseenMax {
		err = archive.ErrUnseen(db.unseenMax)
	}

	return err
}
