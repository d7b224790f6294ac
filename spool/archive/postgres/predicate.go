package postgres

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// predicate is what a filter asks, in SQL, as far as the columns can tell: all that the filter finds, it finds.
type predicate struct {
	sql   string // "": everything
	exact bool   // it finds nothing else
	terms bool   // nothing is found that the index on terms does not find
}

// statement gathers the arguments of one statement.
type statement struct {
	account string
	at      string // how it names the order time; "": at
	args    []any
}

// arg adds an argument and returns how the statement names it.
func (s *statement) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

// orderTime names the order time.
func (s *statement) orderTime() string { return cmp.Or(s.at, "at") }

// where makes the predicate of a query's filter. What depends on words in bodies is never exact.
func (s *statement) where(q *query.Query) predicate {
	p := predicate{exact: true}
	if q.Where != nil {
		p = s.condition(q.Where)
	}
	p.exact = p.exact && len(q.Words) == 0
	return p
}

func (s *statement) condition(c query.Condition) predicate {
	before := len(s.args)
	p := s.translate(c)
	if p.sql == "" {
		s.args = s.args[:before] // a statement may not have arguments that it does not name
	}
	return p
}

func (s *statement) translate(c query.Condition) predicate {
	switch c := c.(type) {
	case query.All:
		return s.all(c)
	case query.Any:
		return s.any(c)
	case query.Not:
		if p := s.condition(c.Condition); p.exact && p.sql != "" {
			return predicate{sql: "(" + p.sql + ") IS NOT TRUE", exact: true}
		} else if p.exact {
			return predicate{sql: "false", exact: true}
		}
		return predicate{}
	case *query.Test:
		return s.test(c)
	}
	return predicate{}
}

func (s *statement) all(parts []query.Condition) predicate {
	p := predicate{exact: true}
	var sql []string
	parts, versions := s.versions(parts)
	if versions != "" {
		sql, p.terms = append(sql, versions), true
	}
	for _, part := range parts {
		one := s.condition(part)
		if one.sql != "" {
			sql = append(sql, one.sql)
		}
		p.exact = p.exact && one.exact
		p.terms = p.terms || one.terms
	}
	p.sql = strings.Join(sql, " AND ")
	return p
}

func (s *statement) any(parts []query.Condition) predicate {
	p := predicate{exact: true, terms: len(parts) > 0}
	var sql []string
	everything := false
	for _, part := range parts {
		one := s.condition(part)
		everything = everything || one.sql == ""
		sql = append(sql, "("+one.sql+")")
		p.exact, p.terms = p.exact && one.exact, p.terms && one.terms
	}
	if !everything {
		p.sql = "(" + strings.Join(sql, " OR ") + ")"
	}
	return p
}

func (s *statement) test(t *query.Test) predicate {
	column, hasRange := rangeColumns[t.Column]
	switch {
	case t.Column == rowcode.ColumnTime && !(t.From.IsZero() && t.To.IsZero()):
		return s.span(t)
	case t.Column == rowcode.ColumnStart && !(t.From.IsZero() && t.To.IsZero()):
		return s.startSpan(t)
	case t.Column == rowcode.ColumnID && t.Texts != nil:
		return s.ids(t.Texts)
	case t.Texts != nil && rowcode.Columns(termColumns).Has(t.Column):
		return s.terms(t.Column, t.Key, t.Texts)
	case hasRange && t.Ranges != nil:
		return s.ranges(column, t.Ranges)
	case hasRange && t.Number != nil:
		return predicate{sql: column + " IS NULL", exact: true} // is_null and is_empty are the others
	case t.Column == rowcode.ColumnScores && t.Ranges != nil:
		return s.scores(t)
	}
	return predicate{}
}

// terms asks for records that have one of the texts.
func (s *statement) terms(c rowcode.Column, key string, texts []string) predicate {
	if c == rowcode.ColumnMetadata && key == "" {
		c = metadataKeys
	}
	terms := make([]int64, len(texts))
	for i, text := range texts {
		terms[i] = term(s.account, c, key, text)
	}
	return predicate{s.anyTerm(terms), true, true}
}

// anyTerm asks for records that have one of the terms.
func (s *statement) anyTerm(terms []int64) string {
	if len(terms) == 1 {
		return "terms @> " + s.arg(terms) + "::bigint[]"
	}
	return "terms && " + s.arg(terms) + "::bigint[]"
}

