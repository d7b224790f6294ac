package query

import (
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Condition is a filter made ready, or a part of one: All, Any, Not or *Test. A store may take it apart to look at a column
// for many rows at once, as long as it finds what Match finds.
type Condition interface {
	Match(s *Subject) bool
}

// All holds when each of its conditions does; with none it holds.
type All []Condition

// Match is the meaning of the condition.
func (a All) Match(s *Subject) bool {
	for _, c := range a {
		if !c.Match(s) {
			return false
		}
	}
	return true
}

// Any holds when one of its conditions does.
type Any []Condition

// Match is the meaning of the condition.
func (a Any) Match(s *Subject) bool {
	for _, c := range a {
		if c.Match(s) {
			return true
		}
	}
	return false
}

// Not turns a condition round.
type Not struct{ Condition }

// Match is the meaning of the condition.
func (n Not) Match(s *Subject) bool { return !n.Condition.Match(s) }

// Test is a condition on one field.
type Test struct {
	Column rowcode.Column // all that it looks at
	Key    string         // the metadata key or the score that it looks at, if it looks at one only
	// Number is set for a field that is one number or none: whether the condition holds for it.
	Number func(values []float64) bool
	// Texts are the values of which the field must have one, for a test that asks just that of a text field; nil: it asks something else.
	Texts []string
	// Ranges are those in one of which a number of the field must lie, for a test that asks just that; nil: it asks something else.
	Ranges []Range
	// From and To are the first and the last moment for which the condition can hold, for a field that is a time; zero: no bound. Where
	// there is one, the condition holds for every moment between them, and for themselves.
	From, To time.Time

	whole bool // it looks into long metadata values
	match func(s *Subject) bool
}

// Range is a stretch of numbers.
type Range struct {
	Least, Most          float64 // infinite: no bound
	AboveOnly, BelowOnly bool    // Least itself, Most itself, does not count
}

// Has says whether a number lies in the range.
func (r Range) Has(x float64) bool {
	return (x > r.Least || x == r.Least && !r.AboveOnly) && (x < r.Most || x == r.Most && !r.BelowOnly)
}

// Match is the meaning of the condition.
func (t *Test) Match(s *Subject) bool { return t.match(s) }

// Subject is what a condition is asked about: a row, and what its request's body says if anybody asks. Not safe for
// concurrent use.
type Subject struct {
	Row  *wire.Row
	Body func() ([]byte, error) // the body of the row's request; nil: there is none to look into
	// Metadata is that of the record, with long values whole; nil: conditions that must look into one do not hold,
	// and Unsure says that there was one.
	Metadata func() (map[string]string, error)
	Unsure   bool

	// Err is the first error of Body or Metadata. After one the conditions that need it do not hold.
	Err error

	content *Content
	whole   map[string]string
}

// Read returns what the body says. It is read once.
func (s *Subject) Read() *Content {
	if s.content != nil {
		return s.content
	}
	s.content = &Content{}
	if s.Body == nil {
		return s.content
	}
	body, err := s.Body()
	if err != nil {
		s.Err = err
		return s.content
	}
	s.content = ReadContent(body)
	return s.content
}

// wholeOf is what the record has under a metadata key, of which the row has a value.
func (s *Subject) wholeOf(key, stored string) (value string, ok bool) {
	if !rowcode.IsReference(stored) {
		return stored, true
	}
	if s.Metadata == nil {
		s.Unsure = true
		return "", false
	}

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

// columnsOf are those that a condition looks at.
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

// spanned says whether a condition holds for all records of a stretch of time.
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
		return c.Column == rowcode.ColumnTime && !(c.From.IsZero() && c.To.IsZero())
	}
	return false
}

// spanOf bounds the moments of a column for which a condition can hold; zero: no bound.
func spanOf(c Condition, column rowcode.Column) (from, to time.Time) {
	switch c := c.(type) {
	case All:
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
	return from, to
}
