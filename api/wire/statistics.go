package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Buckets are the intervals that a series can be divided into. Days are in UTC.
var Buckets = []string{"second", "minute", "hour", "day"}

// StatisticsQuery is the body of POST /api/public/v2/requests/analytics. It counts the
// records that a search with the same filter_group and q would find.
type StatisticsQuery struct {
	// The conditions that records must match.
	FilterGroup *Filter `json:"filter_group,omitempty"`
	// Words in the prompt or response: a line without keys.
	Q string `json:"q,omitempty" jsonschema:"maxLength=1000"`
	FilterLine

	// The interval of a series. The default depends on the time that the records span.
	Bucket string `json:"bucket,omitempty" jsonschema:"enum=second,enum=minute,enum=hour,enum=day"`
	// The key whose values are counted. The default is the most frequent one.
	MetadataKey string `json:"metadata_cost_breakdown_key,omitempty" jsonschema:"maxLength=1024"`
	// The name of a score whose authors are compared by what they both scored.
	ScoreAgreement string `json:"score_agreement,omitempty" jsonschema:"maxLength=512"`

	// PointsMax bounds the series if Bucket is "": its intervals may then have any
	// length. 0: use Buckets.
	PointsMax int `json:"-"`

	// From and To make the intervals long enough for a series of this time, if the records span less.
	From, To time.Time `json:"-"`

	// Budget is how long may be counted: records may have to be counted one by one. When the time is
	// up, the answer is Incomplete. 0: until the end.
	Budget time.Duration `json:"-"`

	// Brief leaves out all but the totals, their series and the keys of metadata: what pages show takes a part of
	// the time.
	Brief bool `json:"-"`

	// Definitions are those of the scores, which decide what fits.
	Definitions ScoreDefinitions `json:"-"`
}

// PartsQuery is the body of POST /api/public/v2/requests/statistics.
type PartsQuery struct {
	StatisticsQuery

	// By names the values that records are summed up by: version, template, model, provider, status, tag, or
	// a key of the metadata, such as metadata.plan. The default is version, and nothing if versions are
	// compared.
	By string `json:"by,omitempty" read:"-"`
	// Two versions, of which the second may be better.
	Compare []int `json:"compare,omitempty" read:"-"`
	// The name of the template that has these versions.
	Template string `json:"prompt_name,omitempty" jsonschema:"maxLength=512"`

	// SeriesMax bounds the values with a series to the first so many, however many values there are, and
	// asks for Statistics.All. 0: all have a series, in longer intervals if there are too many.
	SeriesMax int `json:"-"`
	// Rank returns by what the values are ordered, the highest first: of anything but latencies and scores.
	// Nil: by requests.
	Rank func(t *Totals) float64 `json:"-"`
	// ScoreSeries asks for the scores of series. Without them, some sums are stored already.
	ScoreSeries bool `json:"-"`
}

// IsSummed reports whether a store has sums of what is asked for.
func (q *PartsQuery) IsSummed() bool {
	return q.SeriesMax > 0 && !q.ScoreSeries && slices.Contains([]string{"model", "template", "provider"}, q.By)
}

// PartsBy are what PartsQuery.By can be.
var PartsBy = []string{"version", "template", "model", "provider", "status", "tag", ByMetadata + "KEY"}

// ByMetadata precedes a metadata key in PartsQuery.By.
const ByMetadata = "metadata."

// check reads what to sum up by, and what to compare.
func (q *PartsQuery) check(f *fields) {
	q.Compare = f.versions("compare")
	if q.Compare != nil && q.Template == "" {
		f.fault("prompt_name", "is missing")
	}
	q.By = f.fitting("by", PartsBy, func(by string) bool {
		key, ok := strings.CutPrefix(by, ByMetadata)
		return ok && key != "" || slices.Contains(PartsBy, by)
	})
}

