package blocks

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"promptspool/api/wire"
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
	// These are in the record's state.
	row.InputExcerpt, row.OutputExcerpt = "", ""
	row.SessionID, row.UserID, row.Environment = "", "", "" // metadata has them
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
		*p = []wire.Score{wire.IntegerScore(name, 100), wire.IntegerScore("z", 0)}
	case **wire.Snippet: // made for an answer, not stored
	default:
		t.Fatalf("the field %s has a type that this test does not fill", name)
	}
}

func emptyRow() wire.Row {
	return wire.Row{
		ID:         "0195529c-1c00-7000-8000-000000000002",
		RequestID:  "0195529c-1c00-7000-8000-000000000002",
		ListTime:   time.Unix(0, 0).UTC(),
		AcceptedAt: time.Unix(0, 0).UTC(),
		Tags:       []string{},
		Metadata:   []wire.MetadataRow{},
		Scores:     []wire.Score{},
	}
}

// oddRow has what does not fit into whole numbers.
func oddRow(t *testing.T) wire.Row {
	row := fullRow(t)
	third, late := 1.0/3, time.Date(9999, 1, 1, 0, 0, 0, 1, time.UTC)
	row.RequestID = "0195529c-1c00-7000-8000-000000000003"
	row.ID, row.Price, row.Latency, row.StartTime, row.EndTime = row.RequestID, &third, &third, &late, &late
	row.ListTime, row.AcceptedAt = time.Unix(-5, 0).UTC(), late
	return row
}

func TestARowComesBackAsItWas(t *testing.T) {
	for name, want := range map[string]wire.Row{"full": fullRow(t), "empty": emptyRow(), "odd": oddRow(t)} {
		got := wire.Row{ID: want.ID, RequestID: want.RequestID, ListTime: want.ListTime}
		if err := rowcode.Decode(rowcode.Encode(&want), rowcode.AllColumns, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the %s row (-want +got):\n%s", name, diff)
		}
	}
}

// memory is a store that has one block.
type memory map[Part][]byte

func (m memory) Read(_ []byte, part Part, buffer []byte) ([]byte, error) {
	return append(buffer[:0], m[part]...), nil
}

func (m memory) Damaged(_ []byte, part Part, cause error) error {
	return fmt.Errorf("part %v: %w", part, cause)
}

// stored encodes rows and opens the block that they make.
func stored(t *testing.T, rows []wire.Row) (b *Block, kept memory) {
	t.Helper()
	placed := make([]Placed, len(rows))
	for i := range rows {
		id, err := uuid.Parse(rows[i].RequestID)
		if err != nil {
			t.Fatal(err)
		}
		placed[i] = Placed{Place(EncodePlace(rows[i].ListTime, id)), rows[i]}
	}

	kept = memory{}
	head := HeadOf(placed)
	Encode(&head, placed, func(part Part, plain []byte) {
		if _, twice := kept[part]; twice {
			t.Errorf("part %v comes twice", part)
		}
		kept[part] = plain
	})
	head, err := DecodeHead(head.Encode())
	if err != nil {
		t.Fatal(err)
	}

	b = &Block{}
	b.Open(kept, placed[0].Place[:], head)
	return b, kept
}

func TestABlockGivesItsRowsBack(t *testing.T) {
	for name, want := range map[string][]wire.Row{
		"alike":     {fullRow(t), emptyRow()},
		"unlike":    {fullRow(t), emptyRow(), oddRow(t)},
		"only one":  {emptyRow()},
		"many keys": {withKeys(emptyRow(), 300), fullRow(t)},
	} {
		t.Run(name, func(t *testing.T) {
			b, kept := stored(t, want)
			for i := range want {
				got, err := b.Row(i, rowcode.AllColumns)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want[i], rowcode.Clone(got)); diff != "" {
					t.Errorf("row %d (-want +got):\n%s", i, diff)
				}
			}

			// By these names the block is removed.
			parts := b.Head.Parts()
			names := map[string]bool{}
			for _, part := range parts {
				if names[string(part.AppendTo(nil))] = true; kept[part] == nil {
					t.Errorf("part %v was not written", part)
				}
			}
			if len(parts) != len(kept) || len(names) != len(kept) {
				t.Errorf("%d parts were written, %d named, by %d names", len(kept), len(parts), len(names))
			}
		})
	}
}

// before is a row as it is read where it was written before there was a column.
func before(row wire.Row) wire.Row {
	row.CacheWrites = nil
	return row
}

