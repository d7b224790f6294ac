package blocks

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// scoredRows draws rows whose scores have columns or share one: of each kind and of several, by few
// authors or many, rare, and twice in a row.
func scoredRows(t *rapid.T) []wire.Row {
	rows := make([]wire.Row, rapid.IntRange(1, 150).Draw(t, "rows"))
	kinds := rapid.SliceOfN(rapid.IntRange(0, 4), 6, 6).Draw(t, "kinds")
	value := func(kind int) (v wire.ScoreValue) {
		switch kind {
		case 0:
			return wire.ScoreValue{Number: float64(rapid.IntRange(0, 100).Draw(t, "integer"))}
		case 1:
			return wire.NumberScore(float64(rapid.IntRange(-200, 200).Draw(t, "hundredths")) / 100)
		case 2:
			return wire.NumberScore(rapid.Float64Range(-wire.ScoreNumberMax, wire.ScoreNumberMax).Draw(t, "number"))
		case 3:
			return wire.ScoreValue{Kind: wire.ScoreBoolean, Number: float64(rapid.IntRange(0, 1).Draw(t, "boolean"))}
		}
		v, _ = wire.CategoryScore(rapid.SampledFrom([]string{"kind", "rude", "true"}).Draw(t, "category"))
		return v
	}

	for i := range rows {
		rows[i] = emptyRow()
		rows[i].RequestID = fmt.Sprintf("0195529c-1c00-7000-8000-%012d", i)
		rows[i].ID = rows[i].RequestID
		rows[i].ListTime = time.Unix(-int64(i), 0).UTC()
		rows[i].AcceptedAt = rows[i].ListTime
		for name, kind := range kinds {
			for range rapid.IntRange(0, 2).Draw(t, "authors") {
				author := fmt.Sprint("author-", rapid.IntRange(0, 2*name).Draw(t, "author"))
				slot := wire.ScoreSlot{Name: fmt.Sprint("name-", name), Author: author}
				if rapid.IntRange(0, 500).Draw(t, "odd") == 0 {
					kind = 4 - kind
				}
				rows[i].Scores = append(rows[i].Scores, wire.Score{ScoreSlot: slot, ScoreValue: value(kind)})
			}
		}
		slices.SortStableFunc(rows[i].Scores, wire.CompareScores)
		if rapid.IntRange(0, 100).Draw(t, "twice") > 0 {
			sameSlot := func(a, b wire.Score) bool { return a.ScoreSlot == b.ScoreSlot }
			rows[i].Scores = slices.CompactFunc(rows[i].Scores, sameSlot)
		}
	}

	return rows
}

func TestScoresComeBackAndAreFound(t *testing.T) {
	filters := []wire.Filter{
		{Field: "score_name", Operator: "is", Value: json.RawMessage(`"name-0"`)},
		{Field: "score", Operator: "gte", Value: json.RawMessage(`0.5`)},
		{Field: "score", Operator: "is_null"},
		{Field: "score_author", Operator: "is", Value: json.RawMessage(`"author-1"`)},
	}
	for name := range 7 {
		key := fmt.Sprint("name-", name)
		filters = append(filters,
			wire.Filter{Field: "score", NestedKey: key, Operator: "gt", Value: json.RawMessage(`0.5`)},
			wire.Filter{Field: "score", NestedKey: key, Operator: "between", Value: json.RawMessage(`[0,1]`)},
			wire.Filter{Field: "score", NestedKey: key, Operator: "is_null"},
			wire.Filter{Field: "score_value", NestedKey: key, Operator: "is", Value: json.RawMessage(`"true"`)})
	}

	rapid.Check(t, func(rt *rapid.T) {
		rows := scoredRows(rt)
		b, _ := stored(t, rows)
		for i := range rows {
			got, err := b.Row(i, rowcode.AllColumns)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rows[i], rowcode.Clone(got)); diff != "" {
				rt.Fatalf("row %d (-want +got):\n%s", i, diff)
			}
		}

		for _, f := range filters {
			q, err := query.Compile(wire.Search{FilterGroup: &f})
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.Evaluate(&q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				want := q.Where.Match(&query.Subject{Row: &rows[i]})
				if got.Must.Has(i) != want || got.May.Has(i) != want {
					rt.Fatalf("%+v: row %d with %v is found: %t", f, i, rows[i].Scores, !want)
				}
			}
		}
	})
}

// readParts counts which parts are read.
type readParts struct {
	memory
	read map[Part]int
}

func (r readParts) Read(place []byte, part Part, buffer []byte) ([]byte, error) {
	r.read[part]++
	return r.memory.Read(place, part, buffer)
}

func TestAFilterOnAScoreReadsItsColumnOnly(t *testing.T) {
	rows := []wire.Row{emptyRow(), emptyRow()}
	third := wire.NumberScore(1.0 / 3)
	rows[0].Scores = []wire.Score{
		{ScoreSlot: wire.ScoreSlot{Name: "faithful"}, ScoreValue: third}, wire.IntegerScore("quality", 7),
	}
	rows[1].Scores = []wire.Score{{ScoreSlot: wire.ScoreSlot{Name: "faithful"}, ScoreValue: wire.NumberScore(0.25)}}
	b, kept := stored(t, rows)
	counted := readParts{kept, map[Part]int{}}
	b.Open(counted, b.Place, b.Head)

	f := wire.Filter{Field: "score", NestedKey: "faithful", Operator: "gt", Value: json.RawMessage(`0.3`)}
	q, err := query.Compile(wire.Search{FilterGroup: &f})
	if err != nil {
		t.Fatal(err)
	}
	found, err := b.Evaluate(&q)
	want := map[Part]int{ofScore(wire.ScoreSlot{Name: "faithful"}): 1}
	if err != nil || found.Must.Count(0, 2) != 1 || cmp.Diff(want, counted.read, cmp.AllowUnexported(Part{})) != "" {
		t.Errorf("%v, %v: read are %v", found, err, counted.read)
	}
}
