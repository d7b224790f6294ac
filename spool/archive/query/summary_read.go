package query

import (
	"math"

	"promptspool/spool/archive/rowcode"
)

// summaryReader reads a summary. After a fault everything it reads is zero, so that
// callers need to check err only once.
type summaryReader struct {
	rowcode.Reader
	scored []scoreCount // of the name read last; its memory is used again
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
func (r *summaryReader) tally(t *tally, scores func(t scoreTally, other bool)) {
	for _, n := range []*int64{
		&t.requests, &t.errors, &t.unpriced, &t.costNanos, &t.input, &t.output, &t.cached, &t.thinking,
		&t.latency.sumMics,
	} {
		*n = plus(*n, r.Varint())
	}

	// Classes are bounded because each takes memory, and their counts because they are
	// stored in 32 bits.
	class := uint64(0)
	for range r.count() {
		class += r.Uvarint()
		n := r.Uvarint()
		if class > classMax || n > math.MaxUint32 || t.latency.total+int64(n) > math.MaxUint32 {
			r.Fail()
			return
		}
		t.latency.count(int(class), int64(n))
	}

	r.scores(scores)
}

// scores calls fn with the scores of each name, and with those of all others. They are lent
// until fn returns.
func (r *summaryReader) scores(fn func(t scoreTally, other bool)) {
	for range r.count() {
		fn(r.score(r.Text()), false)
	}
	if others := r.score(""); others.count > 0 {
		fn(others, true)
	}
}

// score reads the scores of a name, valid until the next ones are read.
func (r *summaryReader) score(name string) scoreTally {
	t := scoreTally{name: name, values: r.scored[:0]}
	for range r.count() {
		score, n := r.Uvarint(), r.Uvarint()

		// Damaged numbers must not wrap to negative ones.
		t.add(int(min(score, 100)), int64(min(n, math.MaxUint32)))
	}
	r.scored = t.values

	return t
}

// classMax is the class of the longest latency that can be counted.
var classMax = uint64(classOf(1<<63 - 1))
