package query

import (
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
)

// Condition is a compiled filter or a part of one: All, Any, Not or *Test. A store may
// take it apart to look at a column for many rows together, as long as it finds what
// Match finds.
type Condition interface {
	Match(s *Subject) bool
}

// All holds if each of its conditions does, and if it has none.
type All []Condition

// Match reports whether the condition holds.
func (a All) Match(s *Subject) bool {
	for _, c := range a {
		if !c.Match(s) {
			return false
		}
	}
	return true
}

// Any holds if one of its conditions does.
type Any []Condition

// Match reports whether the condition holds.
func (a Any) Match(s *Subject) bool {
	for _, c := range a {
		if c.Match(s) {
			return true
		}
	}
	return false
}

// Not negates a condition.
type Not struct{ Condition }

// Match reports whether the condition holds.
func (n Not) Match(s *Subject) bool { return !n.Condition.Match(s) }

// Test is a condition on one field.
type Test struct {
	Field  string         // of the filter
	Column rowcode.Column // the only one that it looks at
	Key    string         // the metadata key or score that it looks at, if it is only one

	// Number is set for a field with at most one number. It reports whether the test
	// holds.
	Number func(values []float64) bool

	// Texts is set if the test asks only whether a text field has one of these values, words
	// in lower case.
	Texts []string

	// Ranges is set if the test asks only whether a number of the field is in one of
	// these.
	Ranges []Range

	// From and To are the first and the last moment for which the test of a time can
	// hold; zero means unbounded. If one is set, the test holds for every moment between them,
	// and for From and To themselves.
	From, To time.Time

	terms  []textindex.Term // of words that the text must have, as far as an index can tell
	whole  bool             // it looks into long metadata values
	sought words.Sought     // what a positive operator looks for in texts; nil if that has no place there
	match  func(s *Subject) bool
}

// Range is an interval of numbers.
type Range struct {
	Least, Most          float64 // infinite: unbounded
	AboveOnly, BelowOnly bool    // exclude Least itself, Most itself
}

// Has reports whether a number is in the range.
func (r Range) Has(x float64) bool {
	return (x > r.Least || x == r.Least && !r.AboveOnly) && (x < r.Most || x == r.Most && !r.BelowOnly)
}

// Match reports whether the condition holds.
func (t *Test) Match(s *Subject) bool { return t.match(s) }

// Subject is what a condition is tested on: a row and, on demand, its request's body. Not
// safe for concurrent use.
type Subject struct {
	Row  *wire.Row
	Body func() ([]byte, error) // nil: there is no body to look into

	// Context ends the reading of a body; nil means nothing does. Then conditions that need the
	// body fail, and Cut reports that.
	Context context.Context

	// Metadata returns that of the record, with whole long values. If it is nil,
	// conditions that must look into a long value do not hold, and Unsure reports that
	// there was one.
	Metadata func() (map[string]string, error)
	Unsure   bool

	// Err is the first error of Body or Metadata. After it, conditions that need them
	// fail.
	Err error

	content *Content
	cut     bool
	whole   map[string]string
}

// Read returns what the body says. The body is read once.
func (s *Subject) Read() *Content {
	if s.content != nil {
		return s.content
	}

	// Set before the body is read: after an error, no condition tries again.
	s.content = &Content{}
	if s.Body == nil {
		return s.content
	}
	body, err := s.Body()
	if err != nil {
		s.Err = err
		return s.content
	}
	ctx := s.Context
	if ctx == nil {
		ctx = context.Background()
	}
	s.content = ReadContent(ctx, body)
	s.cut = ctx.Err() != nil
	if s.cut {
		s.content = &Content{}
	}

	return s.content
}

// Cut reports whether the reading of the body was ended before its end.
func (s *Subject) Cut() bool { return s.cut }

// Judge decides for one row after the other whether it matches a query, until the query's budget is
// spent. Not safe for concurrent use.
type Judge struct {
	Stopped *Position // where the budget was spent; nil if it was not

	query    *Query
	deadline time.Time // zero: none
	last     *Position // of the row before; nil before the first
	subject  Subject   // of the row that was judged last
}

