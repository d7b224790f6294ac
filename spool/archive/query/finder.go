package query

import (
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Finder makes the page of a query from the rows that match it. A store gives it all of
// them, newest first, or only those behind the cursor if nothing before it counts
// (Query.Streams, or no filter in the order of time). Not safe for concurrent use.
type Finder struct {
	query  *Query
	skip   int
	page   Page
	rows   PageRows
	behind bool    // the rows are behind the cursor
	sorted topRows // of an order other than time
}

// Fill returns a row with at least the wanted columns, valid until the next one.
type Fill func(want rowcode.Columns) (*wire.Row, error)

// NewFinder returns a Finder for a page of q, which must not change meanwhile.
func NewFinder(q *Query) *Finder { return &Finder{query: q, skip: q.Offset, rows: q.NewPage()} }

// Total sets how many rows there are, for a query without a filter.
func (f *Finder) Total(n int) { f.page.Total = n }

// Visit takes a row that matches and reports whether it wants more of them.
func (f *Finder) Visit(fill Fill) (more bool, err error) {
	q := f.query
	// Without a filter the store knows the total, and sets it.
	if q.Filtered() {
		if f.page.Total == TotalMax && !q.Streams() {
			f.page.TotalIsLowerBound = true
		} else {
			f.page.Total++
		}
	}

	// In an order other than time, any later row may come first.
	if q.Order.By != "" {
		return true, f.sort(fill)
	}

	// Once a row is behind the cursor, all that follow are: no need to look at their
	// places.
	if q.After != nil && !f.behind {
		row, err := fill(rowcode.PlaceColumns)
		if err != nil || q.Order.Compare(PositionOf(row), *q.After) <= 0 {
			return true, err
		}
		f.behind = true
	}

	switch {
	case f.skip > 0:
		f.skip--
	case !f.rows.Full():
		row, err := fill(rowcode.AllColumns)
		if err != nil {
			return false, err
		}
		// The store uses the row's memory again for the next one.
		f.rows.Add(rowcode.Clone(row))
	default:
		f.page.More = true
	}

	// A full page still wants more rows if they count towards the total.
	return !f.page.More || q.Filtered() && !q.Streams() && !f.page.TotalIsLowerBound, nil
}

// sort puts a row among the best so far.
func (f *Finder) sort(fill Fill) error {
	q := f.query
	by := rowcode.ColumnsOf(q.Order.Column())

	// Once the page is full, most rows are out by their value alone: the place takes longer.
	if last := f.sorted.last; last != nil {
		row, err := fill(by)
		if err != nil || q.Order.compareValues(q.Order.PositionOf(row).Value, last.Value) > 0 {
			return err
		}
	}
	row, err := fill(rowcode.PlaceColumns | by)
	if err != nil {
		return err
	}

	// The total counts rows before the cursor, too, but no page shows them again.
	p := q.Order.PositionOf(row)
	if q.After != nil && q.Order.Compare(p, *q.After) <= 0 || !f.sorted.wants(q, p) {
		return nil
	}
	f.sorted.add(q, p)

	return nil
}

// Finish returns the page. stopped is where looking into bodies ended, or nil. record
// reads the row of a record: for an order other than time, only positions are kept
// meanwhile.
func (f *Finder) Finish(stopped *Position, record func(requestID string) (wire.Row, error)) (Page, error) {
	q := f.query
	f.page.Stopped = stopped
	// The count of a page that streams ends with it; it began at the cursor.
	if q.Streams() {
		f.page.TotalIsLowerBound = q.After != nil || f.page.More || stopped != nil
	}
	if q.Order.By == "" {
		f.page.Rows = f.rows.Rows
		return f.page, nil
	}

	// Only now is it known which rows are shown.
	f.sorted.trim(q)
	places := f.sorted.places[min(q.Offset, len(f.sorted.places)):]
	for ; len(places) > 0 && !f.rows.Full(); places = places[1:] {
		row, err := record(places[0].RequestID)
		if err != nil {
			return Page{}, err
		}
		f.rows.Add(row)
	}
	f.page.Rows, f.page.More = f.rows.Rows, len(places) > 0

	return f.page, nil
}

// topRows holds the positions of the first rows of an order: as many as a page and those
// before it need.
type topRows struct {
	places []Position
	last   *Position // once there are enough
}

// wants reports whether a position may be among the first.
func (t *topRows) wants(q *Query, p Position) bool {
	return t.last == nil || q.Order.Compare(p, *t.last) < 0
}

// add keeps a position. It trims only once there are twice as many as needed, so most
// rows cost no sorting.
func (t *topRows) add(q *Query, p Position) {
	// The text is the store's memory, which it uses again.
	p.Value.Text = strings.Clone(p.Value.Text)
	if t.places = append(t.places, p); len(t.places) >= 2*(q.Offset+q.Limit+1) {
		t.trim(q)
	}
}

// trim sorts the positions and drops those beyond the needed number.
func (t *topRows) trim(q *Query) {
	slices.SortFunc(t.places, q.Order.Compare)
	if most := q.Offset + q.Limit + 1; len(t.places) >= most {
		t.places = t.places[:most]

		// A copy: the place itself moves with the next sorting.
		last := t.places[most-1]
		t.last = &last
	}
}
