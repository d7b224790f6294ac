package query

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"promptspool/api/wire"
)

// dimension is a series for each of some names: models, templates, versions.
type dimension[K comparable] struct {
	clock   *clock
	by      map[K]buckets
	cells   int   // tallies of all buckets, at most cellsMax
	leftOut int64 // requests for which there was no cell

	scores map[K]*scoreSums
	totals *scoreBound // of scores
	series *scoreBound // of the scores by bucket; nil if the answer has none
}

func newDimension[K comparable](c *clock, asked []string) *dimension[K] {
	return &dimension[K]{
		clock:  c,
		by:     make(map[K]buckets),
		scores: make(map[K]*scoreSums),
		totals: newScoreBound(asked, scoreTotalsMax),
	}
}

// bySeries counts the scores by bucket, too.
func (d *dimension[K]) bySeries() *dimension[K] {
	d.series = newScoreBound(d.totals.asked, scoreSeriesMax)
	return d
}

// at returns the tally for a name in a bucket, or nil if there is no space for another.
func (d *dimension[K]) at(name K, bucket int64) *tally {
	b := d.by[name]
	if b == nil {
		if d.cells >= cellsMax {
			return nil
		}
		b = make(buckets)
		d.by[name] = b
	}

	// A bucket that exists is counted even when there is no space for new ones.
	if d.cells >= cellsMax && b[bucket] == nil {
		return nil
	}
	t, isNew := b.at(bucket)
	if isNew {
		d.cells++
	}

	return t
}

func (d *dimension[K]) full() bool { return d.cells >= cellsMax }

// add counts a row n times, as tally.add does, and how it was judged.
func (d *dimension[K]) add(name K, bucket int64, row *wire.Row, scores []judged, n int64) {
	t := d.at(name, bucket)
	if t == nil {
		d.leftOut += n
		return
	}

	t.add(row, n)
	for i := range scores {
		d.totals.add(d.scoresOf(name), &scores[i], n)
		if d.series != nil {
			d.series.add(&t.scores, &scores[i], n)
		}
	}

	// Once a row is enough: for a moment, its own scores may exceed the bound.
	d.reduceScores()
}

// scoresOf returns the sums of a name's scores.
func (d *dimension[K]) scoresOf(name K) *scoreSums {
	s := d.scores[name]
	if s == nil {
		s = &scoreSums{}
		d.scores[name] = s
	}
	return s
}

// reduceScores makes space where scores have too many names.
func (d *dimension[K]) reduceScores() {
	d.totals.reduce(func(shrink func(*scoreSums)) {
		for _, s := range d.scores {
			shrink(s)
		}
	})
	if d.series == nil {
		return
	}

	d.series.reduce(func(shrink func(*scoreSums)) {
		for _, b := range d.by {
			for _, t := range b {
				shrink(&t.scores)
			}
		}
	})
}

// prune drops buckets and names whose requests were all taken back.
func (d *dimension[K]) prune() {
	for name, b := range d.by {
		maps.DeleteFunc(b, func(_ int64, t *tally) bool { return t.requests == 0 })

		// The scores of a name that has no requests left would still take up space.
		if len(b) == 0 {
			delete(d.by, name)
			delete(d.scores, name)
		}
	}
}

// rebucket moves all tallies to the clock's longer buckets.
func (d *dimension[K]) rebucket() {
	// Merging counts the tallies of the longer buckets again.
	d.cells = 0
	if d.series != nil {
		d.series.held = 0
	}

	for name, b := range d.by {
		d.by[name] = b.rebucket(d.clock, d.series)
		d.cells += len(d.by[name])
	}
}

// share is one name's part of the whole.
type share[K comparable] struct {
	name   K
	sum    *tally
	scores *scoreSums
	by     buckets
}

// shares returns the names' parts, those with the most requests first.
func (d *dimension[K]) shares(compare func(a, b K) int) []share[K] {
	all := make([]share[K], 0, len(d.by))
	for name, b := range d.by {
		all = append(all, share[K]{name, b.sum(), d.scoresOf(name), b})
	}

	// Names break ties, so that the answer does not depend on the order of a map.
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return cmp.Or(cmp.Compare(b.sum.requests, a.sum.requests), compare(a.name, b.name)) < 0
	})
	return all
}

// counts are requests, cost and tokens by name, for at most countsMax names.
type counts[K comparable] map[K]*count

// count is a part of a tally. All but the requests are summed up by plus.
type count struct {
	requests      int64
	costNanos     int64 // billionths of a dollar
	input, output int64 // tokens
}

// countsMax bounds the memory of one counts: names are the callers' own, such as tags.
const countsMax = 20_000

// at returns the count of a name; nil if there is no space for another.
func (c counts[K]) at(name K) *count {
	// Beyond the bound only names that are already there are counted.
	n := c[name]
	if n == nil && len(c) < countsMax {
		n = &count{}
		c[name] = n
	}

	return n
}

// add counts a row n times, as tally.add does.
func (c counts[K]) add(name K, row *wire.Row, n int64) {
	if at := c.at(name); at != nil {
		at.add(row, n)
	}
}

func (c *count) add(row *wire.Row, n int64) {
	c.requests += n
	if row.Price != nil {
		c.costNanos = plus(c.costNanos, n*nanos(*row.Price))
	}
	c.input = plus(c.input, n*wire.OrZero(row.InputTokens))
	c.output = plus(c.output, n*wire.OrZero(row.OutputTokens))
}

func (c *count) merge(other count) {
	c.requests += other.requests
	c.costNanos = plus(c.costNanos, other.costNanos)
	c.input = plus(c.input, other.input)
	c.output = plus(c.output, other.output)
}

// prune drops names whose requests were all taken back.
func (c counts[K]) prune() {
	maps.DeleteFunc(c, func(_ K, n *count) bool { return n.requests == 0 })
}

// top returns the first AnalyticsListMax names by order; names breaks ties.
func (c counts[K]) top(order func(a, b *count) int, names func(a, b K) int) []K {
	all := slices.Collect(maps.Keys(c))
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return cmp.Or(order(c[a], c[b]), names(a, b)) < 0
	})
	return all[:min(len(all), wire.AnalyticsListMax)]
}

func byRequests(a, b *count) int { return cmp.Compare(b.requests, a.requests) }

func byCost(a, b *count) int {
	return cmp.Or(cmp.Compare(b.costNanos, a.costNanos), byRequests(a, b))
}
