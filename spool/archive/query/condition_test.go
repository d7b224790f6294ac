package query

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"promptspool/api/wire"
)

// Stores ask their indexes for the Texts or Ranges of a Test instead of calling Match:
// both must give the same answer.
func TestTextsAndRangesAreWhatTheTestAsks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(-3, 3)
		f := wire.Filter{Field: rapid.SampledFrom([]string{"cost", "tags", "score", "metadata"}).Draw(t, "field")}
		switch f.Field {
		case "score":
			f.NestedKey = rapid.SampledFrom([]string{"", "a"}).Draw(t, "key")
		case "metadata":
			f.NestedKey = "a"
		}

		row := wire.Row{}
		var value any
		text := f.Field == "tags" || f.Field == "metadata"
		if text {
			f.Operator = rapid.SampledFrom(textOperators).Draw(t, "operator")
			words := rapid.SampledFrom([]string{"x", "X", "y", ""})
			row.Tags = rapid.SliceOfN(words, 0, 2).Draw(t, "tags")

			keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 2, rapid.ID)
			for _, key := range keys.Draw(t, "keys") {
				row.Metadata = append(row.Metadata, wire.MetadataRow{Key: key, Value: words.Draw(t, "value")})
			}

			value = words.Draw(t, "wanted")
			if f.Operator == "in" || f.Operator == "not_in" {
				value = rapid.SliceOfN(words, 0, 2).Draw(t, "wanted")
			}
		} else {
			f.Operator = rapid.SampledFrom(numberOperators).Draw(t, "operator")
			if rapid.Bool().Draw(t, "priced") {
				row.Price = new(number.Draw(t, "price"))
			}

			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 2, rapid.ID)
			for _, name := range names.Draw(t, "names") {
				row.Scores = append(row.Scores, wire.IntegerScore(name, rapid.IntRange(0, 3).Draw(t, "score")))
			}

			value = rapid.SampledFrom([]float64{0, 1, 2, -1}).Draw(t, "wanted")
			switch f.Operator {
			case "between":
				value = []any{value, rapid.SampledFrom([]float64{2, 3}).Draw(t, "most")}
			case "in", "not_in":
				value = rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1}), 0, 2).Draw(t, "wanted")
			}
		}

		f.Value, _ = json.Marshal(value)
		c, err := compileFilter(f)
		if err != nil {
			t.Fatal(err)
		}
		if not, ok := c.(Not); ok {
			c = not.Condition
		}

		test := c.(*Test)
		fd := fields[f.Field]
		holds := test.Match(&Subject{Row: &row})
		switch {
		case test.Texts != nil:
			among := func(v string) bool { return slices.Contains(test.Texts, v) }
			if want := slices.ContainsFunc(fd.text(&row, f.NestedKey), among); want != holds {
				t.Fatalf("Match of %+v with %+v gives %v, but its Texts are %q", f, row, holds, test.Texts)
			}
		case test.Ranges != nil:
			within := func(x float64) bool {
				return slices.ContainsFunc(test.Ranges, func(r Range) bool { return r.Has(x) })
			}
			if want := slices.ContainsFunc(fd.number(&row, f.NestedKey), within); want != holds {
				t.Fatalf("Match of %+v with %+v gives %v, but its Ranges are %+v", f, row, holds, test.Ranges)
			}
		case slices.Contains([]string{"is", "eq", "in", "gt", "lte"}, f.Operator):
			t.Fatalf("%+v has neither Texts nor Ranges", f)
		}
	})
}
