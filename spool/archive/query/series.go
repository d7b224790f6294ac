package query

import (
	"math"
	"slices"
	"time"

	"promptspool/api/wire"
)

// Bounds of a series.
const (
	bucketsMax = 200    // of a series whose buckets we choose: the shortest that give no more
	cellsMax   = 10_000 // tallies of one answer: buckets times what they are split by
)

const daySeconds = 24 * 60 * 60

var (
	// bucketSeconds are how long each of wire.Buckets is.
	bucketSeconds = []int64{1, 60, 60 * 60, daySeconds}
	// stepSeconds are how long the buckets of a drawing may be. There is none between five minutes and an hour: summaries tell hours.
	stepSeconds = []int64{1, 2, 5, 15, 30, 60, 2 * 60, 5 * 60, 60 * 60, 2 * 60 * 60, 4 * 60 * 60, 12 * 60 * 60,
		daySeconds, 2 * daySeconds, 7 * daySeconds, 28 * daySeconds, 364 * daySeconds, 3640 * daySeconds, 36400 * daySeconds}
	// longSeconds go on behind bucketSeconds, where days would be too many.
	longSeconds = []int64{28 * daySeconds, 364 * daySeconds, 3640 * daySeconds, 36400 * daySeconds}
)

// daysMax is how many buckets of a day a series has that is not for drawing: 27 years.
const daysMax = cellsMax - 1

// mondaySeconds is when the first week began that did so on a Monday.
const mondaySeconds = 4 * daySeconds

// clock cuts time into buckets. It begins with seconds, and where the rows span more buckets than it may have, goes on with longer
// ones: what it ends at depends on the rows, not on their order. A bucket that the caller chose stays.
type clock struct {
	steps      []int64 // that buckets may be long, in seconds
	at         int     // the step that is in force
	most       int64   // buckets
	mostDays   int64   // buckets of a day; 0: most
	begun      bool
	first, end int64 // the rows' moments in seconds
}

func newClock(q wire.StatisticsQuery) clock {
	if i := slices.Index(wire.Buckets, q.Bucket); i >= 0 {
		return clock{steps: bucketSeconds[i : i+1], most: bucketsMax}
	}
	if q.PointsMax > 0 {
		return clock{steps: stepSeconds, most: int64(q.PointsMax)}
	}
	return clock{steps: slices.Concat(bucketSeconds, longSeconds), most: bucketsMax, mostDays: daysMax}
}

// see takes note of a row's moment and says whether the buckets became longer.
func (c *clock) see(at time.Time) (longer bool) {
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

// limit is how many buckets of the present length there may be.
func (c *clock) limit() int64 {
	if c.seconds() == daySeconds && c.mostDays > 0 {
		return c.mostDays
	}
	return c.most
}

// longest says that buckets cannot become longer.
func (c *clock) longest() bool { return c.at == len(c.steps)-1 }

func (c *clock) lengthen() { c.at++ }

func (c *clock) seconds() int64 { return c.steps[c.at] }

// of is the bucket of a moment: the second at which it begins.
func (c *clock) of(at time.Time) int64 { return c.floor(at.Unix()) }

func (c *clock) floor(s int64) int64 {
	from := int64(0)
	if c.seconds() > daySeconds {
		from = mondaySeconds
	}
	return from + int64(math.Floor(float64(s-from)/float64(c.seconds())))*c.seconds()
}

// date is how a bucket is called.
func (c *clock) date(bucket int64) string {
	t := time.Unix(bucket, 0).UTC()
	if t.Year() < 1 { // no record is so old
		t = time.Time{}
	}
	if c.seconds() >= daySeconds {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

func (c *clock) interval() wire.ChartInterval {
	i := wire.ChartInterval{Interval: c.name(), BucketSizeMS: c.seconds() * 1000}
	if c.seconds() >= 60 && c.seconds() < daySeconds {
		minutes := c.seconds() / 60
		i.BucketMinutes = &minutes
	}
	return i
}

// name is what the longest of wire.Buckets is called that is no longer than the clock's.
func (c *clock) name() string {
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

func (b buckets) at(bucket int64) (t *tally, isNew bool) {
	t = b[bucket]
	if t == nil {
		t = &tally{}
		b[bucket] = t
		return t, true
	}
	return t, false
}

// recut merges the tallies into the longer buckets of c, and their scores if they have any.
func (b buckets) recut(c *clock, scores *scoreBound) buckets {
	longer := make(buckets)
	for at, t := range b {
		into, _ := longer.at(c.floor(at))
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

func (b buckets) sorted() []int64 {
	order := make([]int64, 0, len(b))
	for at := range b {
		order = append(order, at)
	}
	slices.Sort(order)
	return order
}

func errTooManyBuckets(bucket string) error {
	return invalid("bucket", "a %s is too short for so many records; choose a longer one, or a filter with less time", bucket)
}
