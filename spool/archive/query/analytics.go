package query

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Analytics sums up rows for wire.Analytics. As long as there are no more names than its
// bounds allow, the result depends on the rows only, not on their order.
type Analytics struct {
	clock       clock
	metadataKey string // "" for all keys
	noMetadata  bool   // values are not counted
	brief       bool   // see wire.StatisticsQuery

	whole     *dimension
	models    *dimension
	templates *dimension
	providers *dimension
	tags      counts[string]
	keys      counts[string]
	errors    counts[string]
	tools     counts[string]
	metadata  counts[wire.MetadataRow]
	wide      map[string]bool // metadata keys whose values some summary leaves out
	judged    []judged        // of the row counted last; its memory is used again
	defined   wire.ScoreDefinitions
}

// AnalyticsColumns are the columns that Analytics looks at.
var AnalyticsColumns = tallyColumns | rowcode.ColumnsOf(
	rowcode.ColumnTime, rowcode.ColumnModel, rowcode.ColumnProvider, rowcode.ColumnTemplate,
	rowcode.ColumnTags, rowcode.ColumnMetadata, rowcode.ColumnErrorType, rowcode.ColumnTools,
)

// BriefColumns are the columns that brief Analytics look at.
var BriefColumns = tallyColumns | rowcode.ColumnsOf(rowcode.ColumnTime, rowcode.ColumnMetadata)

// NewAnalytics returns empty sums for a question.
func NewAnalytics(q wire.StatisticsQuery) *Analytics {
	a := &Analytics{
		clock:       newClock(q),
		metadataKey: q.MetadataKey,
		noMetadata:  q.Brief,
		brief:       q.Brief,
		tags:        make(counts[string]),
		keys:        make(counts[string]),
		errors:      make(counts[string]),
		tools:       make(counts[string]),
		metadata:    make(counts[wire.MetadataRow]),
		wide:        make(map[string]bool),
		defined:     q.Definitions,
	}
	a.whole = newDimension(&a.clock).bySeries()
	a.models = newDimension(&a.clock)
	a.templates = newDimension(&a.clock)
	a.providers = newDimension(&a.clock)

	return a
}

// named returns the dimensions that have names, in the order of a summary.
func (a *Analytics) named() []*dimension {
	return []*dimension{a.models, a.templates, a.providers}
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
	a.whole.add(part{}, bucket, row, a.judged, n)
	if t := a.whole.at(part{}, bucket); t != nil {
		t.addStatus(row.Status, n)
	}
	if !a.brief {
		a.countNamed(row, bucket, n)
	}

	for _, m := range row.Metadata {
		a.keys.add(m.Key, row, n)
		if (a.metadataKey == "" || a.metadataKey == m.Key) && !a.wide[m.Key] && !a.noMetadata {
			a.metadata.add(m, row, n)
		}
	}
}

// countNamed counts a row n times by what it has names of.
func (a *Analytics) countNamed(row *wire.Row, bucket, n int64) {
	a.models.add(part{value: row.Engine}, bucket, row, a.judged, n)
	a.providers.add(part{value: row.Provider}, bucket, row, a.judged, n)
	if row.PromptName != nil {
		a.templates.add(part{value: *row.PromptName}, bucket, row, a.judged, n)
	}

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
}

