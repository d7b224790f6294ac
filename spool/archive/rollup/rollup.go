// Package rollup sums up the records of sessions, traces and users, so that lists of these
// need not read the records.
//
// A database keeps a roll-up under each name, and changes it in the transaction that changes
// a record: it takes out what the record added before, and puts in what it adds now. So the
// sums are exact, whatever came when. The first and the last moment are bounds only: after a
// deletion or an edit they may be wider than what is left.
package rollup

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// Kind is what a roll-up is of. The numbers are stored.
type Kind int

// The kinds of roll-ups.
const (
	Session Kind = iota
	Trace
	User

	Kinds = iota
)

// Number is one of the sums of a roll-up. The order is that on disk.
type Number int

// The numbers of a roll-up.
const (
	Turns Number = iota // calls, as lists of requests show them
	Spans               // records with a span, calls among them
	Cost                // in billionths of a dollar
	InputTokens
	OutputTokens
	Errors // calls that failed, and other spans
	Scores // how many
	ScoreSum

	Numbers = iota
)

// Columns are the names of the numbers, as PostgreSQL has them.
var Columns = [Numbers]string{
	"turns", "spans", "cost", "input_tokens", "output_tokens", "errors", "scores", "score_sum",
}

// Sums is what records add up to.
type Sums struct {
	First, Last int64 // when the first began and the last ended, in microseconds since 1970
	Of          [Numbers]int64
}

// None returns the sums of no records. Its bounds are far from every moment, and so near each other
// that their difference is a number.
func None() Sums { return Sums{First: math.MaxInt64 / 4, Last: math.MinInt64 / 4} }

// Add adds other sums.
func (s *Sums) Add(other Sums) {
	s.First, s.Last = min(s.First, other.First), max(s.Last, other.Last)
	for i, n := range other.Of {
		s.Of[i] += n
	}
}

// Subtract takes other sums out. The bounds stay.
func (s *Sums) Subtract(other Sums) {
	for i, n := range other.Of {
		s.Of[i] -= n
	}
}

// Empty reports whether no records are left.
func (s *Sums) Empty() bool { return !s.Listed() && s.Of[Scores] == 0 }

// Listed reports whether lists show the roll-up. Scores alone make no session.
func (s *Sums) Listed() bool { return s.Of[Turns] != 0 || s.Of[Spans] != 0 }

// Encode returns the stored form of the sums.
func (s *Sums) Encode() (value []byte) {
	value = binary.AppendVarint(binary.AppendVarint(nil, s.First), s.Last-s.First)
	for _, n := range s.Of {
		value = binary.AppendVarint(value, n)
	}

	return value
}

// errSums is for a value that Encode did not return.
var errSums = errors.New("it is not the sums of a roll-up")

// Decode reads what Encode returned.
func Decode(value []byte) (s Sums, err error) {
	next := func() (n int64) {
		n, size := binary.Varint(value)
		if size <= 0 {
			err = errSums
		}
		value = value[max(size, 0):]
		return n
	}

	s.First = next()
	s.Last = s.First + next()
	for i := range s.Of {
		s.Of[i] = next()
	}
	if len(value) > 0 {
		err = errSums
	}

	return s, err
}

// nameBytesMax bounds a name: an index of PostgreSQL, and a transaction of Badger, take no more.
const nameBytesMax = 512

// Name returns a name under which a roll-up is kept; "" for one that is too long.
func Name(name string) string {
	if len(name) > nameBytesMax || strings.ContainsRune(name, 0) {
		return ""
	}
	return name
}

// Part is what one record adds to each of its roll-ups.
type Part struct {
	Names [Kinds]string // "" where it adds nothing
	Sums
}

// Proof adds up parts and takes out stored roll-ups. It is zero in the end if these are the sums of
// the parts, and is small, however many names there are.
type Proof [Numbers]uint64

// AddPart adds what a record adds.
func (p *Proof) AddPart(part *Part) {
	for kind, name := range part.Names {
		if name != "" {
			p.add(Kind(kind), name, &part.Sums, 1)
		}
	}
}

