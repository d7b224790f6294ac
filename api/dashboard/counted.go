package dashboard

import (
	"maps"
	"net/url"
	"time"

	"promptspool/api/wire"
)

const (
	// countingMax is how long a page waits for requests that must be counted one by one
	// because of its filter.
	countingMax = 80 * time.Millisecond

	// patientMax is the same for readers who asked to count everything.
	patientMax = 20 * time.Second
)

// countAll is the parameter of an address that asks to count everything.
const countAll = "all"

// countedPage is a page whose numbers may take a while to count. Its address without
// countAll identifies it: the counting goes on from call to call, although "the last hour"
// moves.
type countedPage struct {
	path    string
	query   url.Values
	zone    *time.Location // of days in its filter; nil is UTC
	patient bool
}

// bounded bounds the time of a query to what a reader of the page waits for.
func (p countedPage) bounded(q wire.StatisticsQuery) wire.StatisticsQuery {
	q.Budget = countingMax
	if p.patient {
		q.Budget = patientMax
	}
	q.Key = address(p.path, p.query)
	if p.zone != nil {
		q.Key += "#" + p.zone.String() // today is another day elsewhere
	}

	return q
}

// counted is how much of a page's requests its numbers cover.
type counted struct {
	wire.Progress
	Everything string // the address that waits for all of them, or ""
}

// counted describes how much of an answer has been counted.
func (p countedPage) counted(progress wire.Progress) counted {
	c := counted{Progress: progress}
	if progress.Incomplete && !p.patient {
		everything := maps.Clone(p.query)
		everything.Set(countAll, "1")
		c.Everything = address(p.path, everything)
	}

	return c
}

// Mark returns what follows a number that will grow when everything is counted.
func (c counted) Mark() string {
	if c.Incomplete {
		return "+"
	}

	return ""
}

// Count prints a number of requests or tokens.
func (c counted) Count(n int64) string { return grouped(n) + c.Mark() }

// Dollars prints an amount of money.
func (c counted) Dollars(x float64) string { return dollars(x) + c.Mark() }