// addStatus adds n to how often a status came, unless it is one too many. Callers choose statuses
// freely, so without a bound the answer could grow with every row.
func (t *tally) addStatus(status string, n int64) {
	if t.statuses == nil {
		t.statuses = make(map[string]int64)
	}
	if _, known := t.statuses[status]; known || len(t.statuses) < wire.AnalyticsListMax {
		t.statuses[status] += n
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

	for _, t := range a.whole.by[part{}] {
		maps.DeleteFunc(t.statuses, func(_ string, n int64) bool { return n == 0 })
	}
}

// rebucket moves everything to the clock's longer buckets.
func (a *Analytics) rebucket() {
	a.whole.rebucket()
	for _, d := range a.named() {
		d.rebucket()
	}
}

// Answer returns the sums in the peer's form.
func (a *Analytics) Answer() wire.Analytics {
	a.prune()

	// The total is the sum of the series, so that both always agree.
	series := a.whole.by[part{}]
	sum := series.sum()
	scores := a.whole.scoresOf(part{}).summaries(scoreNamesMax, a.defined)

	w := wire.Analytics{
		Success:             true,
		ChartInterval:       a.clock.interval(),
		PercentileError:     wire.PercentileError,
		MetadataKeysWide:    sortedKeys(a.wide),
		AverageLatency:      sum.latency.mean(),
		TotalCost:           sum.cost(),
		TotalTokens:         sum.tokens(),
		TotalRequests:       sum.requests,
		TotalCachedTokens:   sum.cached,
		TotalCacheWrites:    sum.written,
		TotalThinkingTokens: sum.thinking,
		Overall:             sum.totals(scores),
		Scores:              scores,
	}

	// Without input there is no ratio; 0 would read as a cache that never hits.
	if sum.input > 0 {
		ratio := float64(sum.cached) / float64(sum.input)
		w.CacheTokenRatio = &ratio
	}

	a.series(&w, series)
	w.MetadataKeysTop = []wire.KeyCount{}
	for _, key := range a.keys.top(byRequests, strings.Compare) {
		w.MetadataKeysTop = append(w.MetadataKeysTop, wire.KeyCount{Key: key, Requests: a.keys[key].requests})
	}
	if !a.brief {
		a.dimensions(&w)
		a.breakdowns(&w)
	}

	return w
}

// series fills in what the answer has by bucket. Lists and maps of an answer are never
// nil, because clients of the peer do not expect null.
func (a *Analytics) series(w *wire.Analytics, series buckets) {
	w.Stats = []wire.AnalyticsStat{}
	w.Latency = wire.LatencyByDay{
		Average: map[string]float64{},
		P50:     map[string]float64{},
		P90:     map[string]float64{},
		P95:     map[string]float64{},
		P99:     map[string]float64{},
	}

	// One limit for all buckets: a name must not come and go along the chart.
	_, names := scoreLimits([]share{{scores: &scoreSums{}, by: series}})

	for _, at := range series.sorted() {
		t, date := series[at], a.clock.date(at)
		w.Stats = append(w.Stats, wire.AnalyticsStat{
			Date:           date,
			DateLabel:      date,
			Requests:       t.requests,
			Tokens:         t.tokens(),
			InputTokens:    t.input,
			OutputTokens:   t.output,
			Cost:           t.cost(),
			Latency:        t.latency.mean(),
			CachedTokens:   t.cached,
			CacheWrites:    t.written,
			ThinkingTokens: t.thinking,
			StatusCounts:   maps.Clone(t.statuses),
			Scores:         t.scores.summaries(names, a.defined),
		})

		// A bucket whose rows have no latency has no point: 0 would look like a fast one.
		if t.latency.total > 0 {
			w.Latency.Average[date] = *t.latency.mean()
			w.Latency.P50[date] = *t.latency.quantile(0.5)
			w.Latency.P90[date] = *t.latency.quantile(0.9)
			w.Latency.P95[date] = *t.latency.quantile(0.95)
			w.Latency.P99[date] = *t.latency.quantile(0.99)
		}
	}
}

// dimensions fills in what the answer has by model, template and provider.
func (a *Analytics) dimensions(w *wire.Analytics) {
	w.MostUsedModels, w.MostUsedPromptTemplates = []wire.Pair{}, []wire.TemplateCount{}
	for _, s := range top(a.models) {
		w.MostUsedModels = append(w.MostUsedModels, wire.Pair{Name: s.name.value, Value: float64(s.sum.requests)})
	}

	w.PromptBreakdown, w.ProviderBreakdown = []wire.Breakdown{}, []wire.Breakdown{}
	for _, s := range top(a.templates) {
		w.MostUsedPromptTemplates = append(w.MostUsedPromptTemplates, wire.TemplateCount{
			PromptID:   s.name.value,
			Requests:   s.sum.requests,
			PromptName: &s.name.value,
		})
		part := s.sum.breakdown()
		part.PromptID = s.name.value
		w.PromptBreakdown = append(w.PromptBreakdown, part)
	}
	for _, s := range top(a.providers) {
		part := s.sum.breakdown()
		part.Provider = s.name.value
		w.ProviderBreakdown = append(w.ProviderBreakdown, part)
	}

	w.ModelRequestsByDay, w.LatencyByModelByDay, w.ByModel = a.split(a.models)
	w.PromptTemplateRequestsByDay, w.LatencyByPromptTemplateByDay, w.ByTemplate = a.split(a.templates)
	w.ProviderRequestsByDay, w.LatencyByProviderByDay, w.ByProvider = a.split(a.providers)
}

// breakdown returns the count in the peer's form, without a name.
func (c *count) breakdown() wire.Breakdown {
	return wire.Breakdown{
		Requests:     c.requests,
		Cost:         c.cost(),
		Tokens:       c.tokens(),
		InputTokens:  c.input,
		OutputTokens: c.output,
	}
}

// top returns the names of a dimension with the most requests.
func top(d *dimension) []share {
	all := d.shares()
	return all[:min(len(all), wire.AnalyticsListMax)]
}

// split returns a dimension's requests, latencies and totals by name.
func (a *Analytics) split(d *dimension) (
	requests map[string][]wire.Pair, latency map[string]wire.DimensionLatency, totals map[string]wire.Totals,
) {
	// No more names than the lists have: a drawing of more cannot be read.
	requests = make(map[string][]wire.Pair)
	latency = make(map[string]wire.DimensionLatency)
	totals = make(map[string]wire.Totals)
	parts := top(d)
	names, _ := scoreLimits(parts)

	for _, s := range parts {
		name := s.name.value
		l := wire.DimensionLatency{
			Average: []wire.Pair{},
			P50:     []wire.Pair{},
			P90:     []wire.Pair{},
			P95:     []wire.Pair{},
		}
		for _, at := range s.by.sorted() {
			date, h := a.clock.date(at), &s.by[at].latency
			n := float64(s.by[at].requests)
			requests[name] = append(requests[name], wire.Pair{Name: date, Value: n})

			// As in series, a bucket without a latency has no point.
			if h.total == 0 {
				continue
			}
			l.Average = append(l.Average, wire.Pair{Name: date, Value: *h.mean()})
			l.P50 = append(l.P50, wire.Pair{Name: date, Value: *h.quantile(0.5)})
			l.P90 = append(l.P90, wire.Pair{Name: date, Value: *h.quantile(0.9)})
			l.P95 = append(l.P95, wire.Pair{Name: date, Value: *h.quantile(0.95)})
		}

		latency[name] = l
		totals[name] = s.by.sum().totals(s.scores.summaries(names, a.defined))
	}

	return requests, latency, totals
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// breakdowns fills in what the answer has by tag, value of metadata, error type and tool.
func (a *Analytics) breakdowns(w *wire.Analytics) {
	w.TagsBreakdown = []wire.Breakdown{}
	for _, tag := range a.tags.top(byRequests, strings.Compare) {
		part := a.tags[tag].breakdown()
		part.Tag = tag
		w.TagsBreakdown = append(w.TagsBreakdown, part)
	}

	w.MetadataValueBreakdown = []wire.MetadataCost{}
	for _, m := range a.metadata.top(byCost, rowcode.CompareMetadata) {
		c, value := a.metadata[m], rowcode.ShownValue(m.Value)

		// Where only one key was asked for, it would be the same before every value.
		label := value
		if a.metadataKey == "" {
			label = m.Key + " = " + value
		}
		w.MetadataValueBreakdown = append(w.MetadataValueBreakdown, wire.MetadataCost{
			Key:       m.Key,
			Value:     value,
			Label:     label,
			Requests:  c.requests,
			Cost:      c.cost(),
			Truncated: rowcode.IsReference(m.Value),
		})
	}

	w.ErrorTypes = []wire.ErrorCount{}
	for _, name := range a.errors.top(byRequests, strings.Compare) {
		n := a.errors[name].requests
		w.ErrorTypes = append(w.ErrorTypes, wire.ErrorCount{ErrorType: name, Requests: n})
	}
	w.ToolsUsageBars = []wire.NameCount{}
	for _, name := range a.tools.top(byRequests, strings.Compare) {
		n := a.tools[name].requests
		w.ToolsUsageBars = append(w.ToolsUsageBars, wire.NameCount{Name: name, Requests: n})
	}
}
