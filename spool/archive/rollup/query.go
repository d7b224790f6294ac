package rollup

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

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
