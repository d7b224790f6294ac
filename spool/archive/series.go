package archive

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

var bucketLengths = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// clock cuts time into buckets. It begins with seconds, and where the rows span more than bucketsMax buckets, goes on with longer
// ones: what it ends at depends on the rows, not on their order. A bucket that the caller chose stays.
type clock struct {
	fixed      bool
	bucket     string
	begun      bool
	first, end int64 // the rows' moments in seconds
}

func newClock(bucket string) clock {
	return clock{fixed: bucket != "", bucket: orElse(bucket, "second")}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// see takes note of a row's moment and says whether the buckets became longer.
func (c *clock) see(at time.Time) (longer bool) {
	s := at.Unix()
	if !c.begun {
		c.begun, c.first, c.end = true, s, s
	}
	c.first, c.end = min(c.first, s), max(c.end, s)
	for !c.fixed && c.bucket != "day" && (c.end-c.first)/c.seconds() >= bucketsMax {
		c.lengthen()
		longer = true
	}
	return longer
}

func (c *clock) lengthen() { c.bucket = wire.Buckets[slices.Index(wire.Buckets, c.bucket)+1] }

func (c *clock) seconds() int64 { return int64(bucketLengths[c.bucket] / time.Second) }

// of is the bucket of a moment: the second at which it begins.
func (c *clock) of(at time.Time) int64 { return c.floor(at.Unix()) }

func (c *clock) floor(s int64) int64 {
	return int64(math.Floor(float64(s)/float64(c.seconds()))) * c.seconds()
}

// date is how a bucket is called.
func (c *clock) date(bucket int64) string {
	t := time.Unix(bucket, 0).UTC()
	if c.bucket == "day" {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

func (c *clock) interval() wire.ChartInterval {
	i := wire.ChartInterval{Interval: c.bucket, BucketSizeMS: c.seconds() * 1000}
	if c.bucket == "minute" || c.bucket == "hour" {
		minutes := c.seconds() / 60
		i.BucketMinutes = &minutes
	}
	return i
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

// recut merges the tallies into the longer buckets of c.
func (b buckets) recut(c *clock) buckets {
	longer := make(buckets)
	for at, t := range b {
		into, _ := longer.at(c.floor(at))
		into.merge(t)
	}
	return longer
}

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
