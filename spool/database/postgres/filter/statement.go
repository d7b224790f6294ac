package filter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/schema"
)

// Predicate is a filter in SQL, as far as the columns can answer it. It selects every row
// that the filter does, and perhaps others.
type Predicate struct {
	SQL   string // "" selects every row
	Exact bool   // it selects no row that the filter does not
	Terms bool   // it selects only rows that the index on terms finds
}

// Statement builds one SQL statement and collects its arguments.
type Statement struct {
	Account string // its key in the tables
	At      string // the expression for the list time; "at" if empty
	Args    []any
}

// Arg adds an argument and returns its placeholder.
func (s *Statement) Arg(v any) string {
	s.Args = append(s.Args, v)
	return "$" + strconv.Itoa(len(s.Args))
}

// ListTime returns the expression for the list time.
func (s *Statement) ListTime() string { return cmp.Or(s.At, "at") }

// Where translates the filter of a query.
func (s *Statement) Where(q *query.Query) Predicate {
	// Without a filter every row is meant, so nothing is left to test.
	if q.Where == nil {
		return Predicate{Exact: true}
	}

	return s.condition(q.Where)
}

func (s *Statement) condition(c query.Condition) Predicate {
	before := len(s.Args)
	p := s.translate(c)

	// PostgreSQL rejects arguments that no placeholder uses: drop those of parts that were
	// translated and then not needed.
	if p.SQL == "" {
		s.Args = s.Args[:before]
	}

	return p
}

func (s *Statement) translate(c query.Condition) Predicate {
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
		case p.Exact && p.SQL != "":
			return Predicate{SQL: "(" + p.SQL + ") IS NOT TRUE", Exact: true}
		case p.Exact:
			return Predicate{SQL: "false", Exact: true}
		}
		return Predicate{}

	case *query.Test:
		return s.test(c)
	}

	return Predicate{}
}

func (s *Statement) allOf(parts []query.Condition) Predicate {
	p := Predicate{Exact: true}
	var sql []string

	parts, versions := s.versions(parts)
	if versions != "" {
		sql, p.Terms = append(sql, versions), true
	}

	// Parts that no column answers are left out: the filter itself tests them later.
	for _, part := range parts {
		one := s.condition(part)
		if one.SQL != "" {
			sql = append(sql, one.SQL)
		}
		p.Exact = p.Exact && one.Exact
		p.Terms = p.Terms || one.Terms
	}
	p.SQL = strings.Join(sql, " AND ")

	return p
}

func (s *Statement) anyOf(parts []query.Condition) Predicate {
	p := Predicate{Exact: true, Terms: len(parts) > 0}
	var sql []string
	everything := false

	// An index on terms helps only if each alternative has terms.
	for _, part := range parts {
		one := s.condition(part)
		everything = everything || one.SQL == ""
		sql = append(sql, "("+one.SQL+")")
		p.Exact = p.Exact && one.Exact
		p.Terms = p.Terms && one.Terms
	}

	// If one alternative may select any row, so does the whole.
	if !everything {
		p.SQL = "(" + strings.Join(sql, " OR ") + ")"
	}

	return p
}

func (s *Statement) test(t *query.Test) Predicate {
	d := rowcode.Define(t.Column)
	column, hasRange := d.SQL, d.SQL != "" && d.Number() != nil

	switch {
	case t.Column == rowcode.ColumnTime && !(t.From.IsZero() && t.To.IsZero()):
		return s.timeRange(t, s.ListTime())
	case t.Column == rowcode.ColumnAccepted && !(t.From.IsZero() && t.To.IsZero()):
		return s.timeRange(t, "accepted")
	case t.Column == rowcode.ColumnStart && !(t.From.IsZero() && t.To.IsZero()):
		p := s.timeRange(t, "start_at")
		// The filter itself decides about the ends.
		p.Exact = false
		return p
	case t.Column == rowcode.ColumnID && t.Texts != nil:
		return s.ids(t.Texts)
	case t.Texts != nil && hasTerms(t.Column):
		return s.terms(t)
	case hasRange && t.Ranges != nil:
		return s.ranges(column, t.Ranges)
	case hasRange && t.Number != nil:
		// The only tests of a number without ranges are is_null and is_empty.
		return Predicate{SQL: column + " IS NULL", Exact: true}
	case t.Column == rowcode.ColumnScores && t.Ranges != nil:
		return s.scores(t)
	}

	return Predicate{}
}

// terms selects records that have one of the texts.
func (s *Statement) terms(t *query.Test) Predicate {
	of := cmp.Or(scoreTexts[t.Field], kindOf(t.Column))
	if t.Column == rowcode.ColumnMetadata && t.Key == "" {
		of = metadataKeys
	}

	terms := make([]int64, len(t.Texts))
	for i, text := range t.Texts {
		terms[i] = term(s.Account, of, t.Key, text)
	}

	return Predicate{s.AnyTerm(terms), true, true}
}

