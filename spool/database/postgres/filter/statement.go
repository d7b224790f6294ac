package filter

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Account string
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

// Header returns the values of Columns for a record, or nil if no list shows it.
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

// A term stands for one text of a record in one column. It is a hash of the account, the kind of
// the text, the metadata key if the text is a metadata value, and the text. One index over all
// terms of a record answers "is" and "in" on every text field within one account.
//
// 64-bit hashes collide by chance once in millions of years of writing. A caller that
// provokes a collision only deceives its own account.

// term returns a term.
func term(account string, of kind, key, text string) int64 {
	h := fnv.New64a()
	var head [24]byte
	// FNV, not something random: terms are stored, and every server must find the same.
	head[0] = byte(of)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(account)))
	binary.LittleEndian.PutUint64(head[16:], uint64(len(key)))

	// The lengths come first, so that no two sets of texts are hashed as the same bytes.
	_, _ = h.Write(head[:])
	_, _ = h.Write([]byte(account))
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte(text))
	return int64(h.Sum64())
}

// kind is what the texts of a term are. Terms are stored, so the numbers never change.
type kind byte

// Kinds that are of several columns together, or of none. They follow the columns of 0.1.0.
const (
	metadataKeys     kind = 33 + iota // a metadata key
	scoreCells                        // the cell of a score, with its name as the key or without
	scoreValues                       // the text of one, as with cells
	scoreAuthors                      // the author of one, as with cells
	templateVersions                  // a version, with the template's name as the key
	days                              // the UTC day of the order time, since 1970
	hiddenMetadata                    // a metadata value that the row does not show
	hiddenKeys                        // the key of one, if there are more than hiddenMax
)

// kindOf returns the kind of the texts of a column: its number, which leaves out the kinds above.
func kindOf(c rowcode.Column) kind {
	if kind(c) < metadataKeys {
		return kind(c)
	}
	return kind(c) + hiddenKeys + 1 - metadataKeys
}

// scoreTexts are the kinds that the filter fields of scores' texts ask for, besides that of names.
var scoreTexts = map[string]kind{"score_value": scoreValues, "score_author": scoreAuthors}

// textColumns are the columns of texts that filters ask for, with what tells a row's texts.
var textColumns = func() map[rowcode.Column]func(row *wire.Row) []string {
	columns := make(map[rowcode.Column]func(row *wire.Row) []string)
	for c := range rowcode.ColumnBody {
		if d := rowcode.Define(c); d.Fields != nil && d.Texts() != nil {
			columns[c] = d.Texts()
		}
	}
	return columns
}()

// hasTerms reports whether the texts of a column have terms.
func hasTerms(c rowcode.Column) bool {
	return textColumns[c] != nil || c == rowcode.ColumnMetadata || c == rowcode.ColumnScores
}

// daysMax bounds the days that are looked up by their terms. Each costs as much as any other
// term with as many records.
const daysMax = 3

// DayTerms returns the terms of the days between two order times, both included, or nil if
// there are too many.
func DayTerms(account string, oldest, newest int64) (terms []int64) {
	// Without bounds the two are centuries apart.
	first, last := dayOf(oldest), dayOf(newest)
	if last-first >= daysMax {
		return nil
	}
	for day := first; day <= last; day++ {
		terms = append(terms, term(account, days, "", strconv.FormatInt(day, 10)))
	}
	return terms
}

func dayOf(at int64) int64 { return at / int64(24*time.Hour) }

// hiddenMax bounds the values that a header has terms of, although its row does not show them.
// Each change of the record writes all of them again.
const hiddenMax = 1000

// Terms returns the terms of a record, in order and each once. They are those of its row, and
// those of metadata values that the row does not show.
func Terms(account string, row *wire.Row, state *archive.State) []int64 {
	day := schema.Nanos(row.ListTime)
	terms := append(make([]int64, 0, 20), DayTerms(account, day, day)...)

	add := func(of kind, key, text string) { terms = append(terms, term(account, of, key, text)) }
	for c, texts := range textColumns {
		normal := rowcode.Define(c).Normal
		// In the form in which a filter asks for it; see statement.terms.
		for _, text := range texts(row) {
			if normal != nil {
				text = normal(text)
			}
			add(kindOf(c), "", text)
		}
	}

	// The pair by itself, because each alone finds far too many; see statement.versions.
	if row.PromptName != nil && row.PromptVersion != nil {
		add(templateVersions, *row.PromptName, strconv.FormatInt(*row.PromptVersion, 10))
	}
	for _, m := range row.Metadata {
		add(kindOf(rowcode.ColumnMetadata), m.Key, m.Value)
		add(metadataKeys, "", m.Key)
	}
	for _, s := range row.Scores {
		add(kindOf(rowcode.ColumnScores), "", s.Name)
		for _, name := range []string{s.Name, ""} {
			if s.Kind != wire.ScoreCategory {
				add(scoreCells, name, strconv.Itoa(cellOf(s.Number)))
			}
			if !s.IsNumber() {
				add(scoreValues, name, s.ScoreValue.String())
			}
			if s.Author != "" {
				add(scoreAuthors, name, s.Author)
			}
		}
	}
	// Of very many it adds the keys alone, and a deletion looks at the record itself.
	hidden := state.Hidden()
	for _, m := range hidden {
		if len(hidden) > hiddenMax {
			add(hiddenKeys, m.Key, "")
			continue
		}
		add(hiddenMetadata, m.Key, m.Value)
	}

	slices.Sort(terms)
	return slices.Compact(terms)
}

// MetadataTerms returns the terms of a metadata value. A record that may have the value has one
// of them, whether its row shows it or not.
func MetadataTerms(account, key, value string) []int64 {
	return []int64{
		term(account, hiddenKeys, key, ""),
		term(account, kindOf(rowcode.ColumnMetadata), key, value),
		term(account, hiddenMetadata, key, value),
	}
}

// Numbers of scores have terms of cells, so that a range is a list of terms. Every one of
// cellPoints is a cell, and so is each gap between two of them, all below and all above.
// They are numbered from the lowest: points have odd numbers, gaps even ones.

// cellPoints are where people set bounds: the hundredths up to 1, and the integers up to 100.
var cellPoints = func() (points []float64) {
	for i := range 100 {
		points = append(points, float64(i)/100)
	}
	for i := range 100 {
		points = append(points, float64(i+1))
	}
	return points
}()

// cellOf returns the cell of a number.
func cellOf(x float64) int {
	i, found := slices.BinarySearch(cellPoints, x)
	if found {
		return 2*i + 1
	}
	return 2 * i
}

// cellsOf returns the first and the last cell that a range meets. whole is false if it meets one
// of them in part.
func cellsOf(r query.Range) (first, last int, whole bool) {
	const point = 1
	first, last = cellOf(r.Least), cellOf(r.Most)

	whole = (first&point != 0 || first == 0 && math.IsInf(r.Least, -1)) &&
		(last&point != 0 || last == 2*len(cellPoints) && math.IsInf(r.Most, 1))
	if first&point != 0 && r.AboveOnly {
		first++
	}
	if last&point != 0 && r.BelowOnly {
		last--
	}

	return first, last, whole
}