func TestARowOfBeforeEndsEarlier(t *testing.T) {
	row := fullRow(t)
	whole := rowcode.Encode(&row)
	ends := 0
	for n := range whole {
		got := wire.Row{ID: row.ID, RequestID: row.RequestID, ListTime: row.ListTime}
		if err := rowcode.Decode(whole[:n], rowcode.AllColumns, &got); err != nil {
			continue
		}
		ends++
		if diff := cmp.Diff(before(row), got); diff != "" {
			t.Errorf("its first %d bytes (-want +got):\n%s", n, diff)
		}
	}
	old := rowcode.EncodeFirst(rowcode.FirstColumns, &row)
	later := int(rowcode.ColumnBody - rowcode.FirstColumns)
	if ends != later || string(old) != string(whole[:len(old)]) {
		t.Errorf("a row may end in %d places before its end, of %d columns that came later", ends, later)
	}
}

func TestAHeadTellsWhichTagsNoRowHas(t *testing.T) {
	for _, tags := range []int{0, 1, 50, 4096} {
		rows := make([]Placed, max(tags, 1))
		for i := range rows {
			rows[i].Row = emptyRow()
			if tags > 0 {
				rows[i].Row.Tags = []string{"all", fmt.Sprint("tag-", i)}
			}
		}
		made := HeadOf(rows)
		head, err := DecodeHead(made.Encode())
		if err != nil || len(head.tags) > tagsBytesMax {
			t.Fatalf("%d tags take %d bytes (%v)", tags, len(head.tags), err)
		}

		pass := 0
		for i := range 4096 {
			if i < tags && !head.mayHaveTag(fmt.Sprint("tag-", i)) {
				t.Fatalf("of %d tags the filter lacks %d", tags, i)
			}
			if head.mayHaveTag(fmt.Sprint("other-", i)) {
				pass++
			}
		}
		if pass > 4096/20 {
			t.Errorf("with %d tags, %d of 4096 others pass", tags, pass)
		}
	}
}

func TestABlockOfBeforeLacksAColumn(t *testing.T) {
	rows := []wire.Row{fullRow(t), emptyRow(), oddRow(t)}
	b, kept := stored(t, rows)
	if b.Head.IsOld() {
		t.Error("a block that was just written is old")
	}

	// The head as 0.1.0 wrote it: without the number of columns, that of the folding, and the filter of tags.
	plain := b.Head
	plain.tags = ""
	head := plain.Encode()
	head[0], head = 1, head[:len(head)-3]
	old, err := DecodeHead(head)
	if err != nil || old.columns != rowcode.FirstColumns || old.Folding != 1 || !old.IsOld() {
		t.Fatalf("the head of 0.1.0 is %+v (%v)", old, err)
	}
	lacking := Part{column: rowcode.ColumnCacheWrites}
	delete(kept, lacking)
	b.Open(kept, b.Place, old)
	if parts := b.Head.Parts(); slices.Contains(parts, lacking) || len(parts) != len(kept) {
		t.Errorf("it has the parts %v", parts)
	}
	for i, row := range rows {
		got, err := b.Row(i, rowcode.AllColumns)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before(row), rowcode.Clone(got)); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}

	for _, harm := range [][]byte{{99}, head[:len(head)-1], append(b.Head.Encode()[:1:1], head[1:]...)} {
		if _, err := DecodeHead(harm); err == nil {
			t.Errorf("the head %x is read", harm)
		}
	}
}

func TestADamagedPartIsAnError(t *testing.T) {
	rows := []wire.Row{fullRow(t), emptyRow()}
	b, kept := stored(t, rows)
	for part, plain := range kept {
		if part == Summary {
			continue // its reader reads it, not the block
		}
		kept[part] = plain[:len(plain)-1]
		b.Open(kept, b.Place, b.Head)
		if _, err := b.Row(1, rowcode.AllColumns); !errors.Is(err, errColumn) {
			t.Errorf("part %v is cut short: %v", part, err)
		}
		kept[part] = plain
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
	f.Add(encodePlaces(make([]Place, 2)))
	head := Head{Rows: 1, keys: []string{"a"}}
	f.Add(head.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		var row wire.Row
		_ = rowcode.Decode(b, rowcode.AllColumns, &row)
		_, _ = DecodeHead(b)
		var c column
		if decodeColumn(b, &c) != nil {
			return
		}
		c.block = new(Block)
		for i := range c.n {
			switch c.kind {
			case 'd':
				c.entry(rowcode.ColumnScores, c.code(i))
			case 'i':
				c.number(i)
			case 'p':
				c.place(i)
			}
		}
	})
}
