package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// A summary is what Analyze needs of rows that follow each other, so that it does not read each of millions: a store makes one of
// every block of rows that it packs. It is
//
//	1   version of this table, summaryVersion
//	1   how long its buckets are: an index of wire.Buckets
//	n   seconds of the newest row's order time and of the oldest's, varints
//	    the whole: n buckets; for each its second, a tally
//	    models, templates and providers, each: n names; for each its text, n buckets like those of the whole, whose scores are left
//	    out, and its scores
//	n   buckets; for each its second, and n statuses, each a text and how often it came
//	    tags, metadata keys, error types and tools, each: n names; for each its text and a count
//	n   metadata keys; for each its text, and 1 + n values, each a text and a count; or 0, if there are more than wideMin
//
// where n is a uvarint, a text its length and its bytes, and the numbers of tallies and counts are varints. A tally ends with scores:
// n names, for each its text and n different scores, each a uvarint and how often it came; and such scores of all other names.
//
// Summaries of summaryVersionFirst have the scores of models, templates and providers in their buckets, and tell all names.
const (
	summaryVersion      = 2
	summaryVersionFirst = 1
)

const (
	summaryBytesMax = 256 << 10
	// wideMin is how many values a metadata key has at least, among the rows of a summary, to be one that tells requests apart rather than
	// sorts them: a session's id, say. Its values are not summed up.
	wideMin = 1000
	// summaryBucketsMax is how many buckets rows may span so that their summary has buckets of that length. Short ones serve
	// statistics of an hour as well as those of a year; long ones keep small what is spread over months.
	summaryBucketsMax = 48
)

// ErrSummary says that what was merged is no summary.
var ErrSummary = errors.New("the summary is not one that this version writes")

// Sums is what a store's Sum hands its rows to. Rows and summaries are lent until the method returns.
type Sums interface {
	// Reach says that a row with this order time follows somewhere.
	Reach(at time.Time)
	// Add counts a row.
	Add(row *wire.Row) error
	// Remove takes back a row that a merged summary counts.
	Remove(row *wire.Row)
	// Merge counts the rows of a summary. exact says that all of them count; else some will be removed. It returns false if it needs the
	// rows one by one.
	Merge(summary []byte, exact bool) (bool, error)
}

// Summarize makes the summary of at least one row, newest first; nil if it would be too large to be of use.
func Summarize(rows int, row func(i int) *wire.Row) []byte {
	span := row(0).AcceptedAt.Sub(row(rows - 1).AcceptedAt)

	for i, bucket := range wire.Buckets {
		longest := i == len(wire.Buckets)-1
		if !longest && span > summaryBucketsMax*time.Duration(bucketSeconds[i])*time.Second {
			continue
		}
		summary := summarize(bucket, rows, row)
		if summary != nil && len(summary) <= summaryBytesMax {
			return summary
		}
	}

	return nil
}

// IsSummary reports whether a summary is that of some rows, whatever the length of its buckets: earlier versions chose others.
func IsSummary(summary []byte, rows int, row func(i int) *wire.Row) bool {
	if len(summary) == 0 {
		return true // none was made, for its size
	}
	if len(summary) < 2 || int(summary[1]) >= len(wire.Buckets) {
		return false
	}
	if summary[0] == summaryVersionFirst {
		return isSummaryFirst(summary, rows, row)
	}

	if bytes.Equal(summary, summarize(wire.Buckets[summary[1]], rows, row)) {
		return true
	}

	// Earlier versions told long metadata values whole.
	for i := range rows {
		if slices.ContainsFunc(row(i).Metadata, func(m wire.MetadataRow) bool { return rowcode.IsReference(m.Value) }) {
			return isSummaryFirst(summary, rows, row)
		}
	}
	return false
}

// isSummaryFirst is IsSummary for what earlier versions wrote: it must give the answer that the rows give.
func isSummaryFirst(summary []byte, rows int, row func(i int) *wire.Row) bool {
	q := wire.StatisticsQuery{Bucket: wire.Buckets[summary[1]]}
	merged, counted := NewAnalytics(q), NewAnalytics(q)
	if ok, err := merged.Merge(summary, true); err != nil || !ok {
		return false
	}
	counted.wide = merged.wide
	for i := range rows {
		if err := counted.Add(row(i)); err != nil {
			return false
		}
	}

	stored, err1 := json.Marshal(merged.Answer())
	anew, err2 := json.Marshal(counted.Answer())

	return err1 == nil && err2 == nil && bytes.Equal(stored, anew)
}

