package badgerdb

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// fullRow has something in every field, so that a field without a column is seen to be missing.
func fullRow(t *testing.T) wire.Row {
	t.Helper()
	var row wire.Row
	v := reflect.ValueOf(&row).Elem()
	for i := range v.NumField() {
		fillField(t, v.Type().Field(i).Name, v.Field(i), i+1)
	}
	row.RequestID = "0195529c-1c00-7000-8000-000000000001"
	row.ID = row.RequestID
	return row
}

func fillField(t *testing.T, name string, f reflect.Value, n int) {
	t.Helper()
	switch p := f.Addr().Interface().(type) {
	case *string:
		*p = name
	case **string:
		*p = &name
	case *int:
		*p = n
	case **int:
		*p = &n
	case **int64:
		v := int64(n)
		*p = &v
	case **float64:
		v := float64(n) / 8
		*p = &v
	case *bool:
		*p = true
	case *time.Time:
		*p = time.Unix(int64(n), 5).UTC()
	case **time.Time:
		v := time.Unix(int64(n), 7).UTC()
		*p = &v
	case *[]string:
		*p = []string{name, ""}
	case *[]wire.MetadataRow:
		*p = []wire.MetadataRow{{Key: "a", Value: name}, {Key: "b"}}
	case *[]wire.Score:
		*p = []wire.Score{{Name: name, Score: 100}, {Name: "z"}}
	default:
		t.Fatalf("the field %s has a type that this test does not fill", name)
	}
}

func emptyRow() wire.Row {
	return wire.Row{ID: "0195529c-1c00-7000-8000-000000000002", RequestID: "0195529c-1c00-7000-8000-000000000002",
		AcceptedAt: time.Unix(0, 0).UTC(), Tags: []string{}, Metadata: []wire.MetadataRow{}, Scores: []wire.Score{}}
}

// oddRow has what does not fit into whole numbers.
func oddRow(t *testing.T) wire.Row {
	row := fullRow(t)
	third, late := 1.0/3, time.Date(9999, 1, 1, 0, 0, 0, 1, time.UTC)
	row.RequestID = "0195529c-1c00-7000-8000-000000000003"
	row.ID, row.Price, row.Latency, row.StartTime, row.EndTime = row.RequestID, &third, &third, &late, &late
	row.AcceptedAt = time.Unix(-5, 0).UTC()
	return row
}

func TestARowComesBackAsItWas(t *testing.T) {
	for name, want := range map[string]wire.Row{"full": fullRow(t), "empty": emptyRow(), "odd": oddRow(t)} {
		got := wire.Row{ID: want.ID, RequestID: want.RequestID, AcceptedAt: want.AcceptedAt}
		if err := rowcode.Decode(rowcode.Encode(&want), rowcode.AllColumns, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the %s row (-want +got):\n%s", name, diff)
		}
	}
}

