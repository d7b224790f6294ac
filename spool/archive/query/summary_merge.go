package query

import (
	"encoding/binary"
	"math"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Remove is Sums's.
func (a *Analytics) Remove(row *wire.Row) { a.count(row, -1) }

// Merge is Sums's. It cannot use a summary whose buckets are longer than its own, nor one of which some rows do not count while it does
// not know how long its own buckets have to be, or while scores have too many names: of the others of these nothing can be taken back;
// nor one that does not tell the values of the metadata key asked for.
func (a *Analytics) Merge(summary []byte, exact bool) (bool, error) {
	r := summaryReader{b: summary}
	r.version = r.byte()
	if r.version != summaryVersion && r.version != summaryVersionFirst {
		return false, ErrSummary
	}
	bucket := int(r.byte())
	newest, oldest := time.Unix(r.varint(), 0), time.Unix(r.varint(), 0)
	if r.failed || bucket >= len(wire.Buckets) || a.metadataKey != "" {
		return false, r.err()
	}
	if exact {
		a.Reach(newest)
		a.Reach(oldest)
	}
	if !a.clock.covers(newest, oldest) || a.clock.seconds()%bucketSeconds[bucket] != 0 {
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

// mayTakeBack reports whether no scores will count as others once a summary is merged: its rows can be taken back.
func (a *Analytics) mayTakeBack(r summaryReader) bool {
	for range r.count() {
		r.varint()
		r.tally(&tally{}, func(t scoreTally, other bool) {
			a.scores.add(t.name)
			if other {
				a.scores.fill()
			}
		})
	}

	// No tally of a score takes less than four bytes of a summary.
	room := math.MaxInt
	for _, b := range a.scoreBounds() {
		room = min(room, b.room-b.held)
	}

	return !a.scores.many() && len(r.b)/4 < room
}

// scoreBounds are those of all tallies of scores.
func (a *Analytics) scoreBounds() []*scoreBound {
	return []*scoreBound{a.whole.series, a.whole.totals, a.models.totals, a.templates.totals, a.providers.totals}
}

func (a *Analytics) merge(r *summaryReader) {
	mergeBuckets(r, a.whole, struct{}{}, a.scores.add)
	for _, d := range []*dimension[string]{a.models, a.templates, a.providers} {
		for range r.count() {
			name := string(r.text())
			mergeBuckets(r, d, name, nil)
			if r.version > summaryVersionFirst {
				r.scores(func(t scoreTally, other bool) { d.mergeScore(d.totals, d.scoresOf(name), t, other) })
			}
			d.lowerScores()
		}
	}
	for range r.count() {
		bucket := a.clock.floor(r.varint())
		by := a.statuses[bucket]
		if by == nil {
			by = make(map[string]int64)
			a.statuses[bucket] = by
		}
		for range r.count() {
			status, n := r.text(), r.varint()
			if _, known := by[string(status)]; known || len(by) < wire.AnalyticsListMax {
				by[string(status)] += n
			}
		}
	}
	for _, c := range []counts[string]{a.tags, a.keys, a.errors, a.tools} {
		for range r.count() {
			name, n := r.text(), r.counted()
			if at := c.at(string(name)); at != nil {
				at.merge(n)
			}
		}
	}
	for range r.count() {
		key := string(r.text())
		values := r.count() - 1
		if values < 0 {
			a.wide[key] = true
		}
		for range values {
			value, n := r.text(), r.counted()
			if a.wide[key] {
				continue
			}
			row := wire.MetadataRow{Key: key, Value: rowcode.Shortened(key, string(value))}
			if at := a.metadata.at(row); at != nil {
				at.merge(n)
			}
		}
	}
}

// mergeBuckets reads the buckets of a name, and lets see know the names of their scores, if it is not nil.
func mergeBuckets[K comparable](r *summaryReader, d *dimension[K], name K, see func(score string)) {
	for range r.count() {
		t := d.at(name, d.clock.floor(r.varint()))
		if t == nil { // there is no room
			var lost tally
			r.tally(&lost, func(scoreTally, bool) {})
			d.leftOut += lost.requests
			continue
		}

		r.tally(t, func(score scoreTally, other bool) {
			if see != nil {
				see(score.name)
			}
			d.mergeScore(d.totals, d.scoresOf(name), score, other)
			if d.series != nil {
				d.mergeScore(d.series, &t.scores, score, other)
			}
		})
		d.lowerScores()
	}
}

// mergeScore adds the scores of one name, or of all others.
func (d *dimension[K]) mergeScore(b *scoreBound, into *scoreSums, t scoreTally, other bool) {
	if other {
		b.others(into).merge(&t)
		return
	}
	b.tally(into, t.name).merge(&t)
}

// covers says whether moments lie between those of rows that were seen.
func (c *clock) covers(newest, oldest time.Time) bool {
	return c.begun && oldest.Unix() >= c.first && newest.Unix() <= c.end
}

// summaryReader reads a summary. After a fault all it reads is zero.
type summaryReader struct {
	version byte
	b       []byte
	failed  bool
}

// err is ErrSummary unless all was read well.
func (r *summaryReader) err() error {
	if r.failed {
		return ErrSummary
	}
	return nil
}

func (r *summaryReader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b
}

func (r *summaryReader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // most are that small
		n := r.b[0]
		r.b = r.b[1:]
		return uint64(n)
	}
	return r.longUvarint()
}

func (r *summaryReader) longUvarint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

// varint reads what binary.AppendVarint wrote.
func (r *summaryReader) varint() int64 {
	n := r.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

// count reads how many things follow, each of at least a byte.
func (r *summaryReader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b))+1 { // 1 + n of nothing is 1
		r.failed, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *summaryReader) text() []byte {
	n := r.count()
	n = min(n, len(r.b))
	text := r.b[:n]
	r.b = r.b[n:]
	return text
}

func (r *summaryReader) counted() count {
	return count{r.varint(), r.varint(), r.varint(), r.varint()}
}

// tally adds what it reads to t, and gives scores those that it reads.
func (r *summaryReader) tally(t *tally, scores func(t scoreTally, other bool)) {
	for _, n := range []*int64{&t.requests, &t.errors, &t.unpriced, &t.costNanos, &t.input, &t.output, &t.cached, &t.thinking, &t.latency.sumMics} {
		*n = plus(*n, r.varint())
	}
	class := uint64(0)
	for range r.count() {
		class += r.uvarint()
		n := r.uvarint()
		if class > classMax || n > math.MaxUint32 || t.latency.total+int64(n) > math.MaxUint32 {
			r.failed, r.b = true, nil
			return
		}
		t.latency.count(int(class), int64(n))
	}
	r.scores(scores)
}

// scores gives fn the scores of each name, and those of all others.
func (r *summaryReader) scores(fn func(t scoreTally, other bool)) {
	for range r.count() {
		fn(r.score(string(r.text())), false)
	}
	if r.version == summaryVersionFirst {
		return
	}
	if others := r.score(""); others.count > 0 {
		fn(others, true)
	}
}

func (r *summaryReader) score(name string) scoreTally {
	t := scoreTally{name: name}
	for range r.count() {
		score, n := r.uvarint(), r.uvarint()
		t.add(int(min(score, 100)), int64(min(n, math.MaxUint32)))
	}

	return t
}

// classMax is the class of the longest latency that there is.
var classMax = uint64(classOf(1<<63 - 1))
