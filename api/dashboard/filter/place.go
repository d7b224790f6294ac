package filter

import (
	"maps"
	"net/url"
	"strconv"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/number"
)

// Place is a row's place in a list: how many rows after a cursor. Without an id there is none.
type Place struct {
	ID     string
	Cursor string // "" is the beginning of the list
	Row    int
	Number
}

// ReadPlace reads the place of a row in an address.
func ReadPlace(id string, q url.Values) Place {
	row, err := strconv.Atoi(q.Get("row"))
	if err != nil || row < 0 {
		// It was not opened from a list.
		return Place{}
	}

	return Place{id, q.Get("cursor"), row, readNumber(q)}
}

// At returns the filter as the address of a row at a place has it.
func (f Filter) At(p Place) url.Values {
	q := f.Values()
	q.Set("row", strconv.Itoa(p.Row))
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	p.Set(q)

	return q
}

// Step returns the next place, or else the one before, among so many rows after the cursor. At an end of the list
// there is none.
func (p Place) Step(way string, rows int, id func(i int) string) Place {
	// A row may have left the list since, such as by a score: then others are where it was.
	i := 0
	for i < rows && id(i) != p.ID {
		i++
	}
	next := i + 1
	if i == rows {
		i = min(p.Row, rows)
		next = i
	}

	switch {
	case way == "next" && next < rows:
		return Place{id(next), p.Cursor, next, p.Plus(1)}
	case way != "next" && i > 0:
		return Place{id(i - 1), p.Cursor, i - 1, p.Plus(-1)}
	}

	return Place{}
}

// Number is the number of a row in the whole list, as it was when the list was opened.
type Number struct {
	At int // from 1; unknown if it is less
	Of int // how many rows there are; negative if there are at least so many
}

// ReadNumber reads the number of the first row of a page in its address.
func ReadNumber(q url.Values) Number {
	n := readNumber(q)
	if q.Get("cursor") == "" {
		n.At = 1
	}

	return n
}

// readNumber reads a number in an address, which may be anything.
func readNumber(q url.Values) (n Number) {
	n.At, _ = strconv.Atoi(q.Get("n"))
	n.Of, _ = strconv.Atoi(q.Get("of"))

	return n
}

// Plus returns the number of a row so many rows later.
func (n Number) Plus(rows int) Number {
	if n.At > 0 {
		n.At += rows
	}

	return n
}

// Set adds the number to an address.
func (n Number) Set(q url.Values) {
	if n.At > 0 {
		q.Set("n", strconv.Itoa(n.At))
		q.Set("of", strconv.Itoa(n.Of))
	}
}

// String returns the number in words, such as "3 of 9"; "" if it is unknown.
func (n Number) String() string {
	at := number.Grouped(int64(n.At))
	switch {
	case n.At <= 0:
		return ""
	case -n.Of >= n.At:
		return at + " of at least " + number.Grouped(-int64(n.Of))
	case n.Of < n.At:
		return at
	}

	return at + " of " + number.Grouped(int64(n.Of))
}

// Trail is the way from a page back to its list, and to the rows beside its own there.
type Trail struct {
	List, Back     string // what the list is called, and its address
	Previous, Next Step
	Place          Number
}

// Step is a link to the row before another one in a list, or after it. Without an address there is none.
type Step struct{ Href, Text string }

// OpenedFrom is the parameter of a trace's or a session's address that has the list it was opened from. Its
// value is a filter with the place of the row.
const OpenedFrom = "list"

// Walk returns the trail of a row at a place of the list at path. Its way back leads to the page of the list that
// has the row. Its neighbours are found when they are asked for, by the list: finding them takes a while in a large
// project. more is what their pages keep.
func (f Filter) Walk(list, path string, p Place, more url.Values) Trail {
	back := f.Values()
	if first := p.Plus(-p.Row); first.At > 1 {
		back.Set("cursor", p.Cursor)
		first.Set(back)
	}
	t := Trail{List: list, Back: address.Of(path, back), Place: p.Number}
	t.Previous.Text, t.Next.Text = f.Order.steps()

	q := f.At(p)
	q.Set("id", p.ID)
	maps.Copy(q, more)
	if p.ID != "" && p.Row > 0 {
		t.Previous.Href = address.With(address.Of(path, q), "step", "previous")
	}
	if p.ID != "" && (p.At < p.Of || p.Of <= 0) {
		t.Next.Href = address.With(address.Of(path, q), "step", "next")
	}

	return t
}

// steps names the ways to the previous and to the next row of a list.
func (o Order) steps() (previous, next string) {
	switch o.Direction(ByTime) {
	case "":
		return "Previous", "Next"
	case "ascending":
		return "Older", "Newer"
	}

	return "Newer", "Older"
}
