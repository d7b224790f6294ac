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

// Delete deletes records and leaves tombstones; see archive.Store. When the bytes leave the files is up to the database.
func (db *DB) Delete(ctx context.Context, account string, d wire.Deletion) (sum wire.Deleted, err error) {
	key, err := accountKey(account)
	if err != nil {
		return sum, err
	}
	if d.RequestID != "" {
		sum, err = db.deleteRecords(ctx, key, []string{d.RequestID}, nil, true)
	} else {
		sum, err = db.deleteValue(ctx, account, key, d)
	}
	return sum, err
}

// valuesMax bounds the deleted metadata values of an account.
const valuesMax = 100_000

// forget makes the tombstone of a metadata value. When it returns, every write that did not see it is committed, and every later one sees it.
func (db *DB) putDeletedValue(ctx context.Context, key string, d wire.Deletion) error {
	hash := rowcode.HashValue(d.Key, d.Value)
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
	if err := db.putDeletedValue(ctx, key, d); err != nil {
		return sum, err
	}
	which := func(s *archive.State) bool { return s.Deleted(archive.SelectorOf(d)) }
	sum, err = db.deleteOrphans(ctx, key, which, true)
	var terms []int64
	for _, value := range []string{d.Value, rowcode.StoredValue(d.Key, d.Value)} { // earlier versions stored long ones whole
		terms = append(terms, term(key, rowcode.ColumnMetadata, d.Key, value), term(key, hiddenMetadata, d.Key, value))
	}
	after := place{at: nanosMost}
	for err == nil {
		var ids []string
		if ids, after, err = db.termIDs(ctx, key, terms, after); err != nil {
			break
		}
		var step wire.Deleted
		step, err = db.deleteRecords(ctx, key, ids, which, true)
		sum.Records, sum.Events = sum.Records+step.Records, sum.Events+step.Events
		if len(ids) < deleteStep {
			break
		}
	}
	return sum, err
}

// termIDs are the ids of the next records behind a place that have one of the terms, newest first, and where the last of them is.
func (db *DB) termIDs(ctx context.Context, key string, terms []int64, after place) (ids []string, last place, err error) {
	err = db.view(ctx, func(tx pgx.Tx) error {
		ids, last = nil, after
		rows, err := tx.Query(ctx, `SELECT at, request_id FROM records WHERE account_id = $1 AND terms && $2::bigint[] AND (at, request_id) < ($3, $4)
			ORDER BY at DESC, request_id DESC LIMIT $5`, key, terms, after.at, after.id, deleteStep)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&last.at, &last.id}, func() error { ids = append(ids, last.id.String()); return nil })
		return err
	})
	return ids, last, err
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
				err = db.orphansOf(ctx, tx, key, week, uuid{}, archive.OrphanEventsMax, func(s *archive.State) bool {
					if len(s.History) > 0 && which(s) {
						ids = append(ids, s.RequestID)
					}
					return true
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
		part, err = db.deleteRecords(ctx, key, step, which, tombstones)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
	}
	return sum, err
}

// deleteRecords deletes records by their ids, those of which says that it shall, or all if it is nil. With tombstones they
// are kept out for ever.
func (db *DB) deleteRecords(ctx context.Context, key string, ids []string, which func(*archive.State) bool, tombstones bool) (sum wire.Deleted, err error) {
	err = archive.Apart(ids, func(part []string) error {
		deleted, err := db.deleteTogether(ctx, key, part, which, tombstones)
		sum.Records, sum.Events = sum.Records+deleted.Records, sum.Events+deleted.Events
		return err
	})
	return sum, err
}

// deleteTogether is deleteRecords in one transaction: nobody writes to the account meanwhile.
func (db *DB) deleteTogether(
	ctx context.Context, key string, ids []string, which func(*archive.State) bool, tombstones bool,
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
	err = db.change(ctx, true, func(tx pgx.Tx) error {
		sum = wire.Deleted{}
		if err := f.load(ctx, tx, true); err != nil {
			return err
		}
		for _, r := range f.order {
			if which != nil && (len(r.state.History) == 0 || !which(&r.state.State)) {
				continue // it has changed since it was found
			}
			switch n := len(r.state.History); {
			case n > 0:
				sum.Records++
				sum.Events += int64(n)
			case !tombstones || r.removed:
				continue // somebody else has deleted it
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

// mayRememberUnseen refuses one more deletion of a record that is not there, if the account has too many. The account is
// locked.
func (db *DB) mayRememberUnseen(ctx context.Context, tx pgx.Tx, key string) error {
	unseen := 0
	err := tx.QueryRow(ctx, `SELECT count(*) FROM tombstones WHERE account_id = $1 AND unseen`, key).Scan(&unseen)
	if err == nil && unseen >= db.unseenMax {
		err = archive.ErrUnseen(db.unseenMax)
	}

	return err
}
