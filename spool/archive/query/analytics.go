package query

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Analytics sums up rows for wire.Analytics. The result depends on the rows, not on their order,
// as long as there are no more names than its bounds.
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
	wide      map[string]bool // keys of metadata whose values some summary leaves out
	scores    fewNames        // of scores that were counted
}

// AnalyticsColumns are the columns that Analytics looks at.
var AnalyticsColumns = tallyColumns | rowcode.ColumnsOf(rowcode.ColumnTime, rowcode.ColumnModel, rowcode.ColumnProvider, rowcode.ColumnTemplate, rowcode.ColumnTags, rowcode.ColumnMetadata,
	rowcode.ColumnErrorType, rowcode.ColumnTools)

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
		scores:      make(fewNames),
	}

	asked := scoresAsked(q.FilterGroup)
	a.whole = newDimension[struct{}](&a.clock, asked).bySeries()
	a.models = newDimension[string](&a.clock, asked)
	a.templates = newDimension[string](&a.clock, asked)
	a.providers = newDimension[string](&a.clock, asked)

	return a
}

// Add counts a row.
func (a *Analytics) Add(row *wire.Row) error {
	a.Reach(row.AcceptedAt)
	a.count(row, 1)
	if a.whole.leftOut > 0 {
		return errTooManyBuckets(a.clock.name())
	}
	return nil
}

// Reach makes buckets so long that there are not too many up to at. See Sums.
func (a *Analytics) Reach(at time.Time) {
	if a.clock.see(at) {
		a.recut()
	}
}

// count counts a row n times: once, or with -1 it takes back one that was counted.
func (a *Analytics) count(row *wire.Row, n int64) {
	bucket := a.clock.of(row.AcceptedAt)
	a.whole.add(struct{}{}, bucket, row, n)
	a.models.add(row.Engine, bucket, row, n)
	a.providers.add(row.Provider, bucket, row, n)
	if row.PromptName != nil {
		a.templates.add(*row.PromptName, bucket, row, n)
	}

	by := a.statuses[bucket]
	if by == nil {
		by = make(map[string]int64)
		a.statuses[bucket] = by
	}
	if _, known := by[row.Status]; known || len(by) < wire.AnalyticsListMax {
		by[row.Status] += n
	}

	// A name that a row has twice counts once.
	for i, tag := range row.Tags {
		if !contains(row.Tags[:i], tag) {
			a.tags.add(tag, row, n)
		}
	}
	if row.Status != "SUCCESS" {
		a.errors.add(cmp.Or(row.ErrorType, row.Status), row, n)
	}
	for i, tool := range row.ToolNames {
		if !contains(row.ToolNames[:i], tool) {
			a.tools.add(tool, row, n)
		}
	}
	for _, s := range row.Scores {
		a.scores.add(s.Name)
	}
	for _, m := range row.Metadata {
		a.keys.add(m.Key, row, n)
		if (a.metadataKey == "" || a.metadataKey == m.Key) && !a.wide[m.Key] {
			a.metadata.add(m, row, n)
		}
	}
}

// prune drops what was only taken back, and metadata whose values are not all known.
func (a *Analytics) prune() {
	a.whole.prune()
	a.models.prune()
	a.templates.prune()
	a.providers.prune()
	for _, c := range []counts[string]{a.tags, a.keys, a.errors, a.tools} {
		c.prune()
	}
	a.metadata.prune()
	maps.DeleteFunc(a.metadata, func(m wire.MetadataRow, _ *count) bool { return a.wide[m.Key] })
	for at, by := range a.statuses {
		maps.DeleteFunc(by, func(_ string, n int64) bool { return n == 0 })
		if len(by) == 0 {
			delete(a.statuses, at)
		}
	}
}

func contains(tags []string, tag string) bool {
	for _, t := range tags {
		if t == tag {
			return true
		}
	}
	return false
}