// versions reads two versions of a template; nil if they are absent.
func (f *fields) versions(name string) []int {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}

	var two []int
	if json.Unmarshal(v, &two) != nil || len(two) != 2 || min(two[0], two[1]) < 1 || two[0] == two[1] {
		f.fault(name, "must be two different versions, such as [1, 2]")
	}
	return two
}

// Progress is how many of the matching records an answer counts.
type Progress struct {
	// Whether time ran out: records before `since` are not counted.
	Incomplete bool `json:"incomplete,omitempty"`

	// Since is when the oldest counted record started, if the answer is incomplete;
	// zero if none is counted yet.
	Since time.Time `json:"since,omitzero"`
}

// Percentiles are percentiles of latencies, in seconds; nil if no latency is known. The
// relative error of each is at most PercentileError; the mean is exact.
type Percentiles struct {
	Mean *float64 `json:"mean"`
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
}

// PercentileError is the maximum relative error of the percentiles of latencies.
const PercentileError = 0.01

// Totals sums up a set of records. Counts and sums are exact.
type Totals struct {
	Requests       int64       `json:"requests"`
	Errors         int64       `json:"errors"`             // requests with a status other than SUCCESS
	ErrorRate      float64     `json:"error_rate"`         // errors as a share of requests; 0 without requests
	Cost           float64     `json:"cost"`               // US dollars, of requests with a price
	Unpriced       int64       `json:"unpriced"`           // requests with unknown cost, without the unbilled
	Unbilled       int64       `json:"unbilled"`           // failed requests without tokens: they cost nothing
	InputTokens    int64       `json:"input_tokens"`       // of requests with known tokens
	OutputTokens   int64       `json:"output_tokens"`      // of requests with known tokens
	CachedTokens   int64       `json:"cached_tokens"`      // part of the input tokens
	CacheWrites    int64       `json:"cache_write_tokens"` // part of the input tokens
	ThinkingTokens int64       `json:"thinking_tokens"`    // part of the output tokens
	Latency        Percentiles `json:"latency"`            // seconds
	Scores         []ScoreSum  `json:"scores,omitempty"`   // sorted by name
}

// ScoresOther names the sum of scores beyond the first 200 names.
const ScoresOther = "(other)"

// ScoreNames returns the names of scores, the most frequent first.
func ScoreNames(all []ScoreSum) []string {
	counts := map[string]int64{}
	for _, s := range all {
		counts[s.Name] += s.Count
	}

	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// Priced returns how many requests have a price.
func (t Totals) Priced() int64 { return t.Requests - t.Unpriced - t.Unbilled }

// SumOf returns the sum of a name; nil if there is none.
func SumOf(all []ScoreSum, name string) *ScoreSum {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}

	return nil
}

// Tokens returns the tokens of input and output together. It does not wrap: callers may
// claim any number.
func (t Totals) Tokens() int64 {
	if t.OutputTokens > math.MaxInt64-t.InputTokens {
		return math.MaxInt64
	}

	return t.InputTokens + t.OutputTokens
}

// ScoreSum sums up the scores of one name. Those that several authors gave to one request count once,
// by their mean, except for categories. Counts and means are exact. The other numbers are exact for
// integers up to 128, and otherwise by less than 0.8 %.
type ScoreSum struct {
	Name  string  `json:"name"` // the scores' name
	Kind  string  `json:"kind"` // number, boolean or category: that of the definition, else of the most scores
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"` // of booleans the share of true, of categories 0, as what follows
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	P50   float64 `json:"p50"`

	// The counts of ten equal parts, each without its upper end, which only the last one has.
	Histogram [10]int64 `json:"histogram"`
	From      *float64  `json:"from,omitempty"` // where the histogram begins; absent: at 0
	To        *float64  `json:"to,omitempty"`   // where it ends; absent: at 100

	Categories []CategoryCount `json:"categories,omitempty"` // the most frequent first
	// How many scores are of another kind, or not of the definition's range or categories.
	Unfit int64 `json:"unfit,omitempty"`
}

