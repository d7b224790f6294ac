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

// predicate is a filter in SQL, as far as the columns can answer it. It selects every row
// that the filter does, and perhaps others.
type predicate struct {
	sql   string // "" selects every row
	exact bool   // it selects no row that the filter does not
	terms bool   // it selects only rows that the index on terms finds
}

// statement builds one SQL statement and gathers its arguments.
type statement struct {
	account string
	at      string // the expression for the list time; "at" if empty
	args    []any
}

// arg adds an argument and returns its placeholder.
func (s *statement) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

// listTime returns the expression for the list time.
func (s *statement) listTime() string { return cmp.Or(s.at, "at") }

// where translates the filter of a query. Words are searched in bodies, which no column
// has, so a query with words is never exact.
func (s *statement) where(q *query.Query) predicate {
	// Without a filter every row is meant, so nothing is left to test.
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

	// PostgreSQL rejects arguments that no placeholder uses: drop those of parts that were
	// translated and then not needed.
	if p.sql == "" {
		s.args = s.args[:before]
	}

	return p
}

func (s *statement) translate(c query.Condition) predicate {
	switch c := c.(type) {
	case query.All:
		return s.allOf(c)

	case query.Any:
		return s.anyOf(c)

	case query.Not:
		// The negation of an inexact predicate would lose rows. IS NOT TRUE, and not NOT: a
		// comparison with NULL does not hold, so its negation does.
		p := s.condition(c.Condition)
		switch {
		case p.exact && p.sql != "":
			return predicate{sql: "(" + p.sql + ") IS NOT TRUE", exact: true}
		case p.exact:
			return predicate{sql: "false", exact: true}
		}
		return predicate{}

	case *query.Test:
		return s.test(c)
	}

	return predicate{}
}

func (s *statement) allOf(parts []query.Condition) predicate {
	p := predicate{exact: true}
	var sql []string

	parts, versions := s.versions(parts)
	if versions != "" {
		sql, p.terms = append(sql, versions), true
	}

	// Parts that no column answers are left out: the filter itself tests them later.
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

func (s *statement) anyOf(parts []query.Condition) predicate {
	p := predicate{exact: true, terms: len(parts) > 0}
	var sql []string
	everything := false

	// An index on terms helps only if each alternative has terms.
	for _, part := range parts {
		one := s.condition(part)
		everything = everything || one.sql == ""
		sql = append(sql, "("+one.sql+")")
		p.exact = p.exact && one.exact
		p.terms = p.terms && one.terms
	}

	// If one alternative may select any row, so does the whole.
	if !everything {
		p.sql = "(" + strings.Join(sql, " OR ") + ")"
	}

	return p
}

func (s *statement) test(t *query.Test) predicate {
	d := rowcode.Define(t.Column)
	column, hasRange := d.SQL, d.SQL != "" && d.Number() != nil

	switch {
	case t.Column == rowcode.ColumnTime && !(t.From.IsZero() && t.To.IsZero()):
		return s.timeRange(t, s.listTime())
	case t.Column == rowcode.ColumnAccepted && !(t.From.IsZero() && t.To.IsZero()):
		return s.timeRange(t, "accepted")
	case t.Column == rowcode.ColumnStart && !(t.From.IsZero() && t.To.IsZero()):
		return s.startTimeRange(t)
	case t.Column == rowcode.ColumnID && t.Texts != nil:
		return s.ids(t.Texts)
	case t.Texts != nil && hasTerms(t.Column):
		return s.terms(t.Column, t.Key, t.Texts)
	case hasRange && t.Ranges != nil:
		return s.ranges(column, t.Ranges)
	case hasRange && t.Number != nil:
		// The only tests of a number without ranges are is_null and is_empty.
		return predicate{sql: column + " IS NULL", exact: true}
	case t.Column == rowcode.ColumnScores && t.Ranges != nil:
		return s.scores(t)
	}

	return predicate{}
}

// terms selects records that have one of the texts.
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

// anyTerm selects records that have one of the terms.
func (s *statement) anyTerm(terms []int64) string {
	if len(terms) == 1 {
		return "terms @> " + s.arg(terms) + "::bigint[]"
	}
	return "terms && " + s.arg(terms) + "::bigint[]"
}

// scores selects records with a score in one of the ranges. Scores are whole numbers from 0
// to 100 (wire.DecodeScore), so a range is a list of terms.
func (s *statement) scores(t *query.Test) predicate {
	// Not nil, which pgx sends as NULL.
	terms := []int64{}
	for n := range 101 {
		if slices.ContainsFunc(t.Ranges, func(r query.Range) bool { return r.Has(float64(n)) }) {
			terms = append(terms, term(s.account, scoreValues, t.Key, strconv.Itoa(n)))
		}
	}

	return predicate{s.anyTerm(terms), true, true}
}

// versionsMax bounds the pairs of template and version that are looked up by their own terms.
const versionsMax = 100

// versions takes the test of a template and that of its version out of conditions that must
// all hold, and returns SQL for the pair. sql is "" if there is no such pair.
//
// The pair has terms of its own because either test alone finds far more records: all of a
// template, or version 1 of every template.
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

	// A term for each pair: by the template alone, all of its versions would have to be
	// read.
	terms := []int64{}
	for _, name := range template.Texts {
		for _, r := range version.Ranges {
			number := strconv.FormatFloat(r.Least, 'f', -1, 64)
			terms = append(terms, term(s.account, templateVersions, name, number))
		}
	}

	return others, s.anyTerm(terms)
}

