package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// A summary is what Analyze needs of rows that follow each other. A store makes one of
// every block of rows that it packs, so that Analyze does not read each of millions. It
// is
//
//	1   version of this table, summaryVersion
//	1   the length of its buckets: an index of wire.Buckets
//	n   the list times of the newest and the oldest row in seconds, varints
//	    the whole: n buckets; for each its second, a tally
//	    models, templates and providers, each: n names; for each its text, n buckets like
//	    those of the whole but without scores, and its scores
//	n   buckets; for each its second, and n statuses, each a text and how often it came
//	    tags, metadata keys, error types and tools, each: n names; for each its text and a count
//	n   metadata keys; for each its text, and 1 + n values, each a text and a count; or 0, if
//	    there are more than wideMin
//
// where n is a uvarint, a text its length and its bytes, and the numbers of tallies and
// counts are varints. A tally ends with n scores, each a text and what scoreTally has of one
// kind; then n kinds of all other names together. A scoreTally is
//
//	1   its kind
//	n   classes, each by its distance from the one before, and how often it came
//	    the sum, as whole numbers and billionths, varints
//	n   categories in place of these, each a text and how often it came; then how often the rest came
//
// Version 1, of 0.1.0, has tallies without written and unbilled.
const summaryVersion = 2

// SummaryForm is the number of what Summarize and Tops return. That of 0.1.0, which has 1, is read;
// no release made others.
const SummaryForm = 4

const (
	summaryBytesMax = 256 << 10

	// wideMin is the number of values beyond which a metadata key is wide: it identifies
	// requests, like a session's id, and does not classify them. A summary leaves its
	// values out.
	wideMin = 1000

	// summaryBucketsMax is how many buckets rows may span for a summary with buckets of
	// that length. Short ones serve statistics of an hour as well as those of a year;
	// long ones keep the summary small where the rows are spread over months.
	summaryBucketsMax = 48
)

// ErrSummary means that the value to merge is not a summary.
var ErrSummary = errors.New("the summary is not one that this version writes")

// Sums is what a store's Sum passes its rows to. Rows and summaries are valid until the
// method returns.
type Sums interface {
	// Reach announces that a row with this list time follows.
	Reach(at time.Time)

	// Add counts a row.
	Add(row *wire.Row) error

	// Remove takes back a row that a merged summary counts.
	Remove(row *wire.Row)

	// Merge counts the rows of a summary. exact means that none of them will be removed.
	// It returns false if it needs the rows one by one.
	Merge(summary []byte, exact bool) (bool, error)
}

// Summarize returns the summary of at least one row, newest first. It is nil if it would
// be too large to be useful.
func Summarize(rows int, row func(i int) *wire.Row) []byte {
	span := row(0).ListTime.Sub(row(rows - 1).ListTime)

	for i, bucket := range wire.Buckets {
		longest := i == len(wire.Buckets)-1
		if !longest && span > summaryBucketsMax*time.Duration(bucketSeconds[i])*time.Second {
			continue
		}

		// One that is too large may fit with longer buckets.
		summary := summarize(bucket, rows, row)
		if summary != nil && len(summary) <= summaryBytesMax {
			return summary
		}
	}

	return nil
}

// IsSummary reports whether a summary is that of some rows. An empty one is: it would have
// been too large.
func IsSummary(summary []byte, rows int, row func(i int) *wire.Row) bool {
	return len(summary) == 0 || bytes.Equal(summary, Summarize(rows, row))
}

