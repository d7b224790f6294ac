package archive

import (
	"encoding/base64"
	"strings"
	"time"

	"promptspool/api/wire"
)

// Query is a search made ready. It is not changed by use: any number of goroutines may share it.
type Query struct {
	Offset int       // matches to leave out before the page begins
	Limit  int       // rows of the page, at least 1
	After  *Position // the page begins behind it; nil: at the newest

	where condition // nil: every record
	page  int
}

// Position is a record's place in the order of lists: newest first by order time, then by request id, both descending.
type Position struct {
	At        time.Time
	RequestID string
}

// PositionOf is where a row stands.
func PositionOf(row *wire.Row) Position { return Position{row.AcceptedAt, row.RequestID} }

// Compare is negative when p comes before other in a list, because it is newer.
func (p Position) Compare(other Position) int {
	if c := other.At.Compare(p.At); c != 0 {
		return c
	}
	return strings.Compare(other.RequestID, p.RequestID)
}

// perPageDefault is the peer's.
const perPageDefault = 10

// Compile checks a search. Its errors are 422 and name the field at fault with what is allowed there.
func Compile(s wire.Search) (Query, error) {
	q := Query{Limit: s.PerPage, page: max(s.Page, 1)}
	if q.Limit == 0 {
		q.Limit = perPageDefault
	}
	if q.Limit < 0 || q.Limit > wire.PageItemsMax {
		return Query{}, invalid("per_page", "must be an integer from 1 to %d", wire.PageItemsMax)
	}
	// The bound on page comes first, so that the product cannot overflow.
	if q.page > wire.PageOffsetMax || (q.page-1)*q.Limit > wire.PageOffsetMax {
		return Query{}, invalid("page", "reaches beyond the first %d records; go on with cursor, from next_cursor", wire.PageOffsetMax)
	}
	q.Offset = (q.page - 1) * q.Limit
	if s.Cursor != "" {
		if q.Offset > 0 {
			return Query{}, invalid("page", "cannot be combined with cursor; send one of them")
		}
		after, ok := parseCursor(s.Cursor)
		if !ok {
			return Query{}, invalid("cursor", "is not one; send next_cursor of an earlier answer as it was")
		}
		q.After = &after
	}
	var err error
	if s.FilterGroup != nil {
		q.where, err = compileFilter(*s.FilterGroup)
	}
	return q, err
}

// Filtered says whether there is a filter: without one every row matches.
func (q *Query) Filtered() bool { return q.where != nil }

// Match says whether the filter finds a row. It is the meaning of a search: stores that find rows by other means must
// find the same.
func (q *Query) Match(row *wire.Row) bool { return q.where == nil || q.where.match(row) }

// answer puts a page in the peer's form. Behind a cursor there are no page numbers.
func (q *Query) answer(page Page) wire.SearchPage {
	a := wire.SearchPage{Success: true, Items: page.Rows, TotalIsLowerBound: page.TotalIsLowerBound}
	if a.Items == nil {
		a.Items = []wire.Row{}
	}
	a.Paging = wire.NewPaging(q.page, q.Limit, page.Total)
	a.HasNext, a.NextNum = page.More, nil
	if page.More {
		cursor := formatCursor(PositionOf(&page.Rows[len(page.Rows)-1]))
		a.NextCursor = &cursor
		if next := q.page + 1; q.After == nil && q.Offset+q.Limit <= wire.PageOffsetMax {
			a.NextNum = &next
		}
	}
	return a
}

// A cursor is the position of the last row of a page, as text that callers have no reason to take apart.
func formatCursor(p Position) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.At.UTC().Format(time.RFC3339Nano) + " " + p.RequestID))
}

func parseCursor(s string) (Position, bool) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return Position{}, false
	}
	at, id, _ := strings.Cut(string(text), " ")
	t, timeErr := time.Parse(time.RFC3339Nano, at)
	id, idErr := wire.ParseID(id)
	return Position{t.UTC(), id}, timeErr == nil && idErr == nil
}