func (a *Analytics) recut() {
	a.whole.recut()
	a.models.recut()
	a.templates.recut()
	a.providers.recut()
	statuses := make(map[int64]map[string]int64)
	for at, by := range a.statuses {
		into := statuses[a.clock.floor(at)]
		if into == nil {
			into = make(map[string]int64)
			statuses[a.clock.floor(at)] = into
		}
		for status, n := range by {
			into[status] += n
		}
	}
	a.statuses = statuses
}

// Answer returns the sums in the peer's form.
func (a *Analytics) Answer() wire.Analytics {
	a.prune()
	series := a.whole.by[struct{}{}]
	sum := series.sum()
	scores := a.whole.scoresOf(struct{}{}).told(scoreNamesMax)
	w := wire.Analytics{Success: true, ChartInterval: a.clock.interval(), PercentileError: wire.PercentileError,
		MetadataKeysWide: sortedKeys(a.wide), AverageLatency: sum.latency.mean(), TotalCost: sum.cost(), TotalTokens: sum.tokens(), TotalRequests: sum.requests,
		TotalCachedTokens: sum.cached, TotalThinkingTokens: sum.thinking, Overall: sum.totals(scores), Scores: scores}

	if sum.input > 0 {
		ratio := float64(sum.cached) / float64(sum.input)
		w.CacheTokenRatio = &ratio
	}

	a.series(&w, series)
	a.dimensions(&w)
	a.breakdowns(&w)

	return w
}

func (a *Analytics) series(w *wire.Analytics, series buckets) {
	w.Stats = []wire.AnalyticsStat{}
	w.Latency = wire.LatencyByDay{Average: map[string]float64{}, P50: map[string]float64{}, P90: map[string]float64{}, P95: map[string]float64{}, P99: map[string]float64{}}
	_, names := scoresToldOf([]share[struct{}]{{scores: &scoreSums{}, by: series}})
	for _, at := range series.sorted() {
		t, date := series[at], a.clock.date(at)
		w.Stats = append(w.Stats, wire.AnalyticsStat{Date: date, DateLabel: date, Requests: t.requests, Tokens: t.tokens(),
			InputTokens: t.input, OutputTokens: t.output, Cost: t.cost(), Latency: t.latency.mean(), CachedTokens: t.cached,
			ThinkingTokens: t.thinking, StatusCounts: maps.Clone(a.statuses[at]), Scores: t.scores.told(names)})
		if t.latency.total > 0 {
			w.Latency.Average[date], w.Latency.P50[date] = *t.latency.mean(), *t.latency.quantile(0.5)
			w.Latency.P90[date], w.Latency.P95[date], w.Latency.P99[date] = *t.latency.quantile(0.9), *t.latency.quantile(0.95), *t.latency.quantile(0.99)
		}
	}
}

func (a *Analytics) dimensions(w *wire.Analytics) {
	w.MostUsedModels, w.MostUsedPromptTemplates = []wire.Pair{}, []wire.TemplateCount{}
	w.PromptBreakdown, w.ProviderBreakdown = []wire.Breakdown{}, []wire.Breakdown{}

	for _, s := range top(a.models) {
		w.MostUsedModels = append(w.MostUsedModels, wire.Pair{Name: s.name, Value: float64(s.sum.requests)})
	}
	for _, s := range top(a.templates) {
		w.MostUsedPromptTemplates = append(w.MostUsedPromptTemplates, wire.TemplateCount{PromptID: s.name, Requests: s.sum.requests, PromptName: &s.name})
		w.PromptBreakdown = append(w.PromptBreakdown, wire.Breakdown{PromptID: s.name, Requests: s.sum.requests, Cost: s.sum.cost(),
			Tokens: s.sum.tokens(), InputTokens: s.sum.input, OutputTokens: s.sum.output})
	}
	for _, s := range top(a.providers) {
		w.ProviderBreakdown = append(w.ProviderBreakdown, wire.Breakdown{Provider: s.name, Requests: s.sum.requests, Cost: s.sum.cost(),
			Tokens: s.sum.tokens(), InputTokens: s.sum.input, OutputTokens: s.sum.output})
	}
	w.ModelRequestsByDay, w.LatencyByModelByDay, w.ByModel = a.split(a.models)
	w.PromptTemplateRequestsByDay, w.LatencyByPromptTemplateByDay, w.ByTemplate = a.split(a.templates)
	w.ProviderRequestsByDay, w.LatencyByProviderByDay, w.ByProvider = a.split(a.providers)
}