// Subtract takes out what is stored under a name, or a part of it.
func (p *Proof) Subtract(kind Kind, name string, s *Sums) { p.add(kind, name, s, -1) }

func (p *Proof) add(kind Kind, name string, s *Sums, sign int64) {
	h := fnv.New64a()
	h.Write([]byte{byte(kind)})
	h.Write([]byte(name))

	// By a weight for each name: too much under one must not make up for too little under another.
	for i, n := range s.Of {
		p[i] += (h.Sum64() | 1) * uint64(sign*n)
	}
}

// Fact is something by which lists of roll-ups are filtered and sorted.
type Fact struct {
	Name string
	SQL  string  // over its columns
	Unit float64 // how many of its units make up one in a filter

	of func(s *Sums) int64
}

// Facts are all facts.
var Facts = []Fact{
	{"turns", "turns", 1, func(s *Sums) int64 { return s.Of[Turns] }},
	{"spans", "spans", 1, func(s *Sums) int64 { return s.Of[Spans] }},
	{"cost", "cost", 1e9, func(s *Sums) int64 { return s.Of[Cost] }},
	{"input_tokens", "input_tokens", 1, func(s *Sums) int64 { return s.Of[InputTokens] }},
	{"output_tokens", "output_tokens", 1, func(s *Sums) int64 { return s.Of[OutputTokens] }},
	{"tokens", "input_tokens + output_tokens", 1,
		func(s *Sums) int64 { return s.Of[InputTokens] + s.Of[OutputTokens] }},
	{"errors", "errors", 1, func(s *Sums) int64 { return s.Of[Errors] }},
	{"mean_score", "coalesce(score_sum * 1000000 / nullif(scores, 0), -1)", meanUnit,
		func(s *Sums) int64 {
			if s.Of[Scores] == 0 {
				return -1
			}
			return s.Of[ScoreSum] * meanUnit / s.Of[Scores]
		}},
	{"first_seen", "first_at", 1e6, func(s *Sums) int64 { return s.First }},
	{"last_seen", "last_at", 1e6, func(s *Sums) int64 { return s.Last }},
	{"duration_ms", "last_at - first_at", 1e3, func(s *Sums) int64 { return s.Last - s.First }},
}

// meanUnit is the unit of a mean. Without a score it is -1.
const meanUnit = 1e6