// String returns the mean of numbers, the share of true, or the shares of the most frequent categories.
func (s ScoreSum) String() string {
	switch {
	case s.Count == 0:
		return "-"
	case s.Kind == "boolean":
		return TrueShare(s.Mean)
	case s.Kind == "category":
		var shares []string
		for _, c := range s.Categories[:min(len(s.Categories), 3)] {
			shares = append(shares, fmt.Sprintf("%s %.0f %%", c.Value, 100*c.Share))
		}
		return strings.Join(shares, ", ")
	case s.From != nil || s.To != nil:
		return strconv.FormatFloat(s.Mean, 'g', 3, 64)
	}

	return fmt.Sprintf("%.1f", s.Mean)
}

// TrueShare returns the share of true of a boolean, as people read it everywhere.
func TrueShare(share float64) string { return fmt.Sprintf("%.0f %% true", 100*share) }

// MostFrequent returns the most frequent category; "" if there is none.
func (s ScoreSum) MostFrequent() string {
	if len(s.Categories) == 0 {
		return ""
	}
	return s.Categories[0].Value
}

// Charted returns what a chart shows: the mean, or the percentage of true or of a category. It is NaN if
// there is none.
func (s ScoreSum) Charted(category string) float64 {
	share := math.NaN()
	switch {
	case s.Count == 0:
		return share
	case s.Kind == "number":
		return s.Mean
	case s.Kind == "boolean":
		return 100 * s.Mean
	}
	for _, c := range s.Categories {
		if c.Value == category {
			share = 100 * c.Share
		}
	}

	return share
}

// CategoryCount is how often a category came.
type CategoryCount struct {
	Value string  `json:"value"` // the category, or (other)
	Count int64   `json:"count"`
	Share float64 `json:"share"` // of all categories of the name
}

// BucketTotals are the totals of one interval of a series.
type BucketTotals struct {
	Date string `json:"date"` // its beginning: 2025-03-15, or 2025-03-15T10:00:00Z
	Totals
}

// ValueTotals are the totals of one value, such as a model or a version of a template.
type ValueTotals struct {
	Value   string `json:"value"`   // of a version, the template's name
	Version *int   `json:"version"` // null: of anything else, or links whose version is unknown
	Totals
	Series []BucketTotals `json:"series"` // buckets without requests are left out

	Truncated bool `json:"truncated,omitempty"` // the value is the beginning of a long one
}

// Statistics answers POST /api/public/v2/requests/statistics.
type Statistics struct {
	Success       bool          `json:"success"`
	ChartInterval ChartInterval `json:"chartInterval,omitzero"` // absent if nothing is summed up

	// The versions, sorted by template and number. Of anything else the 50 values with the most requests,
	// the most first.
	Items           []ValueTotals `json:"items"`
	PercentileError float64       `json:"percentile_error"` // the maximum relative error of percentiles

	// How many requests are of values that are not listed.
	LeftOut int64 `json:"left_out,omitempty"`
	Progress

	Comparison *VersionComparison `json:"comparison,omitempty"` // if versions are compared
	Warned

	// All is the requests that were looked at, those without a value included. Nil unless asked for.
	All *ValueTotals `json:"-"`
}

// ChartInterval says how a series is divided.
type ChartInterval struct {
	Interval      string `json:"interval"` // one of second, minute, hour and day
	BucketSizeMS  int64  `json:"bucketSizeMs"`
	BucketMinutes *int64 `json:"bucketMinutes"` // null for seconds and days
}