func TestABlockGivesItsRowsBack(t *testing.T) {
	db := openIn(t, t.TempDir())
	k, _ := keysOf("a")
	for name, want := range map[string][]wire.Row{
		"alike":     {fullRow(t), emptyRow()},
		"unlike":    {fullRow(t), emptyRow(), oddRow(t)},
		"only one":  {emptyRow()},
		"many keys": {withKeys(emptyRow(), 300), fullRow(t)},
	} {
		t.Run(name, func(t *testing.T) {
			rows := make([]placed, len(want))
			for i := range want {
				at, _ := placeOf(query.PositionOf(&want[i]))
				copy(rows[i].place[:], at)
				rows[i].row = want[i]
			}
			writes := db.codec.writeBlock(k, rows[0].place[:], rows)
			if err := db.exclusively(func(*badger.Txn) ([]write, error) { return writes, nil }); err != nil {
				t.Fatal(err)
			}
			txn := db.bdb.NewTransaction(false)
			defer txn.Discard()
			head, _, err := loadHead(txn, k, rows[0].place[:])
			if err != nil {
				t.Fatal(err)
			}
			b := block{txn: txn, codec: db.codec, keys: k}
			b.open(rows[0].place[:], head)
			for i := range want {
				got, err := b.row(i, rowcode.AllColumns)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want[i], rowcode.Clone(got)); diff != "" {
					t.Errorf("row %d (-want +got):\n%s", i, diff)
				}
			}
			removed := k.removeBlock(rows[0].place[:], &head)
			if len(removed) != len(writes) {
				t.Errorf("%d keys were written and %d are removed", len(writes), len(removed))
			}
			if err := db.exclusively(func(*badger.Txn) ([]write, error) { return removed, nil }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func withKeys(row wire.Row, n int) wire.Row {
	for i := range n {
		row.Metadata = append(row.Metadata, wire.MetadataRow{Key: string(rune('a' + i)), Value: "x"})
	}
	return row
}

// FuzzDecode reads bytes as everything that the list is made of: none may be a panic.
func FuzzDecode(f *testing.F) {
	row := emptyRow()
	f.Add(rowcode.Encode(&row))
	f.Add(encodeDictionary(3, func(i int, b []byte) []byte { return append(b, byte(i)) }))
	f.Add(encodeIntegers([]int64{1, 300, -5}, []bool{true, false, true}))
	f.Add(encodePlaces(make([][placeBytes]byte, 2)))
	head := blockHead{rows: 1, keys: []string{"a"}}
	f.Add(head.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		var row wire.Row
		_ = rowcode.Decode(b, rowcode.AllColumns, &row)
		_, _ = decodeHead(b)
		var c column
		if decodeColumn(b, &c) != nil {
			return
		}
		for i := range c.n {
			switch c.kind {
			case 'd':
				_, _ = c.entry(rowcode.ColumnScores, c.code(i))
			case 'i':
				c.number(i)
			case 'p':
				c.place(i)
			}
		}
	})
}

// Rows that are too heavy for one block are packed into several, and stay as they are.
func TestBlocksOfHeavyRowsCanBeHeld(t *testing.T) {
	db := openIn(t, t.TempDir())
	k, _ := keysOf("a")
	const bound = 64 << 10
	db.packing = packing{every: 1 << 20, newest: 2, step: 2, inBlock: 2, rows: 100, bytes: bound}

	apply := func(n int, kind wire.Kind, record int, body string) {
		t.Helper()
		e := archivetest.Event(t, n, kind, archivetest.ID(1000+record), body)
		if _, err := db.Apply(t.Context(), "a", []archive.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	pack := func() {
		t.Helper()
		if err := db.pack(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}

	const records = 40
	for i := range records {
		tags := strings.Repeat(`"`+strings.Repeat("x", 500)+`",`, 20+i) // 10 to 30 KB
		apply(i, wire.KindRequest, i, `{"function_name":"x.y","tags":[`+tags+`"y"]}`)
	}
	pack()
	for i := range records { // they stand alone again, each in its block's part
		apply(records+i, wire.KindScore, i, `{"score":7}`)
	}
	pack()

	heaviest, blocks := 0, 0
	if err := db.view(func(txn *badger.Txn) error {
		spans, err := db.spans(t.Context(), txn, k)
		for _, s := range spans[1:] {
			heaviest, blocks = max(heaviest, s.head.bytes), blocks+1
			if s.lone >= db.packing.inBlock {
				t.Errorf("%d rows stand alone in a block", s.lone)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if heaviest > bound+bound/2 || blocks < 10 {
		t.Errorf("of %d blocks the heaviest has %d bytes", blocks, heaviest)
	}
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Earlier versions kept long metadata values whole: in a column of their key's own, and in the one that the others share.
func TestLongValuesInABlockOfAnEarlierVersion(t *testing.T) {
	db := openIn(t, t.TempDir())
	k, _ := keysOf("a")
	long := strings.Repeat("long ", 1000) + "Ada"
	rows := make([]placed, 100)
	for i := range rows {
		at := query.Position{At: time.Unix(int64(1000-i), 0), RequestID: archivetest.ID(i)}
		place, _ := placeOf(at)
		copy(rows[i].place[:], place)
		rows[i].row = wire.Row{AcceptedAt: at.At, Metadata: []wire.MetadataRow{{Key: "own", Value: "x"}}}
	}
	rows[7].row.Metadata = []wire.MetadataRow{{Key: "other", Value: long}, {Key: "own", Value: long}}
	writes := db.codec.writeBlock(k, rows[0].place[:], rows)
	if err := db.exclusively(func(*badger.Txn) ([]write, error) { return writes, nil }); err != nil {
		t.Fatal(err)
	}

	var removed []write
	if err := db.view(func(txn *badger.Txn) error {
		head, _, err := loadHead(txn, k, rows[0].place[:])
		if err != nil {
			return err
		}
		b := block{txn: txn, codec: db.codec, keys: k}
		b.open(rows[0].place[:], head)
		c := checker{db: db, txn: txn}
		if err := c.summary(k, rows[0].place[:], head); err != nil {
			t.Error(err)
		}
		row, err := b.row(7, rowcode.AllColumns)
		if err != nil {
			return err
		}
		for _, m := range row.Metadata {
			if m.Value != rowcode.StoredValue(m.Key, long) {
				t.Errorf("%s is %.50q", m.Key, m.Value)
			}
		}

		removed = k.removeBlock(rows[0].place[:], &head)
		for operator, must := range map[string]bool{"is": true, "ends_with": false} {
			for _, key := range []string{"own", "other"} {
				f := archivetest.Condition("metadata", key, operator, long)
				q, err := query.Compile(wire.Search{FilterGroup: &f})
				if err != nil {
					return err
				}
				v, err := b.evaluate(q.Where)
				if err != nil {
					return err
				}
				if v.must.has(7) != must || !v.may.has(7) || v.may.has(8) {
					t.Errorf("%s %s: must %v, may %v", key, operator, v.must.has(7), v.may.has(7))
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
}
