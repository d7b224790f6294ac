package query

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Analytics sums up rows for wire.Analytics. As long as there are no more names than its
// bounds allow, the result depends on the rows only, not on their order.
type Analytics struct {
	clock       clock
	metadataKey string // "" for all keys

	whole     *dimension[struct{}]
	models    *dimension[string]
	templates *dimension[string]
	providers *dimension[string]
	statuses  map[int64]map[string]int64 // by bucket
	tags      counts[string]
	keys      counts[string]
	errors    counts[string]
	tools     counts[string]
	metadata  counts[wire.MetadataRow]
	wide      map[string]bool // metadata keys whose values some summary leaves out
	judged    []judged        // of the row counted last; its memory is used again

	// Of the scores counted. Names are never taken back: too many of them only keep
	// summaries from being merged, which costs time and no accuracy.
	scores     sample[scoreKey]
	categories sample[judged]
	defined    wire.ScoreDefinitions
}

// AnalyticsColumns are the columns that Analytics looks at.
var AnalyticsColumns = tallyColumns | rowcode.ColumnsOf(
	rowcode.ColumnTime, rowcode.ColumnModel, rowcode.ColumnProvider, rowcode.ColumnTemplate,
	rowcode.ColumnTags, rowcode.ColumnMetadata, rowcode.ColumnErrorType, rowcode.ColumnTools,
)

// NewAnalytics returns empty sums for a question.
func NewAnalytics(q wire.StatisticsQuery) *Analytics {
	a := &Analytics{
		clock:       newClock(q),
		metadataKey: q.MetadataKey,
		statuses:    make(map[int64]map[string]int64),
		tags:        make(counts[string]),
		keys:        make(counts[string]),
		errors:      make(counts[string]),
		tools:       make(counts[string]),
		metadata:    make(counts[wire.MetadataRow]),
		wide:        make(map[string]bool),
		scores:      newSample[scoreKey](scoreNamesMax),
		categories:  newSample[judged](categoriesMax),
		defined:     q.Definitions,
	}

	// Scores that the caller filters by are listed, however many other names there are.
	asked := scoresAsked(q.FilterGroup)
	a.whole = newDimension[struct{}](&a.clock, asked).bySeries()
	a.models = newDimension[string](&a.clock, asked)
	a.templates = newDimension[string](&a.clock, asked)
	a.providers = newDimension[string](&a.clock, asked)

	return a
}

// named returns the dimensions that have names, in the order of a summary.
func (a *Analytics) named() []*dimension[string] {
	return []*dimension[string]{a.models, a.templates, a.providers}
}

// counted returns what is only counted by name, in the order of a summary.
func (a *Analytics) counted() []counts[string] {
	return []counts[string]{a.tags, a.keys, a.errors, a.tools}
}

// Add counts a row.
func (a *Analytics) Add(row *wire.Row) error {
	a.Reach(row.ListTime)
	a.count(row, 1)

	// Only a bucket that the caller chose runs out of space here: others become longer.
	if a.whole.leftOut > 0 {
		return errTooManyBuckets(a.clock.name())
	}
	return nil
}

// Reach makes buckets long enough for a row at this time. See Sums.
func (a *Analytics) Reach(at time.Time) {
	if a.clock.extend(at) {
		a.rebucket()
	}
}

// count counts a row n times: once, or -1 times to take back one that was counted.
func (a *Analytics) count(row *wire.Row, n int64) {
	bucket := a.clock.bucketOf(row.ListTime)
	a.judged = judge(a.judged[:0], row.Scores)
	a.whole.add(struct{}{}, bucket, row, a.judged, n)
	a.models.add(row.Engine, bucket, row, a.judged, n)
	a.providers.add(row.Provider, bucket, row, a.judged, n)
	if row.PromptName != nil {
		a.templates.add(*row.PromptName, bucket, row, a.judged, n)
	}
	addStatus(a.statusesOf(bucket), row.Status, n)

	// A name that a row has twice counts once.
	for i, tag := range row.Tags {
		if !slices.Contains(row.Tags[:i], tag) {
			a.tags.add(tag, row, n)
		}
	}
	for i, tool := range row.ToolNames {
		if !slices.Contains(row.ToolNames[:i], tool) {
			a.tools.add(tool, row, n)
		}
	}

	// Every failed row has an error type, so that their counts add up to the failures.
	if row.Status != "SUCCESS" {
		a.errors.add(cmp.Or(row.ErrorType, row.Status), row, n)
	}

	for _, j := range a.judged {
		if a.scores.add(j.scoreKey); j.kind == wire.ScoreCategory {
			a.categories.add(j)
		}
	}

	for _, m := range row.Metadata {
		a.keys.add(m.Key, row, n)
		if (a.metadataKey == "" || a.metadataKey == m.Key) && !a.wide[m.Key] {
			a.metadata.add(m, row, n)
		}
	}
}

// statusesOf returns how often each status came in a bucket.
func (a *Analytics) statusesOf(bucket int64) map[string]int64 {
	m := a.statuses[bucket]
	if m == nil {
		m = make(map[string]int64)
		a.statuses[bucket] = m
	}
	return m
}

// addStatus adds n to a status, unless it is one too many. Callers choose statuses
// freely, so without a bound the answer could grow with every row.
func addStatus(m map[string]int64, status string, n int64) {
	if _, known := m[status]; known || len(m) < wire.AnalyticsListMax {
		m[status] += n
	}
}

// prune drops names whose rows were all taken back, and values of wide metadata keys.
func (a *Analytics) prune() {
	a.whole.prune()
	for _, d := range a.named() {
		d.prune()
	}
	for _, c := range a.counted() {
		c.prune()
	}

	// A summary left out the values of a wide key, so what was counted of them is too
	// low.
	a.metadata.prune()
	maps.DeleteFunc(a.metadata, func(m wire.MetadataRow, _ *count) bool { return a.wide[m.Key] })

	for at, statuses := range a.statuses {
		maps.DeleteFunc(statuses, func(_ string, n int64) bool { return n == 0 })
		if len(statuses) == 0 {
			delete(a.statuses, at)
		}
	}
}

// rebucket moves everything to the clock's longer buckets.
func (a *Analytics) rebucket() {
	a.whole.rebucket()
	for _, d := range a.named() {
		d.rebucket()
	}

	before := a.statuses
	a.statuses = make(map[int64]map[string]int64)
	for at, statuses := range before {
		into := a.statusesOf(a.clock.floor(at))
		for status, n := range statuses {
			into[status] += n
		}
	}
}

// Statistics returns what Analyze and Statistics of a service make of rows. It defines the
// meaning of both.
func Statistics(rows []wire.Row, q wire.StatisticsQuery) (wire.Analytics, wire.Statistics, error) {
	a, p := NewAnalytics(q), NewParts(wire.PartsQuery{StatisticsQuery: q})
	for i := range rows {
		if err := errors.Join(a.Add(&rows[i]), p.Add(&rows[i])); err != nil {
			return wire.Analytics{}, wire.Statistics{}, err
		}
	}

	return a.Answer(), p.Answer(), nil
}