// summarize returns a summary with the given buckets. It is nil if scores have too many
// names.
func summarize(bucket string, rows int, row func(i int) *wire.Row) []byte {
	newest, oldest := row(0).ListTime, row(rows-1).ListTime

	// Metadata values are counted apart: only in the end is it known which keys are wide.
	a := NewAnalytics(wire.StatisticsQuery{Bucket: bucket})
	values := make(map[string]counts[string])
	for i := range rows {
		r := row(i)
		a.count(r, 1)

		// An answer could not list names that a summary merged into the others.
		if slices.ContainsFunc(a.scoreBounds(), (*scoreBound).reduced) {
			return nil
		}

		for _, m := range r.Metadata {
			if values[m.Key] == nil {
				values[m.Key] = make(counts[string])
			}
			values[m.Key].add(m.Value, r, 1)
		}
	}

	// Names are sorted everywhere, so that the same rows give the same bytes.
	head := []byte{summaryVersion, byte(slices.Index(wire.Buckets, bucket))}
	w := summaryWriter{b: append(make([]byte, 0, 16<<10), head...)}
	w.varint(newest.Unix())
	w.varint(oldest.Unix())
	w.buckets(a.whole.by[part{}])
	for _, d := range a.named() {
		w.dimension(d)
	}
	w.statuses(a.whole.by[part{}])
	for _, c := range a.counted() {
		w.counts(c, 0)
	}

	w.uvarint(len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		w.text(key)

		// Of 1 + n, 0 is left to mean that the values are missing.
		if len(values[key]) > wideMin {
			w.uvarint(0)
			continue
		}
		w.counts(values[key], 1)
	}

	return w.b
}

// summaryWriter writes the parts of a summary.
type summaryWriter struct{ b []byte }

func (w *summaryWriter) uvarint(n int)  { w.b = binary.AppendUvarint(w.b, uint64(n)) }
func (w *summaryWriter) varint(n int64) { w.b = binary.AppendVarint(w.b, n) }
func (w *summaryWriter) text(s string)  { w.uvarint(len(s)); w.b = append(w.b, s...) }

func (w *summaryWriter) dimension(d *dimension) {
	w.uvarint(len(d.by))
	for _, name := range slices.SortedFunc(maps.Keys(d.by), compareParts) {
		w.text(name.value)
		w.buckets(d.by[name])
		w.scores(d.scoresOf(name))
	}
}

func (w *summaryWriter) buckets(b buckets) {
	w.uvarint(len(b))
	for _, at := range b.sorted() {
		w.varint(at)
		w.tally(b[at])
	}
}

func (w *summaryWriter) tally(t *tally) {
	for _, n := range []int64{
		t.requests, t.errors, t.unpriced, t.costNanos, t.input, t.output, t.cached, t.thinking,
		t.latency.sumMics, t.written, t.unbilled,
	} {
		w.varint(n)
	}

	w.classes(t.latency.classes)
	w.scores(&t.scores)
}

// classes writes each by its distance from the one before: most of these numbers then take one byte.
func (w *summaryWriter) classes(list []times[int16]) {
	w.uvarint(len(list))
	before := int16(0)
	for _, v := range list {
		w.uvarint(int(uint16(v.value - before)))
		w.uvarint(int(v.n))
		before = v.value
	}
}

func (w *summaryWriter) scores(s *scoreSums) {
	w.uvarint(len(s.kept))
	for _, t := range s.kept {
		w.text(t.name)
		w.score(t)
	}

	w.uvarint(len(s.others))
	for _, t := range s.others {
		w.score(t)
	}
}

func (w *summaryWriter) score(t *scoreTally) {
	w.b = append(w.b, byte(t.kind))
	if t.kind == wire.ScoreCategory {
		w.uvarint(len(t.texts))
		for _, v := range t.texts {
			w.text(v.value)
			w.uvarint(int(v.n))
		}
		w.uvarint(int(t.rest))
		return
	}

	w.classes(t.classes)
	w.varint(t.sum.whole)
	w.varint(t.sum.billionths)
}

func (w *summaryWriter) statuses(b buckets) {
	w.uvarint(len(b))
	for _, at := range b.sorted() {
		w.varint(at)
		w.uvarint(len(b[at].statuses))
		for _, status := range slices.Sorted(maps.Keys(b[at].statuses)) {
			w.text(status)
			w.varint(b[at].statuses[status])
		}
	}
}

