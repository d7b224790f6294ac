package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Buckets are how long the parts of a series may be. Days are days of UTC.
var Buckets = []string{"second", "minute", "hour", "day"}

// StatisticsQuery is the body of POST /api/public/v2/requests/analytics and of a template's statistics. Its records are
// those that a search with the same filter_group and q would find.
type StatisticsQuery struct {
	FilterGroup *Filter `json:"filter_group,omitempty"` // what records must fit
	Q           string  `json:"q,omitempty"`            // words that prompt or response must hold, all of them, in any case
	// How long a part of a series is: second, minute, hour or day; it follows from the time that the records span, if it
	// is left out.
	Bucket string `json:"bucket,omitempty"`
	// The key whose values are counted; the most frequent one, if it is left out.
	MetadataKey string `json:"metadata_cost_breakdown_key,omitempty"`

	// PointsMax bounds the series where Bucket is "": its parts are then any even stretch of time. 0 for Buckets.
	PointsMax int `json:"-"`
	// Budget is how long the caller waits for records that are counted one by one, which a filter makes necessary. Then the
	// answer is Incomplete, and counting goes on for the next question with the same Key. 0: wait until the end.
	Budget time.Duration `json:"-"`
	// Key names the question where its filter changes with time, as "the last hour" does.
	Key string `json:"-"`
}

// DecodeStatistics reads a StatisticsQuery. sort_by and sort_order change nothing and are passed over.
func DecodeStatistics(object Object) (StatisticsQuery, error) {
	f := fields{object: object}
	q := StatisticsQuery{FilterGroup: f.filter(), Q: f.text("q", false, QueryRunesMax),
		MetadataKey: f.text("metadata_cost_breakdown_key", false, MetadataKeyRunesMax)}
	q.Bucket = f.oneOf("bucket", Buckets)
	return q, f.err()
}

// Progress is how much of what a question finds its answer counts.
type Progress struct {
	// Incomplete reports that time ran out: records older than Since are not counted.
	Incomplete bool `json:"incomplete,omitempty"`
	// Since is when the oldest counted record was accepted, if the answer is incomplete; zero if none is counted yet.
	Since time.Time `json:"since,omitzero"`
	// Counting reports that a later answer to the same question will count more.
	Counting bool `json:"-"`
	// AsOf is when an answer was counted that was kept since; zero for a new one.
	AsOf time.Time `json:"-"`
}

// SetProgress replaces the progress of the answer that it is part of.
func (p *Progress) SetProgress(now Progress) { *p = now }

// Percentiles of latencies, in seconds. They are nil when no latency is known. Each is at most PercentileError beside the
// true one, as a share of it; the mean is exact.
type Percentiles struct {
	Mean *float64 `json:"mean"`
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
}

// PercentileError is the bound of the relative error of every percentile of a latency.
const PercentileError = 0.01

// Totals are what is counted of any set of records. Counts and sums are exact.
type Totals struct {
	Requests       int64       `json:"requests"`
	Errors         int64       `json:"errors"`           // requests whose status is not SUCCESS
	ErrorRate      float64     `json:"error_rate"`       // errors as a share of requests; 0 without requests
	Cost           float64     `json:"cost"`             // US dollars, of requests that have a price
	Unpriced       int64       `json:"unpriced"`         // requests whose cost is unknown
	InputTokens    int64       `json:"input_tokens"`     // of requests whose tokens are known
	OutputTokens   int64       `json:"output_tokens"`    //
	CachedTokens   int64       `json:"cached_tokens"`    // part of the input tokens
	ThinkingTokens int64       `json:"thinking_tokens"`  // part of the output tokens
	Latency        Percentiles `json:"latency"`          // seconds
	Scores         []ScoreSum  `json:"scores,omitempty"` // sorted by name
}

// ScoresOther is the name of the sum of all scores whose names are too many to be told apart. A filter by name counts one of these.
const ScoresOther = "(other)"

// Tokens are those of input and output together, or the largest number where they are more. Each may be as large as a
// caller says.
func (t Totals) Tokens() int64 {
	if t.OutputTokens > math.MaxInt64-t.InputTokens {
		return math.MaxInt64
	}

	return t.InputTokens + t.OutputTokens
}

// ScoreSum is what is known of the scores of one name. All of it is exact.
type ScoreSum struct {
	Name      string    `json:"name"`
	Count     int64     `json:"count"`
	Mean      float64   `json:"mean"`
	Min       int       `json:"min"`
	Max       int       `json:"max"`
	P50       int       `json:"p50"`
	Histogram [10]int64 `json:"histogram"` // scores of 0 to 9, 10 to 19, ..., 90 to 100
}

// BucketTotals are the totals of one part of a series.
type BucketTotals struct {
	Date string `json:"date"` // when it begins: 2025-03-15, or 2025-03-15T10:00:00Z
	Totals
}

// VersionTotals are the totals of one version of a template.
type VersionTotals struct {
	Template string `json:"template"`
	Version  *int   `json:"version"` // null: links whose version is unknown
	Totals
	Series []BucketTotals `json:"series"` // buckets without requests are left out
}

// TemplateStatistics are the statistics by template and version, sorted by both.
type TemplateStatistics struct {
	Success         bool            `json:"success"`
	ChartInterval   ChartInterval   `json:"chartInterval"`
	Versions        []VersionTotals `json:"versions"`
	PercentileError float64         `json:"percentile_error"` // by how much percentiles may be off, as a share
	// VersionsLeftOut counts requests of versions beyond those that are listed.
	VersionsLeftOut int64 `json:"versions_left_out,omitempty"`
	Progress
}

