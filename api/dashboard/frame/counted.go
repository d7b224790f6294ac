package frame

import (
	"maps"
	"net/url"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
)

const (
	// countingMax is how long a page waits for requests that must be counted one by one
	// because of its filter.
	countingMax = 60 * time.Millisecond

	// patientMax is the same for readers who asked to count everything.
	patientMax = 20 * time.Second
)

// countAll is the parameter of an address that asks to count everything.
const countAll = "all"

// CountedPage is a page whose numbers may take a while to count. Its address without
// countAll identifies it: the counting continues from request to request, although "the last
// hour" moves.
type CountedPage struct {
	path    string
	query   url.Values
	asked   url.Values     // the query of its address, with what does not change the numbers
	zone    *time.Location // of days in its filter
	patient bool
}

// CountedPage returns the page at a path. query is what its numbers depend on.
func (c *Exchange) CountedPage(path string, query url.Values) CountedPage {
	return CountedPage{path, query, c.URL.Query(), c.zone().Location, c.URL.Query().Has(countAll)}
}

// Bounded bounds the time of a query to what a reader of the page waits for.
func (p CountedPage) Bounded(q wire.StatisticsQuery) wire.StatisticsQuery {
	q.Budget = countingMax
	if p.patient {
		q.Budget = patientMax
	}
	q.Key = address.Of(p.path, p.query) + "#" + p.zone.String() // today is another day elsewhere

	return q
}

// Counted is how much of a page's requests its numbers cover.
type Counted struct {
	wire.Progress
	Everything string // the address that waits for all of them, or ""
}

// Counted describes how much of an answer has been counted.
func (p CountedPage) Counted(progress wire.Progress) Counted {
	c := Counted{Progress: progress}
	if progress.Incomplete && !p.patient {
		everything := maps.Clone(p.asked)
		everything.Set(countAll, "1")
		c.Everything = address.Of(p.path, everything)
	}

	return c
}

// Mark returns what follows a number that will grow when everything is counted.
func (c Counted) Mark() string {
	if c.Incomplete {
		return "+"
	}

	return ""
}

// Count prints a number of requests or tokens.
func (c Counted) Count(n int64) string { return number.Grouped(n) + c.Mark() }

// Brief prints a number of requests or tokens with three digits.
func (c Counted) Brief(n int64) string { return number.Brief(n) + c.Mark() }

// Dollars prints an amount of money.
func (c Counted) Dollars(x float64) string { return number.Dollars(x) + c.Mark() }
