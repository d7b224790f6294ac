package dashboard

import (
	"time"

	"promptspool/api/closest"
)

// closestMax bounds the time of the search for values that exist.
const closestMax = 300 * time.Millisecond

// closeLink leads to a view with a value that exists, instead of one that finds nothing.
type closeLink struct {
	Text, Href string
	Requests   string // how many it finds; "" if they were not counted
}

// suggestClosest suggests values that exist, for a filter that finds nothing.
func (d *Dashboard) suggestClosest(c *call, v *filterView) {
	for _, value := range closest.Find(c.Context(), d.Records, c.identity(), v.Filter.line, closestMax) {
		link := closeLink{
			Text: value.Term.String(),
			Href: address(v.Path, v.Filter.withLine(value.Line.String()).values()),
		}
		if value.Key == "" {
			link.Requests = grouped(int64(value.Found.Total))
		}
		if value.Found.TotalIsLowerBound {
			link.Requests += "+"
		}
		v.Closest = append(v.Closest, link)
	}
}