// Analytics answers POST /api/public/v2/requests/analytics. The peer's names come first,
// ours follow. Lists have at most AnalyticsListMax items.
type Analytics struct {
	Success       bool          `json:"success"`
	ChartInterval ChartInterval `json:"chartInterval"`
	// The mean latency in seconds; null if none is known.
	AverageLatency *float64 `json:"averageLatency"`
	// US dollars, of the requests with a known price.
	TotalCost float64 `json:"totalCost"`
	// Input and output tokens together.
	TotalTokens int64 `json:"totalTokens"`
	// How many requests match.
	TotalRequests int64 `json:"totalRequests"`
	// Input tokens that came from the provider's cache.
	TotalCachedTokens int64 `json:"totalCachedTokens"`
	// Input tokens that were written to the provider's cache.
	TotalCacheWrites int64 `json:"totalCacheWriteTokens"`
	// Output tokens that the model thought with.
	TotalThinkingTokens int64    `json:"totalThinkingTokens"`
	CacheTokenRatio     *float64 `json:"cacheTokenRatio"` // null without input tokens

	// The series, one item for each interval.
	Stats []AnalyticsStat `json:"stats"`
	// The models with the most requests, and how many.
	MostUsedModels []Pair `json:"mostUsedModels"`
	// Requests by date, of each model.
	ModelRequestsByDay map[string][]Pair `json:"modelRequestsByDay"`
	// The templates with the most requests.
	MostUsedPromptTemplates []TemplateCount `json:"mostUsedPromptTemplates"`
	// Requests by date, of each template.
	PromptTemplateRequestsByDay map[string][]Pair `json:"promptTemplateRequestsByDay"`
	// Requests by date, of each provider.
	ProviderRequestsByDay map[string][]Pair `json:"providerRequestsByDay"`
	// Latencies in seconds, by date.
	Latency LatencyByDay `json:"latency"`
	// Latencies in seconds, of each model.
	LatencyByModelByDay map[string]DimensionLatency `json:"latencyByModelByDay"`
	// Latencies in seconds, of each template.
	LatencyByPromptTemplateByDay map[string]DimensionLatency `json:"latencyByPromptTemplateByDay"`
	// Latencies in seconds, of each provider.
	LatencyByProviderByDay map[string]DimensionLatency `json:"latencyByProviderByDay"`
	// Requests by type of error.
	ErrorTypes []ErrorCount `json:"errorTypes"`
	// Requests, cost and tokens by provider.
	ProviderBreakdown []Breakdown `json:"providerBreakdown"`
	// Requests, cost and tokens by template.
	PromptBreakdown []Breakdown `json:"promptBreakdown"`
	// Requests, cost and tokens by tag.
	TagsBreakdown []Breakdown `json:"tagsBreakdown"`
	// The metadata keys of the most requests.
	MetadataKeysTop []KeyCount `json:"metadataKeysTop"`
	// The tools that the most requests called.
	ToolsUsageBars []NameCount `json:"toolsUsageBars"`
	// Requests and cost by value of a metadata key.
	MetadataValueBreakdown []MetadataCost `json:"metadataValueBreakdown"`

	// All requests together.
	Overall Totals `json:"overall"`
	// The same, by model.
	ByModel map[string]Totals `json:"byModel"`
	// The same, by provider.
	ByProvider map[string]Totals `json:"byProvider"`
	// The same, by template.
	ByTemplate map[string]Totals `json:"byTemplate"`
	Scores     []ScoreSum        `json:"scores"`

	// How far the authors of the score named in score_agreement agree.
	ScoreAgreement *ScoreAgreement `json:"scoreAgreement,omitempty"`

	// Keys with too many values to be summed up, such as session ids. They are summed up
	// with a filter, or as the `metadata_cost_breakdown_key`.
	MetadataKeysWide []string `json:"metadataKeysWide,omitempty"`
	PercentileError  float64  `json:"percentileError"` // the maximum relative error of percentiles
	Progress
	Warned
}

