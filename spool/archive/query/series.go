package query

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// Bounds of a series.
const (
	bucketsMax = 200    // of a series whose buckets we choose: the shortest that give no more
	cellsMax   = 10_000 // tallies of one answer: buckets times the names that they are split by
	namesMax   = 20_000 // names of an answer in which only some have a series
)

const daySeconds = 24 * 60 * 60

var (
	// bucketSeconds are the lengths of wire.Buckets.
	bucketSeconds = []int64{1, 60, 60 * 60, daySeconds}

	// stepSeconds are the lengths that buckets of a chart may have. Each divides the next, so that
	// what was counted in shorter buckets can be added up. There is none between five minutes and
	// an hour, because many summaries have buckets of an hour.
	stepSeconds = []int64{
		1, 5, 15, 30, 60, 5 * 60, 60 * 60, 2 * 60 * 60, 4 * 60 * 60, 12 * 60 * 60,
		daySeconds, 7 * daySeconds, 28 * daySeconds, 364 * daySeconds, 3640 * daySeconds,
		36400 * daySeconds,
	}

	// longSeconds follow bucketSeconds, where there would be too many days.
	longSeconds = []int64{28 * daySeconds, 364 * daySeconds, 3640 * daySeconds, 36400 * daySeconds}
)

// daysMax bounds the days of a series that is not for a chart: 27 years.
const daysMax = cellsMax - 1

// mondaySeconds is the first Monday of 1970, from which buckets longer than a day count:
// those of weeks begin on Mondays.
const mondaySeconds = 4 * daySeconds

// clock divides time into buckets.
//
// It begins with the shortest buckets and changes to longer ones when the rows span too
// many. Where it ends depends on the rows, not on their order. A bucket that the caller
// chose stays.
type clock struct {
	steps      []int64 // lengths that buckets may have, in seconds
	at         int     // the index of the current length
	most       int64   // bounds the number of buckets
	mostDays   int64   // bounds it for buckets of a day, unless it is 0
	begun      bool
	first, end int64 // the order times of the oldest and the newest row, in seconds

	zone *time.Location // by whose clocks days and hours begin; nil is UTC
	last bucketPart     // the bucket that was found last: rows that follow each other share one
}

// bucketPart is a part of a bucket, from its beginning on, in seconds.
type bucketPart struct{ bucket, to int64 }

func (s bucketPart) has(second int64) bool { return s.bucket <= second && second <= s.to }

// newClock returns the clock for a question.
func newClock(q wire.StatisticsQuery) clock {
	c := newSteps(q)
	// The API has rejected what is not a zone.
	if zone, ok := calendar.ParseZone(q.Zone); ok && zone != time.UTC {
		c.zone = zone
	}
	c.last.to = math.MinInt64
	if !q.From.IsZero() {
		c.extend(q.From)
		c.extend(q.To)
	}

	return c
}

func newSteps(q wire.StatisticsQuery) clock {
	// The caller's choice has only one length, so that it never becomes longer.
	if i := slices.Index(wire.Buckets, q.Bucket); i >= 0 {
		return clock{steps: bucketSeconds[i : i+1], most: bucketsMax}
	}
	if q.PointsMax > 0 {
		return clock{steps: stepSeconds, most: int64(q.PointsMax)}
	}

	return clock{steps: slices.Concat(bucketSeconds, longSeconds), most: bucketsMax, mostDays: daysMax}
}

// extend includes a row's order time and reports whether the buckets became longer.
func (c *clock) extend(at time.Time) (longer bool) {
	s := at.Unix()
	if !c.begun {
		c.begun, c.first, c.end = true, s, s
	}
	c.first, c.end = min(c.first, s), max(c.end, s)

	for !c.longest() && (c.end-c.first)/c.seconds() >= c.limit() {
		c.lengthen()
		longer = true
	}

	return longer
}

// limit returns how many buckets of the current length there may be.
func (c *clock) limit() int64 {
	// The peer's series are by day, so days stay as long as they can.
	if c.seconds() == daySeconds && c.mostDays > 0 {
		return c.mostDays
	}
	return c.most
}

// longest reports whether buckets cannot become longer.
func (c *clock) longest() bool { return c.at == len(c.steps)-1 }

func (c *clock) lengthen() {
	c.at++
	c.last.to = math.MinInt64
}

func (c *clock) seconds() int64 { return c.steps[c.at] }

// bucketOf returns the bucket of a time: the second at which it begins.
func (c *clock) bucketOf(at time.Time) int64 { return c.floor(at.Unix()) }

// floor returns the beginning of the bucket that has second s. It rounds down before
// 1970, too.
func (c *clock) floor(s int64) int64 {
	// Asking the calendar takes longer than counting the row.
	if c.zone != nil {
		if !c.last.has(s) {
			length := time.Duration(c.seconds()) * time.Second
			c.last = bucketPart{calendar.Floor(time.Unix(s, 0), length, c.zone).Unix(), s}
		}
		return c.last.bucket
	}

	// Days and shorter buckets begin where those of UTC do.
	from := int64(0)
	if c.seconds() > daySeconds {
		from = mondaySeconds
	}
	return from + int64(math.Floor(float64(s-from)/float64(c.seconds())))*c.seconds()
}