// summarize makes a summary with buckets of some length; nil if there are too many names of scores.
func summarize(bucket string, rows int, row func(i int) *wire.Row) []byte {
	newest, oldest := row(0).AcceptedAt, row(rows-1).AcceptedAt
	a := NewAnalytics(wire.StatisticsQuery{Bucket: bucket})
	values := make(map[string]counts[string])
	for i := range rows {
		r := row(i)
		a.count(r, 1)
		if slices.ContainsFunc(a.scoreBounds(), (*scoreBound).lowered) {
			return nil
		}
		for _, m := range r.Metadata {
			if values[m.Key] == nil {
				values[m.Key] = make(counts[string])
			}
			values[m.Key].add(m.Value, r, 1)
		}
	}

	w := summaryWriter{append(make([]byte, 0, 16<<10), summaryVersion, byte(slices.Index(wire.Buckets, bucket)))}
	w.varint(newest.Unix())
	w.varint(oldest.Unix())
	w.buckets(a.whole.by[struct{}{}])
	for _, d := range []*dimension[string]{a.models, a.templates, a.providers} {
		w.dimension(d)
	}
	w.statuses(a.statuses)
	for _, c := range []counts[string]{a.tags, a.keys, a.errors, a.tools} {
		w.counts(c, 0)
	}
	w.uvarint(len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		w.text(key)
		if len(values[key]) > wideMin {
			w.uvarint(0)
			continue
		}
		w.counts(values[key], 1)
	}

	return w.b
}

type summaryWriter struct{ b []byte }

func (w *summaryWriter) uvarint(n int)  { w.b = binary.AppendUvarint(w.b, uint64(n)) }
func (w *summaryWriter) varint(n int64) { w.b = binary.AppendVarint(w.b, n) }
func (w *summaryWriter) text(s string)  { w.uvarint(len(s)); w.b = append(w.b, s...) }

func (w *summaryWriter) dimension(d *dimension[string]) {
	w.uvarint(len(d.by))
	for _, name := range slices.Sorted(maps.Keys(d.by)) {
		w.text(name)
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
	for _, n := range []int64{t.requests, t.errors, t.unpriced, t.costNanos, t.input, t.output, t.cached, t.thinking, t.latency.sumMics} {
		w.varint(n)
	}
	classes := 0
	for _, n := range t.latency.counts {
		if n > 0 {
			classes++
		}
	}
	w.uvarint(classes)
	before := 0
	for i, n := range t.latency.counts {
		if n > 0 {
			class := t.latency.first + i
			w.uvarint(class - before)
			w.uvarint(int(n))
			before = class
		}
	}
	w.scores(&t.scores)
}

func (w *summaryWriter) scores(s *scoreSums) {
	w.uvarint(len(s.kept))
	for _, t := range s.kept {
		w.text(t.name)
		w.score(t)
	}
	if s.other == nil {
		w.uvarint(0)
		return
	}
	w.score(s.other)
}

func (w *summaryWriter) score(t *scoreTally) {
	w.uvarint(len(t.values))
	for _, v := range t.values {
		w.uvarint(int(v.score))
		w.uvarint(int(v.n))
	}
}

func (w *summaryWriter) statuses(all map[int64]map[string]int64) {
	w.uvarint(len(all))
	for _, at := range slices.Sorted(maps.Keys(all)) {
		w.varint(at)
		w.uvarint(len(all[at]))
		for _, status := range slices.Sorted(maps.Keys(all[at])) {
			w.text(status)
			w.varint(all[at][status])
		}
	}
}

// counts writes 1 more than how many there are, if more is 1.
func (w *summaryWriter) counts(c counts[string], more int) {
	w.uvarint(len(c) + more)
	for _, name := range slices.SortedFunc(maps.Keys(c), func(a, b string) int { return cmp.Or(cmp.Compare(c[b].requests, c[a].requests), strings.Compare(a, b)) }) {
		w.text(name)
		for _, n := range []int64{c[name].requests, c[name].costNanos, c[name].input, c[name].output} {
			w.varint(n)
		}
	}
}
