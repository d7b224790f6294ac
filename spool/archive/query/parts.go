package query

import (
	"cmp"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// part is what a row is counted under: a value, and of a template the number of its version, 0 if
// that is unknown.
type part struct {
	value   string
	version int
}

func compareParts(a, b part) int {
	return cmp.Or(strings.Compare(a.value, b.value), cmp.Compare(a.version, b.version))
}

// Parts sums up rows by the value of something, such as their template version. It skips rows
// without a value.
type Parts struct {
	of      string // one of wire.PartsBy
	clock   clock
	by      *dimension[part]
	parts   []part   // of the row counted last; its memory is used again
	judged  []judged // of the same row
	defined wire.ScoreDefinitions
}

// partColumns are the columns that parts are read from.
var partColumns = map[string]rowcode.Columns{
	"version":  rowcode.ColumnsOf(rowcode.ColumnTemplate, rowcode.ColumnVersion),
	"template": rowcode.ColumnsOf(rowcode.ColumnTemplate),
	"model":    rowcode.ColumnsOf(rowcode.ColumnModel),
	"provider": rowcode.ColumnsOf(rowcode.ColumnProvider),
	"tag":      rowcode.ColumnsOf(rowcode.ColumnTags),
}

// PartsColumns returns the columns that the Parts of a question look at.
func PartsColumns(q wire.PartsQuery) rowcode.Columns {
	columns, ok := partColumns[cmp.Or(q.By, "version")]
	if !ok {
		columns = rowcode.ColumnsOf(rowcode.ColumnMetadata)
	}

	return columns | tallyColumns | rowcode.ColumnsOf(rowcode.ColumnTime)
}

// NewParts returns empty sums for a question.
func NewParts(q wire.PartsQuery) *Parts {
	p := &Parts{of: cmp.Or(q.By, "version"), clock: newClock(q.StatisticsQuery), defined: q.Definitions}
	p.by = newDimension[part](&p.clock, scoresAsked(q.FilterGroup)).bySeries()
	return p
}

// Add counts a row.
func (p *Parts) Add(row *wire.Row) error {
	p.parts = p.partsOf(p.parts[:0], row)
	if len(p.parts) == 0 {
		return nil
	}

	// Many values need longer buckets as well as a long time does.
	longer := p.clock.extend(row.ListTime)
	if !longer && p.by.full() && !p.clock.longest() {
		p.clock.lengthen()
		longer = true
	}
	if longer {
		p.by.rebucket()
	}

	p.judged = judge(p.judged[:0], row.Scores)
	for _, part := range p.parts {
		p.by.add(part, p.clock.bucketOf(row.ListTime), row, p.judged, 1)
	}

	// Only a bucket that the caller chose is an error: otherwise there are too many
	// values for any, and the answer says how many requests it leaves out.
	if p.by.leftOut > 0 && len(p.clock.steps) == 1 {
		return errTooManyBuckets(p.clock.name())
	}

	return nil
}

// partsOf appends what a row is counted under, each once.
func (p *Parts) partsOf(into []part, row *wire.Row) []part {
	switch p.of {
	case "version", "template":
		if row.PromptName == nil {
			break
		}
		of := part{value: *row.PromptName}
		if row.PromptVersion != nil && p.of == "version" {
			of.version = int(*row.PromptVersion)
		}
		into = append(into, of)
	case "model":
		into = append(into, part{value: row.Engine})
	case "provider":
		into = append(into, part{value: row.Provider})
	case "tag":
		for i, tag := range row.Tags {
			if !slices.Contains(row.Tags[:i], tag) {
				into = append(into, part{value: tag})
			}
		}
	default:
		for _, m := range row.Metadata {
			if m.Key == strings.TrimPrefix(p.of, wire.ByMetadata) {
				into = append(into, part{value: m.Value})
			}
		}
	}

	return into
}

// Answer returns the sums in the form of the API.
func (p *Parts) Answer() wire.Statistics {
	w := wire.Statistics{
		Success:         true,
		ChartInterval:   p.clock.interval(),
		Items:           []wire.ValueTotals{},
		PercentileError: wire.PercentileError,
		LeftOut:         p.by.leftOut,
	}

	shares := p.by.shares(compareParts)
	if p.of == "version" {
		slices.SortFunc(shares, func(a, b share[part]) int { return compareParts(a.name, b.name) })
	} else if most := wire.AnalyticsListMax; len(shares) > most {
		for _, s := range shares[most:] {
			w.LeftOut += s.sum.requests
		}
		shares = shares[:most]
	}
	inTotals, inSeries := scoreLimits(shares)

	for _, s := range shares {
		t := wire.ValueTotals{
			Value:     rowcode.ShownValue(s.name.value),
			Version:   rowcode.Optional(s.name.version),
			Totals:    s.sum.totals(s.scores.summaries(inTotals, p.defined)),
			Series:    []wire.BucketTotals{},
			Truncated: rowcode.IsReference(s.name.value),
		}
		for _, at := range s.by.sorted() {
			part := s.by[at]
			t.Series = append(t.Series, wire.BucketTotals{
				Date:   p.clock.date(at),
				Totals: part.totals(part.scores.summaries(inSeries, p.defined)),
			})
		}
		w.Items = append(w.Items, t)
	}

	return w
}