// FactOf returns a fact by its name, nil if there is none.
func FactOf(name string) *Fact {
	i := slices.IndexFunc(Facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &Facts[i]
}

// Query is a search for roll-ups. It is safe for concurrent use.
type Query struct {
	Kind  Kind
	Names []string // only these, or any if it is nil
	Like  string   // a part of the name, as Lower returns it
	Where []Condition

	Sort      *Fact
	Ascending bool
	After     *Position // the page begins after it
	Limit     int
}

// Condition is a bound of a fact.
type Condition struct {
	*Fact
	From, To int64 // both included
}

// Position is a place in a list.
type Position struct {
	Value int64 // of the fact that the list is sorted by
	Name  string
}

// Entry is a roll-up with its name.
type Entry struct {
	Name string
	Sums
}

// Page is a part of a list.
type Page struct {
	Entries []Entry
	Total   int  // how many there are in all pages; perhaps 0 after the last one
	More    bool // others follow
}

// Lower returns a name in lower case, as databases compare it: letters beyond ASCII stay.
func Lower(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}

// PositionOf returns the place of an entry.
func (q *Query) PositionOf(e *Entry) Position { return Position{q.Sort.of(&e.Sums), e.Name} }

// Finder makes a page out of roll-ups that come in any order, each name once. It keeps few of them.
type Finder struct {
	query *Query
	total int
	found []found
	worst int64 // beyond it, a value is on no page
}

type found struct {
	Entry
	value int64
}

// NewFinder returns a finder of what a query asks for.
func NewFinder(q *Query) *Finder { return &Finder{query: q, worst: math.MaxInt64} }

// Add adds a roll-up. It keeps nothing of the name's memory.
func (f *Finder) Add(name []byte, s *Sums) {
	q := f.query
	if !s.Listed() {
		return
	}
	for _, c := range q.Where {
		if n := c.of(s); n < c.From || n > c.To {
			return
		}
	}
	if q.Like != "" && !strings.Contains(Lower(string(name)), q.Like) {
		return
	}

	f.total++
	value := q.Sort.of(s)
	if !q.Ascending {
		value = -value
	}
	if value > f.worst {
		return
	}
	e := found{Entry{string(name), *s}, value}
	if q.After != nil && e.compare(f.after()) <= 0 {
		return
	}

	// Sorted now and then: of most lists, few come to the page.
	f.found = append(f.found, e)
	if len(f.found) >= 4*(q.Limit+1) {
		f.cut()
	}
}

// Merge adds what another finder of the same query found. No name may be in both.
func (f *Finder) Merge(other *Finder) {
	f.found, f.total = append(f.found, other.found...), f.total+other.total
}

// after returns what the page follows.
func (f *Finder) after() found {
	a := found{Entry{Name: f.query.After.Name}, f.query.After.Value}
	if !f.query.Ascending {
		a.value = -a.value
	}
	return a
}

func (e found) compare(other found) int {
	return cmp.Or(cmp.Compare(e.value, other.value), strings.Compare(e.Name, other.Name))
}

// cut keeps the page, and one more if there is one.
func (f *Finder) cut() {
	slices.SortFunc(f.found, found.compare)
	if most := f.query.Limit + 1; len(f.found) >= most {
		f.found = f.found[:most]
		f.worst = f.found[most-1].value
	}
}

// Page returns the page of what was added.
func (f *Finder) Page() Page {
	f.cut()
	p := Page{Total: f.total, More: len(f.found) > f.query.Limit}
	for _, e := range f.found[:min(len(f.found), f.query.Limit)] {
		p.Entries = append(p.Entries, e.Entry)
	}

	return p
}

// perPageDefault is that of a search for records.
const perPageDefault = 10

// Compile checks a search, except for its filter on calls. Its errors are 422 and name the field at
// fault.
func Compile(s wire.RollupSearch) (q Query, err error) {
	q = Query{Kind: Kind(slices.Index(kinds, s.Of)), Limit: s.PerPage, Ascending: s.SortOrder == "asc"}
	if q.Limit == 0 {
		q.Limit = perPageDefault
	}
	by := s.SortBy
	if by == "" {
		by = "last_seen"
	}
	q.Sort = FactOf(by)
	if q.Sort == nil || q.Kind < 0 {
		return q, invalid("sort_by", "must be one of: %s", strings.Join(wire.RollupSortFields, ", "))
	}

	if s.Cursor != "" {
		after, ok := q.parseCursor(s.Cursor)
		if !ok {
			return q, invalid("cursor",
				"does not belong to this sort_by; send next_cursor of an earlier answer unchanged")
		}
		q.After = &after
	}
	if s.Having != nil {
		err = q.having(*s.Having, "having")
	}

	return q, err
}

// kinds are the kinds by their numbers.
var kinds = []string{Session: "sessions", Trace: "traces", User: "users"}

func invalid(field, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
}

// conditionsMax bounds the conditions of a search.
const conditionsMax = 20

// having adds conditions, all of which must hold.
func (q *Query) having(f wire.Filter, path string) error {
	if f.Logic != "" && !strings.EqualFold(f.Logic, "AND") {
		return invalid(path+".logic", "must be AND")
	}
	for i, part := range f.Filters {
		if err := q.having(part, fmt.Sprintf("%s.filters[%d]", path, i)); err != nil {
			return err
		}
	}

	switch {
	case f.Field == "":
		return nil
	case f.Field == "id":
		var part string
		if json.Unmarshal(f.Value, &part) != nil || f.Operator != "contains" && f.Operator != "is" {
			return invalid(path, "must have the operator contains or is, and a string as the value")
		}
		if f.Operator == "is" {
			q.Names = []string{part}
		}
		q.Like = Lower(part)
		return nil
	case f.Operator == "between":
		var ends [2]json.RawMessage
		if json.Unmarshal(f.Value, &ends) != nil {
			return invalid(path+".value", "must be a list of the two ends")
		}
		from, to := f, f
		from.Operator, from.Value, to.Operator, to.Value = "gte", ends[0], "lte", ends[1]
		return q.having(wire.Filter{Filters: []wire.Filter{from, to}}, path)
	case len(q.Where) == conditionsMax:
		return invalid(path, "has more than %d conditions", conditionsMax)
	}

	c := Condition{Fact: FactOf(f.Field), To: math.MaxInt64}
	if c.Fact == nil {
		return invalid(path+".field", "is not known; it may be one of: id, %s",
			strings.Join(wire.RollupSortFields, ", "))
	}
	n, ok := c.read(f.Value)
	if !ok {
		return invalid(path+".value",
			"must be a number or, of first_seen and last_seen, a time such as 2026-01-02T03:04:05Z")
	}
	switch f.Operator {
	case "gte":
		c.From = ceil(n)
	case "gt":
		c.From = floor(n) + 1
	case "lte":
		c.To = floor(n)
	case "lt":
		c.To = ceil(n) - 1
	case "is", "eq":
		c.From, c.To = ceil(n), floor(n)
	default:
		return invalid(path+".operator", "must be one of: gt, gte, lt, lte, eq, is, between")
	}
	q.Where = append(q.Where, c)

	return nil
}

// read reads a value of a filter, in the fact's unit.
func (f *Fact) read(value json.RawMessage) (n float64, ok bool) {
	if strings.HasSuffix(f.Name, "_seen") {
		var at time.Time
		err := json.Unmarshal(value, &at)
		return float64(at.UnixMicro()), err == nil
	}
	err := json.Unmarshal(value, &n)

	return n * f.Unit, err == nil && string(value) != "null"
}

// Bounds are far beyond every sum, and within an int64.
func floor(n float64) int64 { return int64(math.Floor(min(max(n, -1<<60), 1<<60))) }

func ceil(n float64) int64 { return int64(math.Ceil(min(max(n, -1<<60), 1<<60))) }

// Cursor returns the text for the place of an entry.
func (q *Query) Cursor(e *Entry) string {
	at := strconv.FormatInt(q.Sort.of(&e.Sums), 10)
	return base64.RawURLEncoding.EncodeToString([]byte(q.order() + " " + at + " " + e.Name))
}

// After returns the cursor of what follows an entry in a list by last_seen, the last first.
func After(r wire.Rollup) string {
	q := Query{Sort: FactOf("last_seen")}
	return q.Cursor(&Entry{Name: r.ID, Sums: Sums{Last: r.LastSeen.UnixMicro()}})
}

// order names the order in a cursor.
func (q *Query) order() string {
	if q.Ascending {
		return q.Sort.Name + "+"
	}
	return q.Sort.Name + "-"
}

// parseCursor reads what Cursor returned for the same order.
func (q *Query) parseCursor(s string) (p Position, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}
	parts := strings.SplitN(string(text), " ", 3)
	if len(parts) < 3 || parts[0] != q.order() {
		return p, false
	}
	p.Name = parts[2]
	p.Value, err = strconv.ParseInt(parts[1], 10, 64)

	return p, err == nil && Name(p.Name) != ""
}

// Answer returns an entry as it is answered.
func (e *Entry) Answer() wire.Rollup {
	r := wire.Rollup{
		ID:           e.Name,
		FirstSeen:    time.UnixMicro(e.First).UTC(),
		LastSeen:     time.UnixMicro(e.Last).UTC(),
		Turns:        e.Of[Turns],
		Spans:        e.Of[Spans],
		Cost:         float64(e.Of[Cost]) / 1e9,
		InputTokens:  e.Of[InputTokens],
		OutputTokens: e.Of[OutputTokens],
		Errors:       e.Of[Errors],
		Scores:       e.Of[Scores],
	}
	if r.Scores > 0 {
		mean := float64(e.Of[ScoreSum]) / float64(r.Scores)
		r.MeanScore = &mean
	}

	return r
}