// Series returns what the answer has by interval in our form, without the statuses.
func (a Analytics) Series() (series []BucketTotals) {
	at := func(values map[string]float64, date string) *float64 {
		if v, ok := values[date]; ok {
			return &v
		}
		return nil
	}
	for _, s := range a.Stats {
		t := Totals{
			Requests:       s.Requests,
			Errors:         s.Requests - s.StatusCounts["SUCCESS"],
			Cost:           s.Cost,
			InputTokens:    s.InputTokens,
			OutputTokens:   s.OutputTokens,
			CachedTokens:   s.CachedTokens,
			CacheWrites:    s.CacheWrites,
			ThinkingTokens: s.ThinkingTokens,
			Latency: Percentiles{
				Mean: s.Latency,
				P50:  at(a.Latency.P50, s.Date),
				P90:  at(a.Latency.P90, s.Date),
				P95:  at(a.Latency.P95, s.Date),
				P99:  at(a.Latency.P99, s.Date),
			},
			Scores: s.Scores,
		}
		if t.Requests > 0 {
			t.ErrorRate = float64(t.Errors) / float64(t.Requests)
		}
		series = append(series, BucketTotals{s.Date, t})
	}

	return series
}

// AnalyticsListMax bounds each list and map of Analytics.
const AnalyticsListMax = 50

// AnalyticsStat is one interval of the series.
type AnalyticsStat struct {
	// The beginning of the interval: a day, or a moment.
	Date           string           `json:"date"`
	DateLabel      string           `json:"dateLabel"` // the beginning, for an axis
	Requests       int64            `json:"requests"`
	Tokens         int64            `json:"tokens"`
	InputTokens    int64            `json:"inputTokens"`
	OutputTokens   int64            `json:"outputTokens"`
	Cost           float64          `json:"cost"`
	Latency        *float64         `json:"latency"`          // the mean in seconds; null if none is known
	CachedTokens   int64            `json:"cachedTokens"`     // input tokens that came from the provider's cache
	CacheWrites    int64            `json:"cacheWriteTokens"` // input tokens that were written to it
	ThinkingTokens int64            `json:"thinkingTokens"`   // output tokens that the model thought with
	StatusCounts   map[string]int64 `json:"statusCounts"`     // requests by status
	Scores         []ScoreSum       `json:"scores,omitempty"`
}

// LatencyByDay maps the date of an interval to latencies in seconds.
type LatencyByDay struct {
	Average map[string]float64 `json:"average_latency"`
	P50     map[string]float64 `json:"p50_latency"`
	P90     map[string]float64 `json:"p90_latency"`
	P95     map[string]float64 `json:"p95_latency"`
	P99     map[string]float64 `json:"p99_latency"`
}

// DimensionLatency has the latencies of one model, template or provider: pairs of a date
// and seconds.
type DimensionLatency struct {
	Average []Pair `json:"average_latency"`
	P50     []Pair `json:"p50_latency"`
	P90     []Pair `json:"p90_latency"`
	P95     []Pair `json:"p95_latency"`
}

// Breakdown is one provider's, template's or tag's part of the total. Exactly one of
// provider, promptId and tag is set.
type Breakdown struct {
	// The provider, if it is one's part.
	Provider     string  `json:"provider,omitempty"`
	PromptID     string  `json:"promptId,omitempty"` // the template's name, if it is one's part
	Tag          string  `json:"tag,omitempty"`      // the tag, if it is one's part
	Requests     int64   `json:"requests"`
	Cost         float64 `json:"cost"`
	Tokens       int64   `json:"tokens"`
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
}

// TemplateCount counts the requests of a template.
type TemplateCount struct {
	PromptID   string  `json:"promptId"`
	Requests   int64   `json:"requests"`
	PromptName *string `json:"promptName"`
}

// ErrorCount counts the requests with one error type.
type ErrorCount struct {
	ErrorType string `json:"errorType"`
	Requests  int64  `json:"requests"`
}

// KeyCount counts the requests with one metadata key.
type KeyCount struct {
	Key      string `json:"key"` // the key of the metadata
	Requests int64  `json:"requests"`
}