// NewJudge returns a Judge for a pass over the rows of q, which begins now.
func NewJudge(q *Query) Judge {
	j := Judge{query: q}
	if q.Budget > 0 {
		j.deadline = time.Now().Add(q.Budget)
	}

	return j
}

// Matches reports whether a row matches. body and metadata are called only if the row leaves that open,
// or for a snippet. Once Stopped is set, the pass ends.
func (j *Judge) Matches(
	ctx context.Context, row *wire.Row, body func() ([]byte, error), metadata func() (map[string]string, error),
) (matches bool, err error) {
	// The first row is read to its end, so that each pass comes further.
	reading := ctx
	if j.last != nil && !j.deadline.IsZero() {
		var cancel context.CancelFunc
		reading, cancel = context.WithDeadline(ctx, j.deadline)
		defer cancel()
	}

	j.subject = Subject{Row: row, Context: reading, Body: body, Metadata: metadata}
	matches = j.query.Match(&j.subject)
	j.subject.Context = ctx
	switch {
	case j.subject.Err != nil:
		return false, j.subject.Err
	case j.subject.Cut(): // the next pass begins with this row
		j.Stopped = j.last
		return false, ctx.Err()
	}

	p := PositionOf(row)
	j.last = &p
	// Only where nothing matched: a page of matches ends by itself.
	if !matches && !j.deadline.IsZero() && time.Now().After(j.deadline) {
		j.Stopped = j.last
	}

	return matches, nil
}

// wholeValue returns the whole metadata value of which the row has a stored one.
func (s *Subject) wholeValue(key, stored string) (value string, ok bool) {
	if !rowcode.IsReference(stored) {
		return stored, true
	}

	// Without the record nothing is certain; the caller may have to look again.
	if s.Metadata == nil {
		s.Unsure = true
		return "", false
	}

	// One record may be read for many conditions.
	if s.whole == nil {
		all, err := s.Metadata()
		if err != nil {
			s.Err = err
			return "", false
		}
		s.whole = all
	}
	value, ok = s.whole[key]

	return value, ok
}

// needsWhole reports whether a condition may have to look into long metadata values.
func needsWhole(c Condition) bool {
	switch c := c.(type) {
	case All:
		return slices.ContainsFunc(c, needsWhole)
	case Any:
		return slices.ContainsFunc(c, needsWhole)
	case Not:
		return needsWhole(c.Condition)
	case *Test:
		return c.whole
	}
	return false
}

// columnsOf returns the columns that a condition looks at.
func columnsOf(c Condition) (s rowcode.Columns) {
	switch c := c.(type) {
	case All:
		for _, part := range c {
			s |= columnsOf(part)
		}
	case Any:
		for _, part := range c {
			s |= columnsOf(part)
		}
	case Not:
		return columnsOf(c.Condition)
	case *Test:
		return rowcode.ColumnsOf(c.Column)
	}
	return s
}

// spanned reports whether a condition holds for exactly the records of an interval of time.
func spanned(c Condition) bool {
	switch c := c.(type) {
	case All:
		for _, part := range c {
			if !spanned(part) {
				return false
			}
		}
		return true

	case *Test:
		// A test of time with neither end, such as is_null, is not an interval.
		return c.Column == rowcode.ColumnTime && !(c.From.IsZero() && c.To.IsZero())
	}

	return false
}

// spanOf bounds the moments of a column for which a condition can hold; zero means unbounded.
func spanOf(c Condition, column rowcode.Column) (from, to time.Time) {
	switch c := c.(type) {
	case All:
		// All parts must hold, so the narrowest bounds count.
		for _, part := range c {
			f, t := spanOf(part, column)
			if f.After(from) {
				from = f
			}
			if !t.IsZero() && (to.IsZero() || t.Before(to)) {
				to = t
			}
		}
	case *Test:
		if c.Column == column {
			return c.From, c.To
		}
	}

	// Any and Not are taken to hold at any time. Where they do not, that costs time, but
	// no record is missed.
	return from, to
}
