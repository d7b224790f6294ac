package query

import (
	"math"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Remove takes back a row; see Sums.
func (a *Analytics) Remove(row *wire.Row) { a.count(row, -1) }

// Merge counts the rows of a summary; see Sums.
//
// It cannot use one whose buckets are longer than its own, nor one without the values of
// the metadata key asked for. If rows will be removed, it cannot use one before it knows
// how long its own buckets must be, nor once scores may have too many names: nothing can
// be taken back from the sum of the others.
func (a *Analytics) Merge(summary []byte, exact bool) (bool, error) {
	r := summaryReader{Reader: rowcode.Reader{Rest: summary}}
	r.version = r.Uvarint()
	if r.version < 1 || r.version > summaryVersion {
		return false, ErrSummary
	}

	bucket := r.count()
	newest, oldest := time.Unix(r.Varint(), 0), time.Unix(r.Varint(), 0)
	if r.Err != nil || bucket >= len(wire.Buckets) || a.metadataKey != "" {
		return false, r.err()
	}

	// Rows that will be removed must not make buckets longer: without them, the answer
	// would have shorter ones.
	if exact {
		a.Reach(newest)
		a.Reach(oldest)
	}

	// Its buckets must fit into ours as a whole.
	if !a.clock.covers(newest, oldest) || !a.clock.takes(bucket, newest, oldest) {
		return false, nil
	}
	if !exact && !a.mayTakeBack(r) {
		return false, r.err()
	}

	a.merge(&r)
	if err := r.err(); err != nil {
		return false, err
	}
	if a.whole.leftOut > 0 {
		return false, errTooManyBuckets(a.clock.name())
	}

	return true, nil
}

// SummarySince returns the list time of the oldest row of a summary that was merged.
func SummarySince(summary []byte) time.Time {
	r := summaryReader{Reader: rowcode.Reader{Rest: summary}}
	r.Uvarint() // the version
	r.Uvarint() // the length of buckets
	r.Varint()  // the newest row

	return time.Unix(r.Varint(), 0)
}

// mayTakeBack reports whether the rows of a summary can be taken back once it is merged:
// no scores will count as others. The reader is a copy, which is read ahead.
func (a *Analytics) mayTakeBack(r summaryReader) bool {
	names, categories := make(map[scoreKey]bool), make(map[judged]bool)
	// Others, whose name is "", are one more than the most, and so is the rest of categories.
	seen := func(t *scoreTally, _ bool) {
		names[t.scoreKey] = true
		if t.rest > 0 {
			categories[judged{scoreKey: t.scoreKey}] = true
		}
		for _, v := range t.texts {
			categories[judged{scoreKey: t.scoreKey, text: v.value}] = true
		}
	}
	// The whole has the name of every score, so what follows it need not be read.
	sums := a.whole.scoresOf(part{})
	for _, t := range sums.kept {
		seen(t, false)
	}
	for range r.count() {
		r.Varint()
		r.tally(&tally{}, seen)
	}

	// No tally of a score takes less than four bytes of a summary.
	space := math.MaxInt
	for _, b := range a.scoreBounds() {
		space = min(space, b.space-b.held)
	}

	few := len(sums.others) == 0 && len(names) <= scoreNamesMax && len(categories) <= categoriesMax

	return few && len(r.Rest)/4 < space
}

// scoreBounds returns the bounds of all tallies of scores.
func (a *Analytics) scoreBounds() []*scoreBound {
	return []*scoreBound{
		a.whole.series, a.whole.totals, a.models.totals, a.templates.totals, a.providers.totals,
	}
}

// merge adds what follows the head of a summary, in the order in which summarize writes
// it.
func (a *Analytics) merge(r *summaryReader) {
	mergeBuckets(r, a.whole, part{})
	for _, d := range a.named() {
		for range r.count() {
			name := part{value: r.Text()}
			mergeBuckets(r, d, name)
			r.scores(func(t *scoreTally, other bool) {
				d.totals.mergeTally(d.scoresOf(name), t, other)
			})
			d.reduceScores()
		}
	}

	for range r.count() {
		t := a.whole.at(part{}, a.clock.floor(r.Varint()))
		for range r.count() {
			if status, n := r.Text(), r.Varint(); t != nil {
				t.addStatus(status, n)
			}
		}
	}

	for _, c := range a.counted() {
		for range r.count() {
			name, n := r.Text(), r.counted()
			if at := c.at(name); at != nil {
				at.merge(n)
			}
		}
	}
	for range r.count() {
		a.mergeMetadata(r)
	}
}

// mergeMetadata adds the values of one metadata key.
func (a *Analytics) mergeMetadata(r *summaryReader) {
	key := r.Text()
	values := r.count() - 1
	if values < 0 {
		a.wide[key] = true
	}

	// If another summary leaves them out, their sums would be too low.
	left := a.noMetadata || a.wide[key]
	for range values {
		value, n := r.Take(r.Uvarint()), r.counted()
		if left {
			continue
		}

		if at := a.metadata.at(wire.MetadataRow{Key: key, Value: string(value)}); at != nil {
			at.merge(n)
		}
	}
}

// mergeBuckets adds the buckets of a name.
func mergeBuckets(r *summaryReader, d *dimension, name part) {
	for range r.count() {
		t := d.at(name, d.clock.floor(r.Varint()))

		// Without memory for it the tally must still be read, to get to the next one.
		if t == nil {
			var lost tally
			r.tally(&lost, func(*scoreTally, bool) {})
			d.leftOut += lost.requests
			continue
		}

		r.tally(t, func(score *scoreTally, other bool) {
			d.totals.mergeTally(d.scoresOf(name), score, other)
			if d.series != nil {
				d.series.mergeTally(&t.scores, score, other)
			}
		})
		d.reduceScores()
	}
}

// covers reports whether times are between those of rows that were counted or announced.
func (c *clock) covers(newest, oldest time.Time) bool {
	return c.begun && oldest.Unix() >= c.first && newest.Unix() <= c.end
}

// summaryReader reads a summary. After a fault everything it reads is zero, so that
// callers need to check err only once.
type summaryReader struct {
	rowcode.Reader
	version uint64

	// The last ones that were read; their memory is used again.
	scored    scoreTally
	latencies []times[int16]
}

// err returns ErrSummary after a fault.
func (r *summaryReader) err() error {
	if r.Err != nil {
		return ErrSummary
	}

	return nil
}

// count reads how many things follow, each of at least a byte.
func (r *summaryReader) count() int {
	n := r.Uvarint()

	// More than there are bytes would keep a caller busy for long. One more is allowed,
	// because the number of metadata values is written plus 1.
	if n > uint64(len(r.Rest))+1 {
		r.Fail()
		return 0
	}

	return int(n)
}

func (r *summaryReader) counted() count {
	return count{r.Varint(), r.Varint(), r.Varint(), r.Varint()}
}

// tally adds what it reads to t, and calls scores for each name of a score.
func (r *summaryReader) tally(t *tally, scores func(t *scoreTally, other bool)) {
	numbers := []*int64{
		&t.requests, &t.errors, &t.unpriced, &t.costNanos, &t.input, &t.output, &t.cached, &t.thinking,
		&t.latency.sumMics, &t.written, &t.unbilled,
	}
	if r.version == 1 {
		numbers = numbers[:len(numbers)-2]
	}
	for _, n := range numbers {
		*n = plus(*n, r.Varint())
	}

	r.latencies = r.classes(r.latencies[:0], 0, classMax)
	t.latency.classes = mergeTimes(t.latency.classes, r.latencies)
	t.latency.total += timesOf(r.latencies)
	r.scores(scores)
}

// classes appends what it reads of classes from least to most.
func (r *summaryReader) classes(list []times[int16], least, most int16) []times[int16] {
	class := int16(0)
	for range r.count() {
		class += int16(r.Uvarint())
		n := r.Uvarint()
		// Damaged numbers must not wrap to negative ones, nor be of no class.
		if class > most || class < least || n > math.MaxUint32 {
			r.Fail()
			return list[:0]
		}
		list = addTimes(list, class, int64(n))
	}

	return list
}

// scores calls fn with the scores of each name, and with those of all others. They are lent
// until fn returns.
func (r *summaryReader) scores(fn func(t *scoreTally, other bool)) {
	for range r.count() {
		if t := r.score(r.Text()); r.Err == nil {
			fn(t, false)
		}
	}
	for range r.count() {
		if t := r.score(""); r.Err == nil {
			fn(t, true)
		}
	}
}

// score reads the scores of a name, valid until the next ones are read.
func (r *summaryReader) score(name string) *scoreTally {
	kind := wire.ScoreKind(min(r.Uvarint(), uint64(wire.ScoreNone)))
	t := &r.scored
	*t = scoreTally{scoreKey: scoreKey{name, kind}, classes: t.classes[:0], texts: t.texts[:0]}

	switch kind {
	case wire.ScoreNone:
		r.Fail()
	case wire.ScoreCategory:
		times := func() int64 { return int64(min(r.Uvarint(), math.MaxUint32)) }
		for range r.count() {
			t.addText(r.Text(), times())
		}
		t.rest += times()
		t.count = timesOf(t.texts) + t.rest
	default:
		t.classes = r.classes(t.classes, -scoreClassMost, scoreClassMost)
		t.count = timesOf(t.classes)
		t.sum = fixed{r.Varint(), r.Varint()}
	}

	return t
}

// scoreClassMost is the greatest class of a score.
var scoreClassMost = scoreClass(wire.ScoreNumberMax)

// classMax is the class of the longest latency that can be counted.
var classMax = classOf(1<<63 - 1)
