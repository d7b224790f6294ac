// Package table sorts the tables of pages by their numbers.
package table

import (
	"cmp"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
)

// Order is the column by which a page sorts its tables; the zero Order leaves them as they are. An address
// has it as by: the name of the column, with a minus in front for the lowest first.
type Order struct {
	By        string // as an address has it, or ""
	column    string
	ascending bool

	path  string
	query url.Values // what else the page's address keeps
}

// Columns are the values that a table of rows can be sorted by, under the names of their columns. A row
// without a value, NaN, comes last in both directions.
type Columns[Row any] map[string]func(*Row) float64

// Read reads the order in the query of the page at a path.
func Read(path string, query url.Values) Order {
	by := query.Get("by")
	column, ascending := strings.CutPrefix(by, "-")
	query = maps.Clone(query)
	// Another order begins on the first page.
	for _, name := range []string{"by", "page", "done"} {
		query.Del(name)
	}

	return Order{by, column, ascending, path, query}
}

// Rank returns what the order sorts by, the highest first, or nil if it is of none of the columns.
func Rank[Row any](o Order, columns Columns[Row]) func(*Row) float64 {
	value := columns[o.column]
	if value == nil || !o.ascending {
		return value
	}

	return func(r *Row) float64 { return -value(r) }
}

// Sort sorts the rows of a table. Rows with the same value stay in their order.
func Sort[Row any](o Order, rows []Row, columns Columns[Row]) {
	rank := Rank(o, columns)
	if rank == nil {
		return
	}

	// NaN compares as less than any number.
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(rank(&b), rank(&a)) })
}

// Heading is the heading of a column, which may sort its table.
type Heading struct {
	Text   string
	Number bool   // the column is of numbers
	Href   string // the table sorted by the column; "" if it cannot be
	Sorted string // ascending or descending if it is sorted by it, as aria-sort has it
}

// Heading returns the heading of a column, which may be of numbers. A click sorts by it, the highest first;
// another one turns the order round, and a third one ends it.
func (o Order) Heading(column, text string, number bool) Heading {
	h := Heading{Text: text, Number: number}
	next := maps.Clone(o.query)
	switch {
	case column != o.column:
		next.Set("by", column)
	case o.ascending:
		h.Sorted = "ascending"
	default:
		h.Sorted = "descending"
		next.Set("by", "-"+column)
	}
	h.Href = address.Of(o.path, next)

	return h
}

// OrNaN returns a value that may be missing, as a column has it.
func OrNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}

	return *v
}

// At returns a time that may be missing, as a column has it.
func At(t *time.Time) float64 {
	if t == nil {
		return math.NaN()
	}

	return float64(t.UnixMicro())
}