// counts writes the number of names plus more, and the names.
func (w *summaryWriter) counts(c counts[string], more int) {
	w.uvarint(len(c) + more)

	// The reader may have space for some names only: those with the most requests come
	// first.
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return cmp.Or(cmp.Compare(c[b].requests, c[a].requests), strings.Compare(a, b))
	})
	for _, name := range names {
		w.text(name)
		for _, n := range []int64{c[name].requests, c[name].costNanos, c[name].input, c[name].output} {
			w.varint(n)
		}
	}
}

// tally sums up rows. All sums are of integers, so that they are the same in any order.
// The zero tally is empty.
type tally struct {
	count
	errors, unpriced int64
	unbilled         int64 // of unpriced: failed without tokens
	// Tokens, summed up by plus.
	cached, written, thinking int64

	latency  histogram
	statuses map[string]int64 // how often each came; only of the whole
	scores   scoreSums        // empty unless the dimension counts scores by bucket
}

// tallyColumns are the columns that add and scoreBound.add look at.
var tallyColumns = rowcode.ColumnsOf(
	rowcode.ColumnStatus, rowcode.ColumnCost, rowcode.ColumnInputTokens, rowcode.ColumnOutputTokens,
	rowcode.ColumnCachedTokens, rowcode.ColumnCacheWrites, rowcode.ColumnReasoningTokens, rowcode.ColumnLatency,
	rowcode.ColumnScores,
)

// add counts a row n times, apart from its scores: once, or -1 times to take back one
// that was counted.
func (t *tally) add(row *wire.Row, n int64) {
	t.count.add(row, n)
	if row.Status != "SUCCESS" {
		t.errors += n
	}
	// Of unknown price is not free, unless it failed before it had tokens: people are told how many
	// calls the cost leaves out.
	if row.Price == nil {
		t.unpriced += n
		if row.Status == "ERROR" && wire.OrZero(row.InputTokens) == 0 && wire.OrZero(row.OutputTokens) == 0 {
			t.unbilled += n
		}
	}
	t.cached = plus(t.cached, n*wire.OrZero(row.CachedTokens))
	t.written = plus(t.written, n*wire.OrZero(row.CacheWrites))
	t.thinking = plus(t.thinking, n*wire.OrZero(row.ReasoningTokens))
	if row.Latency != nil {
		t.latency.add(time.Duration(math.Round(*row.Latency*1e9)), n)
	}
}

// merge adds another tally, apart from its scores.
func (t *tally) merge(other *tally) {
	t.mergeCounts(other)
	t.latency.merge(&other.latency)
	for status, n := range other.statuses {
		t.addStatus(status, n)
	}
}

// mergeCounts adds another tally, apart from its latencies and scores.
func (t *tally) mergeCounts(other *tally) {
	t.count.merge(other.count)
	t.errors += other.errors
	t.unpriced += other.unpriced
	t.unbilled += other.unbilled
	t.cached = plus(t.cached, other.cached)
	t.written = plus(t.written, other.written)
	t.thinking = plus(t.thinking, other.thinking)
}

// plus adds n to a sum. A sum that would overflow stays at the maximum.
func plus(sum, n int64) int64 {
	switch {
	// Nothing is taken back from the maximum: what was cut off is unknown, and the result
	// must not depend on the order.
	case sum == math.MaxInt64 || n > 0 && sum > math.MaxInt64-n:
		return math.MaxInt64
	case n < 0 && sum < math.MinInt64-n:
		return math.MinInt64
	default:
		return sum + n
	}
}

// nanos converts dollars to billionths of a dollar.
func nanos(cost float64) int64 { return int64(math.Round(cost * 1e9)) }

// dollars converts billionths of a dollar to dollars.
func dollars(nanos int64) float64 { return float64(nanos) / 1e9 }

func (c *count) cost() float64 { return dollars(c.costNanos) }

