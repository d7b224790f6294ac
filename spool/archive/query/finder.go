package query

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Finder makes the page of a query from the rows that match it. A store gives it all of
// them, newest first, or only those after the cursor if nothing before it counts
// (Query.Streams, or no filter in the order of time). Not safe for concurrent use.
type Finder struct {
	query  *Query
	skip   int
	page   Page
	rows   PageRows
	behind bool    // the rows are after the cursor
	sorted topRows // of an order other than time

	anyOrder bool // see AnyOrder

	judge  *Judge    // of the store's pass; nil if SQL has decided what matches
	counts time.Time // until when a page that streams counts
}

// Fill returns a row with at least the wanted columns, valid until the next one.
type Fill func(want rowcode.Columns) (*wire.Row, error)

// NewFinder returns a Finder for a page of q, which must not change meanwhile.
func NewFinder(q *Query) *Finder {
	return &Finder{query: q, skip: q.Offset, rows: q.NewPage(), counts: time.Now().Add(q.CountBudget)}
}

// Follow gives the finder what judges the rows that it visits. It takes their snippets from there, and
// sets another end once only the total is wanted.
func (f *Finder) Follow(j *Judge) { f.judge = j }

// Total sets how many rows there are, for a query without a filter.
func (f *Finder) Total(n int) { f.page.Total = n }

// AnyOrder announces that rows do not come newest first, for an order other than time.
func (f *Finder) AnyOrder() { f.anyOrder = true }

// More reports whether rows follow the page.
func (f *Finder) More() bool { return f.page.More }

// snippet returns that of the visited row.
func (f *Finder) snippet() (*wire.Snippet, error) {
	if f.query.Bare || f.judge == nil {
		return nil, nil
	}

	return f.query.Snippet(&f.judge.subject)
}

// Counts reports whether another match would change the total.
func (f *Finder) Counts() bool { return f.query.Filtered() && !f.page.TotalIsLowerBound }

// Pass counts n matches that are out of Bounds, without a look at them.
func (f *Finder) Pass(n int) {
	if !f.Counts() {
		return
	}
	f.page.Total += n
	if f.page.Total > TotalMax && !f.query.Streams() {
		f.page.Total, f.page.TotalIsLowerBound = TotalMax, true
	}
}

// Bounds returns what a row must be within to be on the page, in an order other than
// time. They narrow with each row that is visited.
func (f *Finder) Bounds() SortBounds {
	b := SortBounds{Order: f.query.Order, ties: f.anyOrder}
	if f.query.After != nil {
		b.first = &f.query.After.Value
	}
	if f.sorted.last != nil {
		b.last = &f.sorted.last.Value
	}

	return b
}

// Visit takes a row that matches and reports whether it wants more of them.
func (f *Finder) Visit(fill Fill) (more bool, err error) { return f.VisitFar(fill, nil) }

// VisitFar is Visit for a row whose place takes long to read. In an order other than time,
// only the rows of the page need theirs: far returns what Finish calls for it.
func (f *Finder) VisitFar(fill Fill, far func() Locate) (more bool, err error) {
	q := f.query
	// Without a filter the store knows the total, and sets it.
	f.Pass(1)

	// In an order other than time, any later row may come first.
	if q.Order.By != "" {
		return true, f.sort(fill, far)
	}

	// Once a row is past the cursor, all later ones are: no need to look at their places.
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
		kept := rowcode.Clone(row)
		kept.Snippet, err = f.snippet()
		if err != nil {
			return false, err
		}
		f.rows.Add(kept)
	default:
		f.page.More = true
		if q.Streams() {
			f.hurry()
		}
	}

	// A full page still wants more rows if they count towards the total.
	return !f.page.More || q.Filtered() && !f.page.TotalIsLowerBound, nil
}

// hurry ends the count of a page that streams and is full.
func (f *Finder) hurry() {
	if f.judge != nil {
		f.judge.deadline = f.counts
	}
	f.page.TotalIsLowerBound = f.query.After != nil || f.page.Total > TotalMax || !time.Now().Before(f.counts)
}

// sort puts a row among the best so far.
func (f *Finder) sort(fill Fill, far func() Locate) error {
	q := f.query
	by := rowcode.ColumnsOf(q.Order.Column())

	// Once the page is full, most rows are out by their value alone: the place takes longer.
	row, err := fill(by)
	bounds := f.Bounds()
	if err != nil || !bounds.Has(row) {
		return err
	}

	snippet, err := f.snippet()
	if err != nil {
		return err
	}

	// Rows come newest first, so equal values are in order already.
	value := q.Order.PositionOf(row).Value
	if far != nil && !f.anyOrder && !bounds.atCursor(value) {
		f.sorted.add(f, candidate{Position: Position{Value: value}, locate: far(), snippet: snippet})
		return nil
	}

	row, err = fill(rowcode.PlaceColumns | by)
	if err != nil {
		return err
	}
	// The total counts rows before the cursor, too, but no page shows them again.
	f.visitPlace(q.Order.PositionOf(row), snippet)

	return nil
}

// VisitPlace puts a match among the best so far, in an order other than time. It does not
// count it.
func (f *Finder) VisitPlace(p Position) { f.visitPlace(p, nil) }

