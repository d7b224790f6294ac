package badgerdb

import (
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/badgerdb/blocks"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Earlier versions stored long metadata values in full, both in a key's own column and in
// the column that the other keys share.
func TestLongValuesInABlockOfAnEarlierVersion(t *testing.T) {
	db := openIn(t, t.TempDir())
	k, _ := keysOf("a")
	long := strings.Repeat("long ", 1000) + "Ada"

	rows := make([]blocks.Placed, 100)
	for i := range rows {
		at := query.Position{At: time.Unix(int64(1000-i), 0), RequestID: archivetest.ID(i)}
		place, _ := placeOf(at)
		copy(rows[i].Place[:], place)
		rows[i].Row = wire.Row{
			ListTime:   at.At,
			AcceptedAt: at.At,
			Metadata:   []wire.MetadataRow{{Key: "own", Value: "x"}},
		}
	}
	rows[7].Row.Metadata = []wire.MetadataRow{{Key: "other", Value: long}, {Key: "own", Value: long}}

	writes := db.codec.writeBlock(k, rows[0].Place[:], rows)
	if err := db.exclusively(func(*badger.Txn) ([]write, error) { return writes, nil }); err != nil {
		t.Fatal(err)
	}

	var removed []write
	if err := db.view(func(txn *badger.Txn) error {
		head, _, err := loadHead(txn, k, rows[0].Place[:])
		if err != nil {
			return err
		}
		b := block{txn: txn, codec: db.codec, keys: k}
		b.open(rows[0].Place[:], head)

		c := checker{db: db, txn: txn}
		if err := c.summary(k, rows[0].Place[:], head); err != nil {
			t.Error(err)
		}

		row, err := b.Row(7, rowcode.AllColumns)
		if err != nil {
			return err
		}
		for _, m := range row.Metadata {
			if m.Value != rowcode.StoredValue(m.Key, long) {
				t.Errorf("%s is %.50q", m.Key, m.Value)
			}
		}

		removed = k.removeBlock(rows[0].Place[:], &head)
		for operator, must := range map[string]bool{"is": true, "ends_with": false} {
			for _, key := range []string{"own", "other"} {
				f := archivetest.Condition("metadata", key, operator, long)
				q, err := query.Compile(wire.Search{FilterGroup: &f})
				if err != nil {
					return err
				}
				v, err := b.Evaluate(&q)
				if err != nil {
					return err
				}
				if v.Must.Has(7) != must || !v.May.Has(7) || v.May.Has(8) {
					t.Errorf("%s %s: must %v, may %v", key, operator, v.Must.Has(7), v.May.Has(7))
				}
			}
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if err := db.exclusively(func(*badger.Txn) ([]write, error) { return removed, nil }); err != nil {
		t.Fatal(err)
	}

	left := 0
	if err := db.view(func(txn *badger.Txn) error {
		for _, table := range []byte{tableBlock, tableColumn, tableTime} {
			if err := db.each(t.Context(), txn, k.table(table), nil, func(_, _ []byte) (bool, error) {
				left++
				return true, nil
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil || left > 0 {
		t.Errorf("%d keys of the block are left (%v)", left, err)
	}
}
