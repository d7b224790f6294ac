package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// The labels of usage that come before those of metadata keys.
const (
	usedProject = iota
	UsedStatus
	UsedProvider
	UsedModel
	UsedTemplate
	UsedVersion
	usedFixed
)

// UsageKeysMax is how many metadata keys usage may be counted by.
const UsageKeysMax = 8

// UsedBy are the labels of a call: the fixed ones, then the values of the metadata keys.
type UsedBy [usedFixed + UsageKeysMax]string

// The facts of calls that are added up.
const (
	UsedRequests = iota
	UsedUnpriced
	UsedCost // in billionths of a dollar
	UsedInput
	UsedOutput
	UsedCached
	UsedCacheWrites
	UsedReasoning
	UsedTimed
	UsedMicroseconds
	UsedInputs  // 1 if it states its input tokens
	UsedOutputs // 1 if it states its output tokens
	usedFacts
)

// usedCorrected are the facts that are corrected: those before UsedInputs.
const usedCorrected = UsedInputs

// Used is what a call adds to each sum.
type Used [usedFacts]int64

// UsedCall is what a call counts for, and under which labels.
type UsedCall struct {
	By UsedBy
	Of Used
}

// usedQuantities are the names of what is corrected, and what makes its unit.
var usedQuantities = [usedCorrected]struct {
	name string
	unit float64
}{
	{"requests", 1}, {"unpriced", 1}, {"cost_dollars", 1e9}, {"input_tokens", 1}, {"output_tokens", 1},
	{"cached_tokens", 1}, {"cache_write_tokens", 1}, {"reasoning_tokens", 1}, {"timed_requests", 1}, {"seconds", 1e6},
}

// usedSeries is how many series one set of labels has at most: the sums, two for each correction, and the
// name of its project.
const usedSeries = 12 + 2*usedCorrected + 1

// usedBytesMax bounds the value of a label: what is longer is cut.
const usedBytesMax = 128

// UsageSeriesDefault is how many series usage has at most unless the operator says otherwise.
const UsageSeriesDefault = 20_000

// UsedOther stands for values of labels for which there was no space.
const UsedOther = "other"

// Usage counts what calls used, as counters of Prometheus. Its series, and so its memory, are bounded. It
// counts in integers, from zero at each start. A nil Usage counts nothing. Safe for concurrent use.
type Usage struct {
	keys    []string
	setsMax int

	requests, unpriced, cost, tokens, details, seconds, corrections, projects *prometheus.Desc

	mu    sync.Mutex
	sets  map[UsedBy]*usedSet // under mu
	names map[string]string   // of projects, by id; under mu
}

// usedSet is what the calls with one set of labels add up to.
type usedSet struct {
	since         time.Time
	sum, up, down Used
}

// labelSafe matches what the name of a label may not hold.
var labelSafe = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// NewUsage makes a Usage of at most so many series, which also counts by the values of some metadata
// keys. It fails if there are too many, or two that no label tells apart; the error says what they are.
func NewUsage(keys []string, seriesMax int) (*Usage, error) {
	if len(keys) > UsageKeysMax {
		return nil, fmt.Errorf("are more than %d metadata keys", UsageKeysMax)
	}
	labels := []string{
		"project", "status", "gen_ai_provider_name", "gen_ai_response_model", "template", "version",
	}
	for _, key := range keys {
		label := "metadata_" + labelSafe.ReplaceAllString(key, "_")
		if slices.Contains(labels, label) {
			return nil, fmt.Errorf("are keys of which two would have the label %s; leave one of them out", label)
		}
		labels = append(labels, label)
	}

	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, slices.Concat(labels, more), nil)
	}
	return &Usage{
		keys:     keys,
		setsMax:  max(seriesMax/usedSeries, 1),
		sets:     make(map[UsedBy]*usedSet),
		names:    make(map[string]string),
		requests: desc("promptspool_usage_requests_total", "Calls, each counted once, when a list first shows it."),
		unpriced: desc("promptspool_usage_unpriced_total",
			"Calls of unknown price, which the cost leaves out, but for those that failed without tokens."),
		cost: desc("promptspool_usage_cost_dollars_total", "What calls cost, in US dollars."),
		tokens: desc("gen_ai_client_token_usage", "Tokens of calls, by type. Input includes what a cache had, "+
			"output includes reasoning.", "gen_ai_token_type"),
		details: desc("promptspool_usage_token_details_total",
			"Tokens among those of gen_ai_client_token_usage: read from a cache or written to it (input), "+
				"or spent on reasoning (output).", "type"),
		seconds: desc("gen_ai_client_operation_duration_seconds", "How long calls took that state it."),
		corrections: desc("promptspool_usage_corrections_total",
			"What changed in calls after they were counted, because reports were joined, prices or metadata "+
				"changed, or they were deleted. To be added (up) to the other metrics and taken off (down).",
			"quantity", "direction"),
		projects: prometheus.NewDesc("promptspool_project_info",
			"Always 1, for each project with usage; its labels are the id that the other metrics have, and its name.",
			[]string{"project", "name"}, nil),
	}, nil
}

