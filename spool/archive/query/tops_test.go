package query

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
)

// drawTopped draws rows of which many are equal in what they are sorted by.
func drawTopped(t *rapid.T) []wire.Row {
	rows := make([]wire.Row, rapid.IntRange(1, 9).Draw(t, "rows"))
	for i := range rows {
		at := time.Unix(int64(rapid.IntRange(-2, 2).Draw(t, "at")), 0).UTC()
		latency := rapid.SampledFrom([]float64{0, 1.5, 3}).Draw(t, "latency")
		rows[i] = wire.Row{
			RequestID:   wire.NewID(),
			ListTime:    at,
			AcceptedAt:  at.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "later")) * time.Second),
			Status:      rapid.SampledFrom([]string{"", "SUCCESS", "ERROR"}).Draw(t, "status"),
			CacheWrites: rapid.SampledFrom([]*int64{nil, new(int64)}).Draw(t, "written"),
		}
		if rapid.Bool().Draw(t, "known") {
			rows[i].Latency, rows[i].StartTime = &latency, &at
		}
	}
	return rows
}

func TestTopsAreTheFirstRowsOfEachOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, most := drawTopped(t), rapid.IntRange(1, 10).Draw(t, "most")
		tops := Tops(most, len(rows), func(i int) *wire.Row { return &rows[i] })

		for _, by := range wire.SortFields {
			o := Order{By: by, Ascending: rapid.Bool().Draw(t, "ascending")}
			var want []Position
			for i := range rows {
				want = append(want, o.PositionOf(&rows[i]))
			}
			slices.SortFunc(want, o.Compare)
			want = want[:min(most, len(want))]

			got, err := ReadTops(tops, o)
			if diff := cmp.Diff(want, got.Places); err != nil || diff != "" || got.Rows != len(rows) {
				t.Fatalf("%+v of %d rows, %v (-want +got):\n%s", o, got.Rows, err, diff)
			}
		}
	})
}

func TestDamagedTopsAreAnError(t *testing.T) {
	row := wire.Row{RequestID: wire.NewID(), Status: "SUCCESS"}
	tops := Tops(3, 1, func(int) *wire.Row { return &row })
	last := Order{By: wire.SortFields[len(wire.SortFields)-1], Ascending: true}

	early := 0
	for n := range tops {
		list, err := ReadTops(tops[:n], last)
		if err == nil && len(list.Places) == 0 {
			early++
		} else if !errors.Is(err, ErrSummary) {
			t.Errorf("the first %d bytes of %d give %v", n, len(tops), err)
		}
	}
	if early != 1 {
		t.Errorf("tops of 0.1.0, which lack the last order, are the first bytes of these in %d ways", early)
	}
}
