package query

import (
	"bytes"
	"errors"
	"time"

	"promptspool/api/wire"
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
// counts are varints. A tally ends with scores: n names, for each its text and n
// different scores, each a uvarint and how often it came; then the scores of all other
// names together.
const summaryVersion = 1

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

// ErrSummary means that what was to be merged is no summary.
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