// scores asks for a score in one of the ranges: there are only so many (wire.DecodeScore).
func (s *statement) scores(t *query.Test) predicate {
	terms := []int64{}
	for n := range 101 {
		if slices.ContainsFunc(t.Ranges, func(r query.Range) bool { return r.Has(float64(n)) }) {
			terms = append(terms, term(s.account, scoreValues, t.Key, strconv.Itoa(n)))
		}
	}
	return predicate{s.anyTerm(terms), true, true}
}

// versionsMax bounds the pairs of a template and a version that are asked for as such.
const versionsMax = 100

// versions takes a template and its version out of conditions that all must hold, for which there are terms of both; "" if there are none.
func (s *statement) versions(parts []query.Condition) (others []query.Condition, sql string) {
	var template, version *query.Test
	for _, part := range parts {
		switch t, _ := part.(*query.Test); {
		case t == nil:
		case t.Column == rowcode.ColumnTemplate && t.Texts != nil && template == nil:
			template = t
			continue
		case t.Column == rowcode.ColumnVersion && onlyPoints(t.Ranges) && version == nil:
			version = t
			continue
		}
		others = append(others, part)
	}
	if template == nil || version == nil || len(template.Texts)*len(version.Ranges) > versionsMax {
		return parts, ""
	}
	terms := []int64{}
	for _, name := range template.Texts {
		for _, r := range version.Ranges {
			terms = append(terms, term(s.account, templateVersions, name, strconv.FormatFloat(r.Least, 'f', -1, 64)))
		}
	}
	return others, s.anyTerm(terms)
}

// onlyPoints says whether ranges are numbers.
func onlyPoints(ranges []query.Range) bool {
	return ranges != nil && !slices.ContainsFunc(ranges, func(r query.Range) bool { return r.Least != r.Most })
}

// ids asks for records by their ids. A text that is none finds nothing.
func (s *statement) ids(texts []string) predicate {
	ids := []uuid{}
	for _, text := range texts {
		if id, ok := parseUUID(text); ok && id.String() == text {
			ids = append(ids, id)
		}
	}
	return predicate{sql: "request_id = ANY(" + s.arg(ids) + "::uuid[])", exact: true}
}

// ranges asks for a number in one of the ranges.
func (s *statement) ranges(column string, ranges []query.Range) predicate {
	if len(ranges) == 0 {
		return predicate{sql: "false", exact: true}
	}
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		switch {
		case r.Least == r.Most:
			parts[i] = column + "::float8 = " + s.arg(r.Least) + "::float8"
			continue
		case math.IsInf(r.Least, -1):
			parts[i] = column + "::float8 " + or("<=", "<", r.BelowOnly) + " " + s.arg(r.Most) + "::float8"
			continue
		}
		parts[i] = column + "::float8 " + or(">=", ">", r.AboveOnly) + " " + s.arg(r.Least) + "::float8"
		if !math.IsInf(r.Most, 1) {
			parts[i] += " AND " + column + "::float8 " + or("<=", "<", r.BelowOnly) + " " + s.arg(r.Most) + "::float8"
		}
	}
	return predicate{sql: "(" + strings.Join(parts, " OR ") + ")", exact: true}
}

func or(closed, open string, isOpen bool) string {
	if isOpen {
		return open
	}
	return closed
}

// span asks for an order time.
func (s *statement) span(t *query.Test) predicate {
	var parts []string
	if !t.From.IsZero() {
		parts = append(parts, s.orderTime()+" >= "+s.arg(nanosOf(t.From)))
	}
	if !t.To.IsZero() {
		parts = append(parts, s.orderTime()+" <= "+s.arg(nanosOf(t.To)))
	}
	return predicate{sql: strings.Join(parts, " AND "), exact: true}
}

// startSpan asks for a start time, the ends included.
func (s *statement) startSpan(t *query.Test) predicate {
	parts := []string{"start_at IS NOT NULL"}
	if !t.From.IsZero() {
		parts = append(parts, "start_at >= "+s.arg(nanosOf(t.From)))
	}
	if !t.To.IsZero() {
		parts = append(parts, "start_at <= "+s.arg(nanosOf(t.To)))
	}
	return predicate{sql: strings.Join(parts, " AND "), exact: false}
}