// date returns the name of a bucket.
func (c *clock) date(bucket int64) string {
	t := time.Unix(bucket, 0).UTC()
	if c.zone != nil {
		t = t.In(c.zone)
	}

	// A bucket of a century may begin before the year 1, which ISO 8601 cannot write.
	if t.Year() < 1 {
		t = time.Time{}
	}

	if c.seconds() >= daySeconds {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

// takes reports whether none of our buckets divides one of a summary.
func (c *clock) takes(bucket int, newest, oldest time.Time) bool {
	length := bucketSeconds[bucket]
	if c.seconds()%length != 0 {
		return false
	}

	return c.zone == nil || calendar.Fits(time.Duration(length)*time.Second, oldest, newest, c.zone)
}

// interval returns the length of the buckets in the form of the API.
func (c *clock) interval() wire.ChartInterval {
	i := wire.ChartInterval{Interval: c.name(), BucketSizeMS: c.seconds() * 1000}

	// Null for other lengths; see wire.ChartInterval.
	if c.seconds() >= 60 && c.seconds() < daySeconds {
		minutes := c.seconds() / 60
		i.BucketMinutes = &minutes
	}

	return i
}

// name returns the longest of wire.Buckets that is not longer than the clock's buckets.
func (c *clock) name() string {
	// The peer has names for these only.
	name := wire.Buckets[0]
	for i, s := range bucketSeconds {
		if s <= c.seconds() {
			name = wire.Buckets[i]
		}
	}
	return name
}

// buckets are tallies by bucket.
type buckets map[int64]*tally

// at returns the tally of a bucket, a new one if there is none yet.
func (b buckets) at(bucket int64) (t *tally, isNew bool) {
	t = b[bucket]
	if t == nil {
		t = &tally{}
		b[bucket] = t
		return t, true
	}
	return t, false
}

// rebucket merges the tallies into the longer buckets of c, and their scores unless
// scores is nil.
func (b buckets) rebucket(c *clock, scores *scoreBound) buckets {
	longer := make(buckets)
	for at, t := range b {
		bucket := at
		if at != condensed {
			bucket = c.floor(at)
		}
		into, _ := longer.at(bucket)
		into.merge(t)
		if scores != nil {
			scores.merge(&into.scores, &t.scores)
		}
	}

	return longer
}

// sum adds up the tallies, apart from their scores.
func (b buckets) sum() *tally {
	t := &tally{}
	for _, part := range b {
		t.merge(part)
	}
	return t
}

// sorted returns the existing buckets, oldest first.
func (b buckets) sorted() []int64 { return slices.Sorted(maps.Keys(b)) }

// errTooManyBuckets rejects a bucket that the caller chose.
func errTooManyBuckets(bucket string) error {
	return invalid("bucket",
		"a %s is too short for so many records; choose a longer one, or a filter with less time", bucket)
}

// dimension is a series for each of some names: models, templates, versions.
type dimension struct {
	clock   *clock
	by      map[part]buckets
	cells   int // tallies of all buckets, at most space
	space   int
	names   int   // how many names may have cells
	leftOut int64 // requests for which there was no cell

	scores map[part]*scoreSums
	totals *scoreBound // of scores
	series *scoreBound // of the scores by bucket; nil if the answer has none
}

func newDimension(c *clock) *dimension {
	return &dimension{
		clock:  c,
		space:  cellsMax,
		names:  cellsMax,
		by:     make(map[part]buckets),
		scores: make(map[part]*scoreSums),
		totals: newScoreBound(scoreTotalsMax),
	}
}

// bySeries counts the scores by bucket, too.
func (d *dimension) bySeries() *dimension {
	d.series = newScoreBound(scoreSeriesMax)
	return d
}

// at returns the tally for a name in a bucket, or nil if there is no space for another.
func (d *dimension) at(name part, bucket int64) *tally {
	b := d.by[name]
	if b == nil {
		if d.full() || len(d.by) >= d.names {
			return nil
		}
		b = make(buckets)
		d.by[name] = b
	}
	if t := b[condensed]; t != nil {
		return t
	}

	// A bucket that exists is counted even when there is no space for new ones.
	if d.full() && b[bucket] == nil {
		return nil
	}
	t, isNew := b.at(bucket)
	if isNew {
		d.cells++
	}

	return t
}

func (d *dimension) full() bool { return d.cells >= d.space }

// condensed is the bucket of a name whose series was given up: all of its requests.
const condensed = math.MinInt64

// condense gives up series, the last ones first, until a quarter of the cells is free. The sums of their
// names stay.
func (d *dimension) condense(shares []share) {
	for _, s := range slices.Backward(shares) {
		if d.cells <= d.space*3/4 {
			return
		}
		d.cells -= len(s.by) - 1
		for _, t := range s.by {
			if d.series != nil {
				d.series.held -= len(t.scores.kept)
			}
		}
		d.by[s.name] = buckets{condensed: s.by.sum()}
	}
}

// add counts a row n times, as tally.add does, and how it was judged.
func (d *dimension) add(name part, bucket int64, row *wire.Row, scores []judged, n int64) {
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
func (d *dimension) scoresOf(name part) *scoreSums {
	s := d.scores[name]
	if s == nil {
		s = &scoreSums{}
		d.scores[name] = s
	}
	return s
}

// reduceScores makes space where scores have too many names.
func (d *dimension) reduceScores() {
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
func (d *dimension) prune() {
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
func (d *dimension) rebucket() {
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
type share struct {
	name   part
	sum    *tally // to be read, apart from latencies and scores
	scores *scoreSums
	by     buckets
}

// shares returns the names' parts, those with the most requests first.
func (d *dimension) shares() []share {
	all := make([]share, 0, len(d.by))
	for name, b := range d.by {
		// There may be many names, most with one bucket, of which an answer has few: only these have their
		// latencies added up.
		var sum *tally
		for _, t := range b {
			if len(b) == 1 {
				sum = t
				break
			}
			if sum == nil {
				sum = &tally{}
			}
			sum.mergeCounts(t)
		}
		all = append(all, share{name, sum, d.scoresOf(name), b})
	}

	// Names break ties, so that the answer does not depend on the order of a map.
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return cmp.Or(cmp.Compare(b.sum.requests, a.sum.requests), compareParts(a.name, b.name)) < 0
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
