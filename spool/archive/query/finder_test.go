package query

import (
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

func TestAPageOfHeavyRowsIsShorterAndItsCursorGoesOn(t *testing.T) {
	rows := map[string]wire.Row{}
	var ids []string // newest first
	for n := range 20 {
		ids = append(ids, wire.NewID())
		rows[ids[n]] = wire.Row{
			RequestID: ids[n],
			ListTime:  time.Unix(int64(-n), 0),
			Tags:      []string{strings.Repeat("x", PageBytesMax/8)},
		}
	}

	for _, by := range []string{"", "input_tokens"} {
		q := Query{Limit: 100, Order: Order{By: by}}
		for found := 0; found < len(ids); {
			f := NewFinder(&q)
			for _, id := range ids {
				row := rows[id]
				if _, err := f.Visit(func(rowcode.Columns) (*wire.Row, error) { return &row, nil }); err != nil {
					t.Fatal(err)
				}
			}
			page, err := f.Finish(nil, func(id string) (wire.Row, error) { return rows[id], nil })
			if n := len(page.Rows); err != nil || n != min(8, len(ids)-found) || page.Rows[0].RequestID != ids[found] {
				t.Fatalf("by %q: %d rows after %d, %v", by, n, found, err)
			}

			found += len(page.Rows)
			last := q.Order.PositionOf(&page.Rows[len(page.Rows)-1])
			if q.After = &last; page.More != (found < len(ids)) {
				t.Errorf("by %q: more rows follow after %d: %v", by, found, page.More)
			}
		}
	}
}