// AnyTerm selects records that have one of the terms.
func (s *Statement) AnyTerm(terms []int64) string {
	if len(terms) == 1 {
		return "terms @> " + s.Arg(terms) + "::bigint[]"
	}
	return "terms && " + s.Arg(terms) + "::bigint[]"
}

// scores selects records with a score in one of the ranges, by the cells that these meet. It is
// exact if none of them meets a cell in part.
func (s *Statement) scores(t *query.Test) Predicate {
	// Not nil, which pgx sends as NULL.
	terms, exact := []int64{}, true
	for _, r := range t.Ranges {
		first, last, whole := cellsOf(r)
		exact = exact && whole
		for cell := first; cell <= last; cell++ {
			terms = append(terms, term(s.Account, scoreCells, t.Key, strconv.Itoa(cell)))
		}
	}

	return Predicate{s.AnyTerm(terms), exact, true}
}

// versionsMax bounds the pairs of template and version that are looked up by their own terms.
const versionsMax = 100

// versions takes the test of a template and that of its version out of conditions that must
// all hold, and returns SQL for the pair. sql is "" if there is no such pair.
//
// The pair has its own terms because either test alone finds far more records: all of a
// template, or version 1 of every template.
func (s *Statement) versions(parts []query.Condition) (others []query.Condition, sql string) {
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
			terms = append(terms, term(s.Account, templateVersions, name, number))
		}
	}

	return others, s.AnyTerm(terms)
}

// onlyPoints reports whether each range is a single number.
func onlyPoints(ranges []query.Range) bool {
	return ranges != nil && !slices.ContainsFunc(ranges, func(r query.Range) bool { return r.Least != r.Most })
}

// ids selects records by their ids. Texts that are not ids in canonical form match nothing.
func (s *Statement) ids(texts []string) Predicate {
	// Empty, not nil: then nothing matches.
	ids := []archive.UUID{}
	for _, text := range texts {
		// As a text, as the filter compares: another spelling of the same id is another text.
		if id, ok := archive.ParseUUID(text); ok && id.String() == text {
			ids = append(ids, id)
		}
	}

	return Predicate{SQL: "request_id = ANY(" + s.Arg(ids) + "::uuid[])", Exact: true}
}

// ranges selects records whose column is in one of the ranges. Both sides are compared as
// float8, as query.Range does, also where the column is an integer.
func (s *Statement) ranges(column string, ranges []query.Range) Predicate {
	// A test that no number passes.
	if len(ranges) == 0 {
		return Predicate{SQL: "false", Exact: true}
	}

	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = column + "::float8 " + operator(">=", ">", r.AboveOnly) + " " + s.Arg(r.Least) + "::float8 AND " +
			column + "::float8 " + operator("<=", "<", r.BelowOnly) + " " + s.Arg(r.Most) + "::float8"
	}

	return Predicate{SQL: "(" + strings.Join(parts, " OR ") + ")", Exact: true}
}

func operator(closed, open string, isOpen bool) string {
	if isOpen {
		return open
	}
	return closed
}

// timeRange selects records by one of their times, both ends included.
func (s *Statement) timeRange(t *query.Test, at string) Predicate {
	var parts []string
	if !t.From.IsZero() {
		parts = append(parts, at+" >= "+s.Arg(schema.Nanos(t.From)))
	}
	if !t.To.IsZero() {
		parts = append(parts, at+" <= "+s.Arg(schema.Nanos(t.To)))
	}

	return Predicate{SQL: strings.Join(parts, " AND "), Exact: true}
}

// sqlColumn is a column that rowcode defines, with what tells a row's value, nil for NULL.
type sqlColumn struct {
	name  string
	value func(row *wire.Row) any
}

// sqlColumns are the columns that rowcode defines, in the units in which filters compare:
// nanoseconds for times, milliseconds for latency.
var sqlColumns = func() (columns []sqlColumn) {
	for c := range rowcode.ColumnBody {
		d := rowcode.Define(c)
		if d.SQL == "" {
			continue
		}
		moment, number := d.Time(), d.Number()
		columns = append(columns, sqlColumn{d.SQL, func(row *wire.Row) any {
			if moment != nil {
				if at, ok := moment(row); ok {
					return schema.Nanos(at)
				}
			} else if x, ok := number(row); ok {
				return x
			}
			return nil
		}})
	}
	return columns
}()

// Columns are the columns of the table records: those of every header, and sqlColumns.
var Columns = func() []string {
	columns := []string{"account_id", "at", "request_id", "ts", "terms", "line", "accepted"}
	for _, c := range sqlColumns {
		columns = append(columns, c.name)
	}
	return columns
}()

// Header returns the values of Columns for a record, or nil if no list shows it. account is
// its key in the tables.
func Header(account string, id archive.UUID, state *archive.State) []any {
	row, ok := state.Row()
	if !ok {
		return nil
	}

	values := []any{
		account, schema.Nanos(row.ListTime), id, id.Time(), Terms(account, &row, state),
		rowcode.Encode(&row), schema.Nanos(row.AcceptedAt),
	}
	for _, c := range sqlColumns {
		values = append(values, c.value(&row))
	}

	return values
}