func (c *count) tokens() int64 { return plus(c.input, c.output) }

// totals returns the tally in the form of the API, with the scores given.
func (t *tally) totals(scores []wire.ScoreSum) wire.Totals {
	w := t.sums()
	w.Scores = scores
	w.Latency = wire.Percentiles{
		Mean: t.latency.mean(),
		P50:  t.latency.quantile(0.5),
		P90:  t.latency.quantile(0.9),
		P95:  t.latency.quantile(0.95),
		P99:  t.latency.quantile(0.99),
	}

	return w
}

// sums returns the tally in the form of the API, apart from its latencies and scores.
func (t *tally) sums() wire.Totals {
	w := wire.Totals{
		Requests:       t.requests,
		Errors:         t.errors,
		Cost:           t.cost(),
		Unpriced:       t.unpriced - t.unbilled,
		Unbilled:       t.unbilled,
		InputTokens:    t.input,
		OutputTokens:   t.output,
		CachedTokens:   t.cached,
		CacheWrites:    t.written,
		ThinkingTokens: t.thinking,
	}
	if t.requests > 0 {
		w.ErrorRate = float64(t.errors) / float64(t.requests)
	}

	return w
}

// histogram counts latencies in classes that reach 1 % to both sides of their middle, so
// that every percentile is at most 2 % off (Masson and others, "DDSketch", VLDB 2019).
// Adding and merging commute. The zero histogram is empty.
type histogram struct {
	classes []times[int16]
	total   int64
	sumMics int64 // in full microseconds, because a sum of floats depends on their order
}

var (
	classRatio = math.Log((1 + latencyError) / (1 - latencyError))
	// latencyUnit is the smallest latency that differs from 0.
	latencyUnit = float64(time.Microsecond)
)

const latencyError = 0.01

// classOf returns the class of a latency. Less than a microsecond is in class 0.
func classOf(d time.Duration) int16 {
	if float64(d) < latencyUnit {
		return 0
	}
	return 1 + int16(math.Ceil(math.Log(float64(d)/latencyUnit)/classRatio))
}

// latencyOf returns the latency that represents a class, in seconds: a number of one or two digits if the
// class has one, so that a second is shown as one, or its middle.
func latencyOf(class int16) float64 {
	if class == 0 {
		return 0
	}
	middle := math.Exp(float64(class-1)*classRatio) * (1 - latencyError) * latencyUnit / 1e9
	for digits := 1; digits <= 2; digits++ {
		round, _ := strconv.ParseFloat(strconv.FormatFloat(middle, 'g', digits, 64), 64)
		if classOf(time.Duration(math.Round(round*1e9))) == class {
			return round
		}
	}

	return middle
}

// add counts a latency n times; with -1 it takes back one that was counted.
func (h *histogram) add(d time.Duration, n int64) {
	h.classes = addTimes(h.classes, classOf(d), n)
	h.total += n
	h.sumMics = plus(h.sumMics, n*d.Microseconds())
}

func (h *histogram) merge(other *histogram) {
	h.classes = mergeTimes(h.classes, other.classes)
	h.total += other.total
	h.sumMics = plus(h.sumMics, other.sumMics)
}

// mean returns seconds; nil for an empty histogram.
func (h *histogram) mean() *float64 {
	if h.total == 0 {
		return nil
	}

	return new(float64(h.sumMics) / float64(h.total) / 1e6)
}

// quantile returns the latency in seconds that a share q of all do not exceed (the
// nearest rank); nil for an empty histogram.
func (h *histogram) quantile(q float64) *float64 {
	if h.total == 0 {
		return nil
	}

	// Even a share of 0 has a rank, that of the fastest.
	rank := max(int64(math.Ceil(q*float64(h.total))), 1)
	for _, v := range h.classes {
		rank -= v.n
		if rank <= 0 {
			return new(latencyOf(v.value))
		}
	}

	return nil
}
