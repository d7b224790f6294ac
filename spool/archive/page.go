package archive

import (
	"cmp"

	"promptspool/api/wire"
)

// PageBytesMax bounds what the rows of a page weigh: a page ends with the row that brings it
// there, however few rows it has then.
const PageBytesMax = 8 << 20

// RowBytes is about how much a row weighs: its texts, and a little for all else.
func RowBytes(row *wire.Row) int {
	const fixed, each = 200, 8

	n := fixed + len(row.FunctionName) + len(row.Engine) + len(row.Sidecar)
	for _, m := range row.Metadata {
		n += each + len(m.Key) + len(m.Value)
	}
	for _, s := range row.Scores {
		n += each + len(s.Name)
	}
	for _, texts := range [][]string{row.Tags, row.GroupIDs, row.ToolNames} {
		for _, text := range texts {
			n += each + len(text)
		}
	}

	return n
}

// PageRows are the rows of a page while they are found. The zero value takes none; see Query.NewPage.
type PageRows struct {
	Rows []wire.Row

	query *Query
	bytes int
}

// NewPage returns a page without rows.
func (q *Query) NewPage() PageRows { return PageRows{query: q} }

// Full reports whether the page takes no more rows: it has as many as were asked for, or they weigh enough.
func (p *PageRows) Full() bool {
	return len(p.Rows) >= p.query.Limit || len(p.Rows) > 0 && p.bytes >= cmp.Or(p.query.BytesMax, PageBytesMax)
}

// Add appends a row, which the page keeps.
func (p *PageRows) Add(row wire.Row) {
	p.Rows = append(p.Rows, row)
	p.bytes += RowBytes(&row)
}