// NameCount counts the requests that called one tool.
type NameCount struct {
	Name     string `json:"name"` // the tool's name
	Requests int64  `json:"requests"`
}

// MetadataCost is the cost of the requests with one value of a metadata key.
type MetadataCost struct {
	Key      string  `json:"key"` // the key of the metadata
	Value    string  `json:"value"`
	Label    string  `json:"label"` // the value, or "key = value"
	Requests int64   `json:"requests"`
	Cost     float64 `json:"cost"`

	Truncated bool `json:"truncated,omitempty"` // the value is the beginning of a long one
}

// Pair is a name with a number; in JSON an array of the two.
type Pair struct {
	Name  string
	Value float64
}

// MarshalJSON writes ["name", value].
func (p Pair) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.Name, p.Value}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Pair) UnmarshalJSON(raw []byte) error {
	parts := []any{&p.Name, &p.Value}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("a pair has 2 parts, not %d", len(parts))
	}

	return nil
}

// ComparedMax is how many calls of a version are compared: the newest.
const ComparedMax = 20_000

// TogetherMin is how many calls of each version are compared at least: of when both ran.
const TogetherMin = 50

// VersionComparison is how version B of a template differs from version A, metric by metric. Intervals
// are of 95 %. Verdicts are corrected for the number of metrics.
type VersionComparison struct {
	A       ComparedCalls    `json:"a"`       // the calls of version A
	B       ComparedCalls    `json:"b"`       // the calls of version B
	Metrics []ComparedMetric `json:"metrics"` // scores first, the most frequent before the others

	// Whether both ran side by side, with enough calls. If so, only these calls are compared, hour by hour;
	// if not, all are shown, without intervals and verdicts.
	Together bool   `json:"together"`
	Note     string `json:"note"` // when each version ran, whether most of its errors are from one day, and together
}

// ComparedCalls are the calls of a version that were compared.
type ComparedCalls struct {
	Version  int   `json:"version"`
	Requests int64 `json:"requests"`
	Progress       // incomplete if time ran out or there are more than ComparedMax
}

// ComparedMetric is how one metric differs between two versions.
type ComparedMetric struct {
	Metric string  `json:"metric"`         // score, errors, cost, latency_p50, latency_p95 or tokens
	Name   string  `json:"name,omitempty"` // of the score
	Method string  `json:"method"`         // welch for means, newcombe for shares, bootstrap for quantiles
	Better string  `json:"better"`         // which is better: higher or lower; "" for neither
	CountA int64   `json:"count_a"`        // values of version A
	CountB int64   `json:"count_b"`        // values of version B
	A      float64 `json:"a"`              // its mean, share or percentile: of one call, in US dollars and seconds
	B      float64 `json:"b"`              // the same of version B

	Difference float64 `json:"difference"` // B - A: of calls of the same hours if there is an interval

	Low     *float64 `json:"low"`              // of its 95 % interval; null if there are too few values
	High    *float64 `json:"high"`             // the upper end of that interval
	Verdict string   `json:"verdict"`          // better or worse for B, different, no_difference, too_few or ""
	Needed  int64    `json:"needed,omitempty"` // how many more values of each version would tell, if not too many
}

// IsShareOfTrue reports whether the metric is a score that is a boolean.
func (m ComparedMetric) IsShareOfTrue() bool {
	return m.Metric == "score" && (m.Method == "newcombe" || m.Method == MethodPairedShares)
}

// How the metrics of an experiment are compared.
const (
	MethodPairedMeans  = "paired-t"
	MethodPairedShares = "bonett-price"
)

// The verdicts of a ComparedMetric.
const (
	VerdictBetter       = "better"
	VerdictWorse        = "worse"
	VerdictDifferent    = "different" // where neither is better
	VerdictNoDifference = "no_difference"
	VerdictTooFew       = "too_few"
)
