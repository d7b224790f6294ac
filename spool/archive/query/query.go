package query

import (
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Query is a compiled search. Using it does not change it, so any number of goroutines
// may share it.
type Query struct {
	Offset   int // matches to skip before the page begins
	Limit    int // rows of the page, at least 1
	BytesMax int // what the rows of the page may weigh, except for the last; 0 means PageBytesMax

	After *Position // the page begins after it; nil means at the first row
	Order Order
	Where Condition // nil: every record

	// Budget is how long bodies may be looked into; 0 means unlimited. See Page.Stopped.
	Budget time.Duration

	// CountBudget is how long after its beginning a search that Streams, and whose page is full, still counts.
	CountBudget time.Duration

	// Bare leaves the excerpts out of a page's rows, which cost a state each, and in an order
	// other than time all of a row but its id and list time, except for the first and the last.
	// It counts no matches of a list in the order of time.
	Bare bool

	page int
}

// searchBudget is how long one search looks into prompts and responses. A later answer is
// of no use, and the cursor continues where it ended.
const searchBudget = 5 * time.Second

// quickBudget is that of a Search that is Quick.
const quickBudget = 500 * time.Millisecond

// countBudget is until when a search through prompts and responses counts: less than anybody notices.
const countBudget = 30 * time.Millisecond

// perPageDefault is the peer's.
const perPageDefault = 10

// Compile checks a search. Its errors are 422 and name the field at fault with what is
// allowed there.
func Compile(s wire.Search) (Query, error) {
	q := Query{Limit: s.PerPage, Bare: s.Quick, page: max(s.Page, 1)}
	if q.Limit == 0 {
		q.Limit = perPageDefault
	}
	if q.Limit < 0 || q.Limit > wire.PageItemsMax {
		return Query{}, invalid("per_page", "must be an integer from 1 to %d", wire.PageItemsMax)
	}

	// The bound on page comes first, so that the product cannot overflow.
	if q.page > wire.PageOffsetMax || (q.page-1)*q.Limit > wire.PageOffsetMax {
		return Query{}, invalid("page",
			"reaches beyond the first %d records; continue with cursor, from next_cursor", wire.PageOffsetMax)
	}
	q.Offset = (q.page - 1) * q.Limit

	var err error
	q.Order, err = compileOrder(s.SortBy, s.SortOrder)
	if err != nil {
		return Query{}, err
	}
	if s.Cursor != "" {
		// It is unclear which page they mean: that of the list or that after the cursor.
		if q.Offset > 0 {
			return Query{}, invalid("page", "cannot be combined with cursor; send one of them")
		}
		after, ok := parseCursor(s.Cursor, q.Order)
		if !ok {
			return Query{}, invalid("cursor",
				"does not belong to this sort_by; send next_cursor of an earlier answer unchanged")
		}
		q.After = &after
	}

	// Rows are found quickly, bodies and records must be read one by one.
	err = q.filter(s.FilterGroup)
	if q.NeedsBody() || q.NeedsWhole() {
		q.Budget, q.CountBudget = searchBudget, countBudget
		if s.Quick {
			q.Budget, q.CountBudget = quickBudget, 0
		}
	}

	return q, err
}

// CompileMatch returns a query for everything that matches.
func CompileMatch(f *wire.Filter) (q Query, err error) {
	q.Limit = 1
	return q, q.filter(f)
}

// filter compiles what matches.
func (q *Query) filter(f *wire.Filter) (err error) {
	if f != nil {
		q.Where, err = compileFilter(*f)
	}

	return err
}

// Filtered reports whether there is a filter: without one every row matches.
func (q *Query) Filtered() bool { return q.Where != nil }

// NeedsWhole reports whether long metadata values may have to be looked into.
func (q *Query) NeedsWhole() bool { return q.Where != nil && needsWhole(q.Where) }

// NeedsBody reports whether the bodies of requests must be looked into.
func (q *Query) NeedsBody() bool { return q.Columns().Has(rowcode.ColumnBody) }

// Streams reports whether a page is answered soon after it is full. Counting what
// follows, or what precedes a cursor, would take too long where bodies are looked into,
// and is for nothing where only the rows are wanted.
func (q *Query) Streams() bool { return (q.NeedsBody() || q.Bare) && q.Order.By == "" }

// Decides reports whether rows alone tell what matches.
func (q *Query) Decides() bool { return !q.NeedsBody() && !q.NeedsWhole() }

// Columns returns the columns that Where looks at.
func (q *Query) Columns() rowcode.Columns { return columnsOf(q.Where) }

// Span returns the first and the last list time that can match; zero means unbounded.
func (q *Query) Span() (from, to time.Time) { return spanOf(q.Where, rowcode.ColumnTime) }

// Spanned reports whether the search finds all records of an interval of time, that of
// Span.
func (q *Query) Spanned() bool { return q.Where == nil || spanned(q.Where) }

// AcceptedSpan bounds the order times of what can match; zero means unbounded.
func (q *Query) AcceptedSpan() (from, to time.Time) { return spanOf(q.Where, rowcode.ColumnAccepted) }

// StartSpan bounds the callers' start times of what can match; zero means unbounded.
func (q *Query) StartSpan() (from, to time.Time) { return spanOf(q.Where, rowcode.ColumnStart) }

// Match reports whether the search finds a record. It defines the meaning of a search:
// stores that find rows by other means must find the same.
func (q *Query) Match(s *Subject) bool { return q.Where == nil || q.Where.Match(s) }

// Answer returns a page in the peer's form. There are no page numbers after a cursor,
// nor after a page that weighs too much: the next number would skip rows.
func (q *Query) Answer(page Page) wire.SearchPage {
	// Stored references must not leave the archive.
	for i := range page.Rows {
		metadata := page.Rows[i].Metadata
		for j := range metadata {
			metadata[j].Truncated = rowcode.IsReference(metadata[j].Value)
			metadata[j].Value = rowcode.ShownValue(metadata[j].Value)
		}
		page.Rows[i].NameFrom(metadata)
	}

	a := wire.SearchPage{
		Success:           true,
		Items:             page.Rows,
		TotalIsLowerBound: page.TotalIsLowerBound,
		Complete:          page.Stopped == nil,
		BudgetMS:          int(q.Budget / time.Millisecond),
	}
	if a.Items == nil {
		// An empty list in JSON, not null.
		a.Items = []wire.Row{}
	}
	a.Paging = wire.NewPaging(q.page, q.Limit, page.Total)
	a.HasNext, a.NextNum = page.More, nil

	// Just in front of the first row: of what comes later, most is newer.
	switch {
	case q.After != nil:
		a.Start = formatCursor(*q.After, q.Order)
	case q.Offset == 0 && len(page.Rows) > 0:
		start := q.Order.PositionOf(&page.Rows[0])
		start.At = start.At.Add(1)
		a.Start = formatCursor(start, q.Order)
	}

	if page.More {
		last := q.Order.PositionOf(&page.Rows[len(page.Rows)-1])
		a.NextCursor = rowcode.Optional(formatCursor(last, q.Order))
		// It did not end early for its weight.
		whole := len(page.Rows) == q.Limit
		if next := q.page + 1; whole && q.After == nil && q.Offset+q.Limit <= wire.PageOffsetMax {
			a.NextNum = &next
		}
	} else if page.Stopped != nil && q.Order.By == "" {
		// Nothing more was found in time, but there may be more after the place reached.
		a.HasNext = true
		a.NextCursor = rowcode.Optional(formatCursor(*page.Stopped, q.Order))
	}

	return a
}