func (f *Finder) visitPlace(p Position, snippet *wire.Snippet) {
	if q := f.query; q.After == nil || q.Order.Compare(p, *q.After) > 0 {
		f.sorted.add(f, candidate{Position: p, snippet: snippet})
	}
}

// Wants reports whether rows after a position may be on the page, in an order other than
// time.
func (f *Finder) Wants(p Position) bool {
	if t := &f.sorted; t.last == nil || len(t.places) > f.query.Offset+f.query.Limit+1 {
		t.trim(f)
	}
	return f.sorted.last == nil || f.query.Order.Compare(p, *f.sorted.last) < 0
}

// Finish returns the page. stopped is where looking into bodies ended, or nil. record
// reads the row of a record: for an order other than time, only positions are kept
// meanwhile.
func (f *Finder) Finish(stopped *Position, record func(requestID string) (wire.Row, error)) (Page, error) {
	q := f.query
	// The count of a page that streams began at the cursor.
	if stopped != nil || q.Streams() && q.After != nil {
		f.page.TotalIsLowerBound = true
	}
	// Otherwise only the count was ended.
	if !f.page.More {
		f.page.Stopped = stopped
	}
	if q.Order.By == "" {
		f.page.Rows = f.rows.Rows
		return f.page, nil
	}

	// Only now is it known which rows are shown. Of a bare page only the ends are read, of which
	// cursors are made.
	f.sorted.trim(f)
	places := f.sorted.places[min(q.Offset, len(f.sorted.places)):]
	for ; len(places) > 0 && !f.rows.Full(); places = places[1:] {
		c := &places[0]
		if c.locate != nil {
			var err error
			c.Position, err = c.locate()
			if err != nil {
				return Page{}, err
			}
		}

		row := wire.Row{RequestID: c.RequestID, ID: c.RequestID, ListTime: c.At}
		if last := len(places) == 1 || len(f.rows.Rows) == q.Limit-1; !q.Bare || last || len(f.rows.Rows) == 0 {
			var err error
			row, err = record(c.RequestID)
			if err != nil {
				return Page{}, err
			}
		}
		row.Snippet = c.snippet
		f.rows.Add(row)
	}
	f.page.Rows, f.page.More = f.rows.Rows, len(places) > 0

	return f.page, nil
}

// Locate returns the position of a row that was visited before.
type Locate func() (Position, error)

// candidate is a row that may be on the page.
type candidate struct {
	Position

	number  int    // in the order of visits
	locate  Locate // nil: the position is known, not just its value
	snippet *wire.Snippet
}

// topRows holds the first rows of an order: as many as a page and those before it need.
type topRows struct {
	places []candidate
	last   *Position // once there are enough
	seen   int       // rows that were added
}

// add keeps a row. It trims only once there are twice as many as needed, so most rows cost
// no sorting.
func (t *topRows) add(f *Finder, c candidate) {
	// The text is the store's memory, which it uses again.
	c.Value.Text = strings.Clone(c.Value.Text)
	t.seen++
	c.number = t.seen
	t.places = append(t.places, c)
	if len(t.places) >= 2*(f.query.Offset+f.query.Limit+1) {
		t.trim(f)
	}
}

// trim sorts the rows and drops those beyond the needed number.
func (t *topRows) trim(f *Finder) {
	slices.SortFunc(t.places, f.compare)
	if most := f.query.Offset + f.query.Limit + 1; len(t.places) >= most {
		t.places = t.places[:most]

		// A copy: the place itself moves with the next sorting.
		last := t.places[most-1].Position
		t.last = &last
	}
}

// compare is Order.Compare for rows whose places may not be known.
func (f *Finder) compare(a, b candidate) int {
	if f.anyOrder {
		return f.query.Order.Compare(a.Position, b.Position)
	}
	return cmp.Or(f.query.Order.compareValues(a.Value, b.Value), a.number-b.number)
}

// PageBytesMax bounds what the rows of a page weigh. A page ends with the row that
// reaches it, however few rows it has then.
const PageBytesMax = 8 << 20

// Page is what a Store finds.
type Page struct {
	Rows  []wire.Row
	More  bool // rows follow the last one
	Total int  // of all matches, wherever the page begins

	// TotalIsLowerBound means that more than Total may match. It needs a filter.
	TotalIsLowerBound bool

	// Stopped is where looking into bodies ended before the page was full because Query.Budget
	// was spent, otherwise nil. Total counts what was found up to it.
	Stopped *Position
}

// TotalMax is how far a search with a filter counts. Beyond it the total is a lower
// bound.
const TotalMax = 10_000

// PageRows collects the rows of a page. The zero value takes none; see Query.NewPage.
type PageRows struct {
	Rows []wire.Row

	query *Query
	bytes int
}

// NewPage returns a page without rows.
func (q *Query) NewPage() PageRows { return PageRows{query: q} }

// Full reports whether the page takes no more rows: they are as many as were asked for,
// or too heavy.
func (p *PageRows) Full() bool {
	heavy := p.bytes >= cmp.Or(p.query.BytesMax, PageBytesMax)
	return len(p.Rows) >= p.query.Limit || len(p.Rows) > 0 && heavy
}

// Add appends a row, which the page keeps.
func (p *PageRows) Add(row wire.Row) {
	p.Rows = append(p.Rows, row)
	p.bytes += rowcode.Weight(&row)
}
