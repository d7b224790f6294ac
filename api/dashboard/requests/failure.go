package requests

import (
	"time"

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// failuresAlike are the other calls that failed as one did.
type failuresAlike struct {
	Count string // such as "12 other calls"; "" if there are none
	Day   string // "today" or "that day"
	Href  string // the list of all of them
}

// failedAlike counts the other calls of a failed call's day, which is the reader's, that failed with the
// same type of error or, if this one has none, that have the same status. It returns nil if they cannot
// be counted now: the page is worth more than its count.
func (p *pages) failedAlike(c *frame.Exchange, r wire.Record) *failuresAlike {
	same := filterline.Where("error", "", r.ErrorType)
	if r.ErrorType == "" {
		same = filterline.Where("status", "", r.Status)
	}
	all := c.Filter(nil).With(same)
	v := &failuresAlike{Day: "that day"}
	day := r.ListTime.In(all.Zone()).Format(time.DateOnly)
	if day == c.Now().In(all.Zone()).Format(time.DateOnly) {
		v.Day, all = "today", all.During("since:today")
	} else {
		all = all.During("time:" + day)
	}

	others := all.With(filterline.Where("id", "", r.RequestID).Negated())
	page, err := others.List(c.Context(), p.records, c.Identity(), wire.Search{PerPage: 1})
	if err != nil {
		return nil
	}

	v.Href = all.Requests()
	if page.Total > 0 {
		v.Count = number.Quantity(int64(page.Total), "other call")
	}
	if page.TotalIsLowerBound {
		v.Count = "at least " + v.Count
	}

	return v
}
