package query

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// versionKey names a version of a template; number 0 stands for an unknown one.
type versionKey struct {
	template string
	number   int
}

func compareVersions(a, b versionKey) int {
	return cmp.Or(strings.Compare(a.template, b.template), cmp.Compare(a.number, b.number))
}

// TemplateVersions sums up rows by template version. It skips rows without a template.
type TemplateVersions struct {
	clock   clock
	by      *dimension[versionKey]
	judged  []judged // of the row counted last; its memory is used again
	defined wire.ScoreDefinitions
}

// TemplateVersionsColumns are the columns that TemplateVersions looks at.
var TemplateVersionsColumns = tallyColumns |
	rowcode.ColumnsOf(rowcode.ColumnTime, rowcode.ColumnTemplate, rowcode.ColumnVersion)

// NewTemplateVersions returns empty sums for a question.
func NewTemplateVersions(q wire.StatisticsQuery) *TemplateVersions {
	v := &TemplateVersions{clock: newClock(q), defined: q.Definitions}
	v.by = newDimension[versionKey](&v.clock, scoresAsked(q.FilterGroup)).bySeries()
	return v
}

// Add counts a row.
func (v *TemplateVersions) Add(row *wire.Row) error {
	if row.PromptName == nil {
		return nil
	}

	// Many versions need longer buckets as well as a long time does.
	longer := v.clock.extend(row.ListTime)
	if !longer && v.by.full() && !v.clock.longest() {
		v.clock.lengthen()
		longer = true
	}
	if longer {
		v.by.rebucket()
	}

	key := versionKey{template: *row.PromptName}
	if row.PromptVersion != nil {
		key.number = int(*row.PromptVersion)
	}
	v.judged = judge(v.judged[:0], row.Scores)
	v.by.add(key, v.clock.bucketOf(row.ListTime), row, v.judged, 1)

	// Only a bucket that the caller chose is an error: otherwise there are too many
	// versions for any, and the answer says how many requests it leaves out.
	if v.by.leftOut > 0 && len(v.clock.steps) == 1 {
		return errTooManyBuckets(v.clock.name())
	}

	return nil
}

// Answer returns the sums in the form of the API.
func (v *TemplateVersions) Answer() wire.TemplateStatistics {
	w := wire.TemplateStatistics{
		Success:         true,
		ChartInterval:   v.clock.interval(),
		Versions:        []wire.VersionTotals{},
		PercentileError: wire.PercentileError,
		VersionsLeftOut: v.by.leftOut,
	}

	shares := v.by.shares(compareVersions)
	sort.Slice(shares, func(i, j int) bool { return compareVersions(shares[i].name, shares[j].name) < 0 })
	inTotals, inSeries := scoreLimits(shares)

	for _, s := range shares {
		t := wire.VersionTotals{
			Template: s.name.template,
			Version:  rowcode.Optional(s.name.number),
			Totals:   s.sum.totals(s.scores.summaries(inTotals, v.defined)),
			Series:   []wire.BucketTotals{},
		}
		for _, at := range s.by.sorted() {
			part := s.by[at]
			t.Series = append(t.Series, wire.BucketTotals{
				Date:   v.clock.date(at),
				Totals: part.totals(part.scores.summaries(inSeries, v.defined)),
			})
		}
		w.Versions = append(w.Versions, t)
	}

	return w
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