func top(d *dimension[string]) []share[string] {
	all := d.shares(strings.Compare)
	return all[:min(len(all), wire.AnalyticsListMax)]
}

// split gives a dimension's series: requests, latencies and totals by name.
func (a *Analytics) split(d *dimension[string]) (requests map[string][]wire.Pair, latency map[string]wire.DimensionLatency, totals map[string]wire.Totals) {
	requests, latency, totals = make(map[string][]wire.Pair), make(map[string]wire.DimensionLatency), make(map[string]wire.Totals)
	parts := top(d)
	names, _ := scoresToldOf(parts)
	for _, s := range parts {
		l := wire.DimensionLatency{Average: []wire.Pair{}, P50: []wire.Pair{}, P90: []wire.Pair{}, P95: []wire.Pair{}}
		for _, at := range s.by.sorted() {
			date, h := a.clock.date(at), &s.by[at].latency
			requests[s.name] = append(requests[s.name], wire.Pair{Name: date, Value: float64(s.by[at].requests)})
			if h.total == 0 {
				continue
			}
			l.Average = append(l.Average, wire.Pair{Name: date, Value: *h.mean()})
			l.P50 = append(l.P50, wire.Pair{Name: date, Value: *h.quantile(0.5)})
			l.P90 = append(l.P90, wire.Pair{Name: date, Value: *h.quantile(0.9)})
			l.P95 = append(l.P95, wire.Pair{Name: date, Value: *h.quantile(0.95)})
		}
		latency[s.name], totals[s.name] = l, s.sum.totals(s.scores.told(names))
	}
	return requests, latency, totals
}

func (a *Analytics) breakdowns(w *wire.Analytics) {
	w.TagsBreakdown, w.MetadataKeysTop, w.MetadataValueBreakdown = []wire.Breakdown{}, []wire.KeyCount{}, []wire.MetadataCost{}
	w.ErrorTypes, w.ToolsUsageBars = []wire.ErrorCount{}, []wire.NameCount{}
	for _, tag := range a.tags.top(byRequests, strings.Compare) {
		c := a.tags[tag]
		w.TagsBreakdown = append(w.TagsBreakdown, wire.Breakdown{Tag: tag, Requests: c.requests, Cost: float64(c.costNanos) / 1e9,
			Tokens: plus(c.input, c.output), InputTokens: c.input, OutputTokens: c.output})
	}
	for _, key := range a.keys.top(byRequests, strings.Compare) {
		w.MetadataKeysTop = append(w.MetadataKeysTop, wire.KeyCount{Key: key, Requests: a.keys[key].requests})
	}
	for _, m := range a.metadata.top(byCost, rowcode.CompareMetadata) {
		c, value := a.metadata[m], rowcode.ShownValue(m.Value)
		label := value
		if a.metadataKey == "" {
			label = m.Key + " = " + value
		}
		w.MetadataValueBreakdown = append(w.MetadataValueBreakdown, wire.MetadataCost{
			Key: m.Key, Value: value, Label: label, Requests: c.requests, Cost: float64(c.costNanos) / 1e9,
			Truncated: rowcode.IsReference(m.Value),
		})
	}
	for _, name := range a.errors.top(byRequests, strings.Compare) {
		w.ErrorTypes = append(w.ErrorTypes, wire.ErrorCount{ErrorType: name, Requests: a.errors[name].requests})
	}
	for _, name := range a.tools.top(byRequests, strings.Compare) {
		w.ToolsUsageBars = append(w.ToolsUsageBars, wire.NameCount{Name: name, Requests: a.tools[name].requests})
	}
}