// onlyPoints reports whether each range is a single number.
func onlyPoints(ranges []query.Range) bool {
	return ranges != nil && !slices.ContainsFunc(ranges, func(r query.Range) bool { return r.Least != r.Most })
}

// ids selects records by their ids. Texts that are not ids in canonical form match nothing.
func (s *statement) ids(texts []string) predicate {
	// Empty, not nil: then nothing matches.
	ids := []uuid{}
	for _, text := range texts {
		// As a text, as the filter compares: another spelling of the same id is another text.
		if id, ok := parseUUID(text); ok && id.String() == text {
			ids = append(ids, id)
		}
	}

	return predicate{sql: "request_id = ANY(" + s.arg(ids) + "::uuid[])", exact: true}
}

// ranges selects records whose column is in one of the ranges. Both sides are compared as
// float8, as query.Range does, also where the column is an integer.
func (s *statement) ranges(column string, ranges []query.Range) predicate {
	// A test that no number passes.
	if len(ranges) == 0 {
		return predicate{sql: "false", exact: true}
	}

	parts := make([]string, len(ranges))
	for i, r := range ranges {
		below := func() string {
			return column + "::float8 " + operator("<=", "<", r.BelowOnly) + " " + s.arg(r.Most) + "::float8"
		}

		switch {
		case r.Least == r.Most:
			parts[i] = column + "::float8 = " + s.arg(r.Least) + "::float8"
			continue
		case math.IsInf(r.Least, -1):
			parts[i] = below()
			continue
		}

		parts[i] = column + "::float8 " + operator(">=", ">", r.AboveOnly) + " " + s.arg(r.Least) + "::float8"
		if !math.IsInf(r.Most, 1) {
			parts[i] += " AND " + below()
		}
	}

	return predicate{sql: "(" + strings.Join(parts, " OR ") + ")", exact: true}
}

func operator(closed, open string, isOpen bool) string {
	if isOpen {
		return open
	}
	return closed
}

// timeRange selects records by one of their times, both ends included.
func (s *statement) timeRange(t *query.Test, at string) predicate {
	var parts []string
	if !t.From.IsZero() {
		parts = append(parts, at+" >= "+s.arg(nanosOf(t.From)))
	}
	if !t.To.IsZero() {
		parts = append(parts, at+" <= "+s.arg(nanosOf(t.To)))
	}

	return predicate{sql: strings.Join(parts, " AND "), exact: true}
}

// startTimeRange selects records by their start time, both ends included. It is not exact:
// the filter itself decides about the ends.
func (s *statement) startTimeRange(t *query.Test) predicate {
	parts := []string{"start_at IS NOT NULL"}
	if !t.From.IsZero() {
		parts = append(parts, "start_at >= "+s.arg(nanosOf(t.From)))
	}
	if !t.To.IsZero() {
		parts = append(parts, "start_at <= "+s.arg(nanosOf(t.To)))
	}

	return predicate{sql: strings.Join(parts, " AND "), exact: false}
}