// ChartInterval says how a series is cut.
type ChartInterval struct {
	Interval      string `json:"interval"` // one of second, minute, hour and day
	BucketSizeMS  int64  `json:"bucketSizeMs"`
	BucketMinutes *int64 `json:"bucketMinutes"` // null for seconds and days
}

// Analytics answers POST /api/public/v2/requests/analytics: the peer's names, and below them ours. Lists are cut to their
// first AnalyticsListMax.
type Analytics struct {
	Success             bool          `json:"success"`
	ChartInterval       ChartInterval `json:"chartInterval"`
	AverageLatency      *float64      `json:"averageLatency"`
	TotalCost           float64       `json:"totalCost"`
	TotalTokens         int64         `json:"totalTokens"`
	TotalRequests       int64         `json:"totalRequests"`
	TotalCachedTokens   int64         `json:"totalCachedTokens"`
	TotalThinkingTokens int64         `json:"totalThinkingTokens"`
	CacheTokenRatio     *float64      `json:"cacheTokenRatio"` // null without input tokens

	Stats                        []AnalyticsStat             `json:"stats"`
	MostUsedModels               []Pair                      `json:"mostUsedModels"`
	ModelRequestsByDay           map[string][]Pair           `json:"modelRequestsByDay"`
	MostUsedPromptTemplates      []TemplateCount             `json:"mostUsedPromptTemplates"`
	PromptTemplateRequestsByDay  map[string][]Pair           `json:"promptTemplateRequestsByDay"`
	ProviderRequestsByDay        map[string][]Pair           `json:"providerRequestsByDay"`
	Latency                      LatencyByDay                `json:"latency"`
	LatencyByModelByDay          map[string]DimensionLatency `json:"latencyByModelByDay"`
	LatencyByPromptTemplateByDay map[string]DimensionLatency `json:"latencyByPromptTemplateByDay"`
	LatencyByProviderByDay       map[string]DimensionLatency `json:"latencyByProviderByDay"`
	ErrorTypes                   []ErrorCount                `json:"errorTypes"`
	ProviderBreakdown            []Breakdown                 `json:"providerBreakdown"`
	PromptBreakdown              []Breakdown                 `json:"promptBreakdown"`
	TagsBreakdown                []Breakdown                 `json:"tagsBreakdown"`
	MetadataKeysTop              []KeyCount                  `json:"metadataKeysTop"`
	ToolsUsageBars               []NameCount                 `json:"toolsUsageBars"`
	MetadataValueBreakdown       []MetadataCost              `json:"metadataValueBreakdown"`

	Overall    Totals            `json:"overall"`
	ByModel    map[string]Totals `json:"byModel"`
	ByProvider map[string]Totals `json:"byProvider"`
	ByTemplate map[string]Totals `json:"byTemplate"`
	Scores     []ScoreSum        `json:"scores"`
	// MetadataKeysWide have so many values that these are not summed up, as the ids of sessions have; a filter, or the key in
	// metadata_cost_breakdown_key, sums them up all the same.
	MetadataKeysWide []string `json:"metadataKeysWide,omitempty"`
	PercentileError  float64  `json:"percentileError"` // by how much percentiles may be off, as a share; the rest is exact
	Progress
}

// AnalyticsListMax bounds each list and map of Analytics.
const AnalyticsListMax = 50

// AnalyticsStat is one part of the series.
type AnalyticsStat struct {
	Date           string           `json:"date"`
	DateLabel      string           `json:"dateLabel"`
	Requests       int64            `json:"requests"`
	Tokens         int64            `json:"tokens"`
	InputTokens    int64            `json:"inputTokens"`
	OutputTokens   int64            `json:"outputTokens"`
	Cost           float64          `json:"cost"`
	Latency        *float64         `json:"latency"`
	CachedTokens   int64            `json:"cachedTokens"`
	ThinkingTokens int64            `json:"thinkingTokens"`
	StatusCounts   map[string]int64 `json:"statusCounts"`
	Scores         []ScoreSum       `json:"scores,omitempty"`
}

// LatencyByDay maps the date of a bucket to seconds.
type LatencyByDay struct {
	Average map[string]float64 `json:"average_latency"`
	P50     map[string]float64 `json:"p50_latency"`
	P90     map[string]float64 `json:"p90_latency"`
	P95     map[string]float64 `json:"p95_latency"`
	P99     map[string]float64 `json:"p99_latency"`
}

// DimensionLatency has latencies of one model, template or provider: pairs of a date and seconds.
type DimensionLatency struct {
	Average []Pair `json:"average_latency"`
	P50     []Pair `json:"p50_latency"`
	P90     []Pair `json:"p90_latency"`
	P95     []Pair `json:"p95_latency"`
}

// Breakdown is a part of the whole; exactly one of provider, promptId and tag is there.
type Breakdown struct {
	Provider     string  `json:"provider,omitempty"`
	PromptID     string  `json:"promptId,omitempty"`
	Tag          string  `json:"tag,omitempty"`
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

// ErrorCount, KeyCount and NameCount count requests by what their names say.
type (
	ErrorCount struct {
		ErrorType string `json:"errorType"`
		Requests  int64  `json:"requests"`
	}
	KeyCount struct {
		Key      string `json:"key"`
		Requests int64  `json:"requests"`
	}
	NameCount struct {
		Name     string `json:"name"`
		Requests int64  `json:"requests"`
	}
)

// MetadataCost is the cost of the requests with one value of a metadata key.
type MetadataCost struct {
	Key      string  `json:"key"`
	Value    string  `json:"value"`
	Label    string  `json:"label"` // the value, or "key = value"
	Requests int64   `json:"requests"`
	Cost     float64 `json:"cost"`

	Truncated bool `json:"truncated,omitempty"` // the value is the beginning of a long one
}

// Pair is a name with a number; on the wire an array of the two.
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
