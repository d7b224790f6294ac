package query

import (
	"cmp"
	"slices"
	"strings"
	"time"

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
	query  wire.PartsQuery
	of     string // one of wire.PartsBy
	clock  *clock
	by     *dimension
	all    *dimension // nil unless asked for
	summed *Analytics // has by and all, if summaries have the values; otherwise nil
	parts  []part     // of the row counted last; its memory is used again
	judged []judged   // of the same row
}

// partColumns are the columns that parts are read from.
var partColumns = map[string]rowcode.Columns{
	"version":  rowcode.ColumnsOf(rowcode.ColumnTemplate, rowcode.ColumnVersion),
	"template": rowcode.ColumnsOf(rowcode.ColumnTemplate),
	"model":    rowcode.ColumnsOf(rowcode.ColumnModel),
	"provider": rowcode.ColumnsOf(rowcode.ColumnProvider),
	"status":   rowcode.ColumnsOf(rowcode.ColumnStatus),
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
	q.Brief = false
	a := NewAnalytics(q.StatisticsQuery)
	a.noMetadata = true
	p := &Parts{query: q, of: cmp.Or(q.By, "version"), clock: &a.clock}
	if q.IsSummed() {
		named := map[string]*dimension{"model": a.models, "template": a.templates, "provider": a.providers}
		p.by, p.summed = named[p.of], a
	} else {
		p.by = newDimension(p.clock).bySeries()
	}
	if q.SeriesMax > 0 {
		// Without their series, names take half of the cells.
		p.by.names, p.by.space = namesMax, 2*namesMax
		p.all = a.whole
	}

	return p
}

// Reach makes buckets long enough for a row at this time. See Sums.
func (p *Parts) Reach(at time.Time) {
	if p.summed != nil {
		p.summed.Reach(at)
	}
}

// Remove takes back a row that a merged summary counts. See Sums.
func (p *Parts) Remove(row *wire.Row) { p.summed.Remove(row) }

// Merge counts the rows of a summary, if these have what is asked for. See Sums.
func (p *Parts) Merge(summary []byte, exact bool) (bool, error) {
	if p.summed == nil {
		return false, nil
	}
	p.makeSpace()

	return p.summed.Merge(summary, exact)
}

// makeSpace gives up the series of some values if there are too many.
func (p *Parts) makeSpace() {
	if p.by.full() {
		p.by.condense(p.ranked())
	}
}

// Add counts a row.
func (p *Parts) Add(row *wire.Row) error {
	if p.summed != nil {
		p.makeSpace()
		return p.summed.Add(row)
	}

	p.parts = p.partsOf(p.parts[:0], row)
	if len(p.parts) == 0 && p.all == nil {
		return nil
	}

	// Many values need longer buckets as well as a long time does, unless only some have a series.
	longer := p.clock.extend(row.ListTime)
	if !longer && p.by.full() && p.all == nil && !p.clock.longest() {
		p.clock.lengthen()
		longer = true
	}
	if longer {
		p.by.rebucket()
	}
	if p.all != nil {
		p.addAll(row, longer)
	}

	p.judged = judge(p.judged[:0], row.Scores)
	for _, part := range p.parts {
		p.by.add(part, p.clock.bucketOf(row.ListTime), row, p.judged, 1)
	}

	// Only a bucket that the caller chose is an error: otherwise there are too many
	// values for any, and the answer says how many requests it leaves out.
	counted := cmp.Or(p.all, p.by)
	if counted.leftOut > 0 && len(p.clock.steps) == 1 {
		return errTooManyBuckets(p.clock.name())
	}

	return nil
}

// addAll counts a row among all, and makes space for its values.
func (p *Parts) addAll(row *wire.Row, longer bool) {
	if longer {
		p.all.rebucket()
	}
	p.makeSpace()

	p.judged = judge(p.judged[:0], row.Scores)
	p.all.add(part{}, p.clock.bucketOf(row.ListTime), row, p.judged, 1)
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
	case "status":
		into = append(into, part{value: row.Status})
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
	if p.summed != nil {
		p.summed.prune()
	}
	w := wire.Statistics{
		Success:         true,
		ChartInterval:   p.clock.interval(),
		Items:           []wire.ValueTotals{},
		PercentileError: wire.PercentileError,
		LeftOut:         p.by.leftOut,
	}

	shares := p.ranked()
	if most := wire.AnalyticsListMax; (p.of != "version" || p.all != nil) && len(shares) > most {
		for _, s := range shares[most:] {
			w.LeftOut += s.sum.requests
		}
		shares = shares[:most]
	}
	inTotals, inSeries := scoreLimits(shares)
	for i, s := range shares {
		drawn := p.query.SeriesMax == 0 || i < p.query.SeriesMax
		w.Items = append(w.Items, p.valueTotals(s, inTotals, inSeries, drawn))
	}

	if p.all != nil {
		all := share{scores: &scoreSums{}}
		for _, s := range p.all.shares() {
			all = s
		}
		inTotals, inSeries = scoreLimits([]share{all})
		w.All = new(p.valueTotals(all, inTotals, inSeries, true))
	}

	return w
}

// ranked returns the values in the order of the answer.
func (p *Parts) ranked() []share {
	shares := p.by.shares()
	if rank := p.query.Rank; rank != nil {
		ranks := make(map[part]float64, len(shares))
		for _, s := range shares {
			ranks[s.name] = rank(new(s.sum.sums()))
		}
		slices.SortStableFunc(shares, func(a, b share) int { return cmp.Compare(ranks[b.name], ranks[a.name]) })
	} else if p.of == "version" && p.all == nil {
		slices.SortFunc(shares, func(a, b share) int { return compareParts(a.name, b.name) })
	}

	return shares
}

// valueTotals returns what a value adds up to in the form of the API, with at most so many names of scores.
func (p *Parts) valueTotals(s share, inTotals, inSeries int, drawn bool) wire.ValueTotals {
	t := wire.ValueTotals{
		Value:     rowcode.ShownValue(s.name.value),
		Version:   rowcode.Optional(s.name.version),
		Totals:    s.by.sum().totals(s.scores.summaries(inTotals, p.query.Definitions)),
		Series:    []wire.BucketTotals{},
		Truncated: rowcode.IsReference(s.name.value),
	}
	if !drawn || s.by[condensed] != nil {
		return t
	}

	for _, at := range s.by.sorted() {
		part := s.by[at]
		t.Series = append(t.Series, wire.BucketTotals{
			Date:   p.clock.date(at),
			Totals: part.totals(part.scores.summaries(inSeries, p.query.Definitions)),
		})
	}

	return t
}
