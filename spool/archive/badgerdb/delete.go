package badgerdb

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// deleteStep is how many records one transaction deletes.
const deleteStep = 100

// Delete deletes records and leaves tombstones; see archive.Store.
func (db *DB) Delete(ctx context.Context, account string, d wire.Deletion) (wire.Deleted, error) {
	k, err := keysOf(account)
	if err != nil {
		return wire.Deleted{}, err
	}
	if d.RequestID != "" {
		return db.deleteRecords(ctx, k, []string{d.RequestID}, true)
	}
	// The tombstone comes first, so that nothing slips in behind the walk.
	if err := db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) {
		return []write{{k.selector(d.Key, d.Value), appendTime(nil, d.Before)}}, nil
	}); err != nil {
		return wire.Deleted{}, err
	}
	value, err := json.Marshal(d.Value)
	if err != nil {
		return wire.Deleted{}, err
	}
	before, err := json.Marshal(d.Before)
	if err != nil {
		return wire.Deleted{}, err
	}
	q, err := archive.Compile(wire.Search{FilterGroup: &wire.Filter{Filters: []wire.Filter{
		{Field: "metadata", NestedKey: d.Key, Operator: "is", Value: value},
		{Field: "accepted_at", Operator: "lte", Value: before},
	}}})
	if err != nil {
		return wire.Deleted{}, err
	}
	var sum wire.Deleted
	for {
		var ids []string
		var last archive.Position
		if _, err := db.Scan(ctx, account, q, archive.ColumnsOf(archive.ColumnID, archive.ColumnTime), func(row *wire.Row) (bool, error) {
			last = archive.PositionOf(row)
			ids = append(ids, last.RequestID)
			return len(ids) < deleteStep, nil
		}); err != nil {
			return sum, err
		}
		part, err := db.deleteRecords(ctx, k, ids, true)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
		if err != nil || len(ids) < deleteStep {
			return sum, err
		}
		q.After = &last
	}
}

// deleteRecords deletes records by their ids in one transaction. With tombstones they are kept out for ever.
func (db *DB) deleteRecords(ctx context.Context, k keys, ids []string, tombstones bool) (sum wire.Deleted, err error) {
	err = db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		sum = wire.Deleted{}
		f := db.newFolding(txn, k)
		for _, id := range ids {
			r, err := f.record(id)
			if err != nil {
				return nil, err
			}
			if len(r.state.History) > 0 {
				sum.Records++
				sum.Events += int64(len(r.state.History))
			}
			f.remove(r, tombstones, db.now())
		}
		err := f.finish()
		return f.writes, err
	})
	return sum, err
}

// remove takes a record out of the database; finish tells its row and the count.
func (f *folding) remove(r *record, tombstone bool, now time.Time) {
	for _, h := range r.state.History {
		if event, ok := parseUUID(h.ID); ok && h.Hash != "" {
			f.writes = append(f.writes, write{key: f.keys.body(r.id, event)})
		}
	}
	if len(r.state.History) > 0 {
		f.writes = append(f.writes, write{key: f.keys.record(r.id)})
	}
	if tombstone {
		f.writes = append(f.writes, write{f.keys.tombstone(r.id), appendTime(nil, now)})
	}
	r.removed = true
}

// tombstone is the key that keeps a deleted record out.
func (k keys) tombstone(id uuid) []byte { return append(k.table(tableTombstone), id[:]...) }

// selector is the key that keeps out what has a metadata value. It does not tell the value: somebody asked to be forgotten.
func (k keys) selector(name, value string) []byte {
	hash := selectorHash(name, value)
	return append(k.table(tableSelector), hash[:]...)
}

func selectorHash(name, value string) [16]byte {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(name))))
	h.Write([]byte(name))
	h.Write([]byte(value))
	return [16]byte(h.Sum(nil))
}

// appendTime appends 12 bytes: seconds and nanoseconds.
func appendTime(b []byte, at time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(at.Nanosecond()))
}

func readTime(b []byte) (time.Time, bool) {
	if len(b) < 12 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint32(b[8:]))).UTC(), true
}
