package dashboard

import (
	"maps"
	"net/url"
	"time"

	"promptspool/api/wire"
)

const (
	// countingMax is how long a page waits for requests to be counted one by one, as a filter makes necessary.
	countingMax = 80 * time.Millisecond
	// patientMax is the same for readers who ask for everything.
	patientMax = 20 * time.Second
)

// counted is how much of what a page is about its numbers count.
type counted struct {
	wire.Progress
	Everything string // the address that waits for all of it; "" if this is it
}

// countAll is the member of an address that asks to count everything.
const countAll = "all"

// question is a page whose numbers may take a while to count. Its address without the wish to count everything names it, so
// that it is the same question from call to call, though "the last hour" moves.
type question struct {
	path    string
	query   url.Values
	patient bool
}

// bounded is a query that waits no longer than a reader of the page.
func (p question) bounded(q wire.StatisticsQuery) wire.StatisticsQuery {
	q.Budget = countingMax
	if p.patient {
		q.Budget = patientMax
	}
	q.Key = address(p.path, p.query)

	return q
}

// counted tells how much of the answer is counted.
func (p question) counted(progress wire.Progress) counted {
	c := counted{Progress: progress}
	if progress.Incomplete && !p.patient {
		everything := maps.Clone(p.query)
		everything.Set(countAll, "1")
		c.Everything = address(p.path, everything)
	}

	return c
}

// Mark is what stands behind a number that grows when everything is counted.
func (c counted) Mark() string {
	if c.Incomplete {
		return "+"
	}

	return ""
}

// Count prints a number of requests or tokens.
func (c counted) Count(n int64) string { return grouped(n) + c.Mark() }

// Dollars prints an amount.
func (c counted) Dollars(x float64) string { return dollars(x) + c.Mark() }
