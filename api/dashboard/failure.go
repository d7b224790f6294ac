package dashboard

import (
	"cmp"
	"time"

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
func (d *Dashboard) failedAlike(c *call, r wire.Record) *failuresAlike {
	same := filterline.Where("error", "", r.ErrorType)
	if r.ErrorType == "" {
		same = filterline.Where("status", "", r.Status)
	}
	all := c.filter(nil).with(same)
	v := &failuresAlike{Day: "that day"}
	zone := cmp.Or(all.zone, time.UTC)
	day := r.ListTime.In(zone).Format(time.DateOnly)
	if day == d.Now().In(zone).Format(time.DateOnly) {
		v.Day, all = "today", all.during("since:today")
	} else {
		all = all.during("time:" + day)
	}

	others := all.with(filterline.Where("id", "", r.RequestID).Negated())
	page, err := d.list(c.Context(), c, others, wire.Search{PerPage: 1})
	if err != nil {
		return nil
	}

	v.Href = all.requests()
	if page.Total > 0 {
		v.Count = quantity(int64(page.Total), "other call")
	}
	if page.TotalIsLowerBound {
		v.Count = "more than " + v.Count
	}

	return v
}