// Name notes the name of a project.
func (u *Usage) Name(project, name string) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.names[project] = name
}

// Keys returns the metadata keys that it counts by.
func (u *Usage) Keys() []string { return u.keys }

// SetKey sets the value of the nth metadata key.
func (c *UsedCall) SetKey(n int, value string) { c.By[usedFixed+n] = value }

// Count counts a call of a project that a list shows for the first time.
func (u *Usage) Count(project string, c UsedCall) {
	u.mu.Lock()
	defer u.mu.Unlock()

	c.By[usedProject] = project
	s := u.at(c.By)
	for i, n := range c.Of {
		// A counter cannot fall.
		s.sum[i] += max(n, 0)
		s.down[i] += max(-n, 0)
	}
}

// Correct notes that a call of a project that was counted counts for something else now. The zero UsedCall
// is one that no list shows.
func (u *Usage) Correct(project string, before, after UsedCall) {
	u.mu.Lock()
	defer u.mu.Unlock()

	before.By[usedProject], after.By[usedProject] = project, project
	if before.By == after.By {
		u.correct(after.By, after.Of.minus(before.Of))
		return
	}
	u.correct(before.By, Used{}.minus(before.Of))
	u.correct(after.By, after.Of)
}

func (u *Usage) correct(by UsedBy, change Used) {
	if change == (Used{}) {
		return
	}

	s := u.at(by)
	for i, n := range change {
		s.up[i] += max(n, 0)
		s.down[i] += max(-n, 0)
	}
}

func (f Used) minus(other Used) Used {
	for i, n := range other {
		f[i] -= n
	}
	return f
}

// at returns the sums of a set of labels. When space runs out, metadata become "other" first, then the
// template, then all.
func (u *Usage) at(by UsedBy) *usedSet {
	if s := u.sets[by]; s != nil {
		return s
	}

	for i, value := range by {
		by[i] = usedLabel(value)
	}
	for i, kept := range [...]int{usedFixed, UsedTemplate, 0} {
		if u.sets[by] != nil || len(u.sets)+1 < u.setsMax*(i+2)/4 {
			break
		}
		for n := range by[kept : usedFixed+len(u.keys)] {
			by[kept+n] = UsedOther
		}
	}

	s := u.sets[by]
	if s == nil {
		for i, value := range by {
			// It may be of a large body, which would be held.
			by[i] = strings.Clone(value)
		}
		s = &usedSet{since: time.Now()}
		u.sets[by] = s
	}
	return s
}

// usedLabel returns a value as a label may have it.
func usedLabel(value string) string {
	if len(value) > usedBytesMax {
		value = value[:usedBytesMax]
	} else if utf8.ValidString(value) {
		return value
	}
	return strings.ToValidUTF8(value, "")
}

// Describe implements prometheus.Collector.
func (u *Usage) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		u.requests, u.unpriced, u.cost, u.tokens, u.details, u.seconds, u.corrections, u.projects,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (u *Usage) Collect(ch chan<- prometheus.Metric) {
	// Writers do not wait for a scrape.
	u.mu.Lock()
	sets := make(map[UsedBy]usedSet, len(u.sets))
	names := make(map[string]string)
	for by, s := range u.sets {
		sets[by] = *s
		if name := u.names[by[usedProject]]; name != "" {
			names[by[usedProject]] = usedLabel(name)
		}
	}
	u.mu.Unlock()

	for by, s := range sets {
		u.collect(ch, by[:usedFixed+len(u.keys)], &s)
	}
	for project, name := range names {
		ch <- prometheus.MustNewConstMetric(u.projects, prometheus.GaugeValue, 1, project, name)
	}
}

func (u *Usage) collect(ch chan<- prometheus.Metric, by []string, s *usedSet) {
	counter := func(d *prometheus.Desc, of *Used, fact int, more ...string) {
		ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue,
			float64(of[fact])/usedQuantities[fact].unit, s.since, slices.Concat(by, more)...)
	}
	summary := func(d *prometheus.Desc, count, fact int, more ...string) {
		ch <- prometheus.MustNewConstSummaryWithCreatedTimestamp(d, uint64(s.sum[count]),
			float64(s.sum[fact])/usedQuantities[fact].unit, nil, s.since, slices.Concat(by, more)...)
	}

	counter(u.requests, &s.sum, UsedRequests)
	counter(u.unpriced, &s.sum, UsedUnpriced)
	counter(u.cost, &s.sum, UsedCost)
	summary(u.tokens, UsedInputs, UsedInput, "input")
	summary(u.tokens, UsedOutputs, UsedOutput, "output")
	counter(u.details, &s.sum, UsedCached, "cached")
	counter(u.details, &s.sum, UsedCacheWrites, "cache_write")
	counter(u.details, &s.sum, UsedReasoning, "reasoning")
	summary(u.seconds, UsedTimed, UsedMicroseconds)
	for fact, q := range usedQuantities {
		if s.up[fact] != 0 || s.down[fact] != 0 {
			counter(u.corrections, &s.up, fact, q.name, "up")
			counter(u.corrections, &s.down, fact, q.name, "down")
		}
	}
}
