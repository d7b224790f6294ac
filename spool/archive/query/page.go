package query

import (
	"cmp"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// PageBytesMax bounds what the rows of a page weigh. A page ends with the row that
// reaches it, however few rows it has then.
const PageBytesMax = 8 << 20

// Page is what a Store finds.
type Page struct {
	Rows  []wire.Row
	More  bool // rows follow the last one
	Total int  // of all matches, wherever the page begins

	// TotalIsLowerBound means that more than Total match. It needs a filter, and then
	// Total is TotalMax.
	TotalIsLowerBound bool

	// Stopped is where looking into bodies ended because Query.Budget was spent,
	// otherwise nil. Total counts what was found up to it.
	Stopped *Position
}

// TotalMax is how far a search with a filter counts. Beyond it the total is a lower
// bound.
const TotalMax = 10_000

// PageRows gathers the rows of a page. The zero value takes none; see Query.NewPage.
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
