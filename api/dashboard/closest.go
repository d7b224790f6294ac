package dashboard

import (
	"slices"
	"strings"
	"time"

	"promptspool/api/closest"
)

// closestMax bounds the time of the search for values that exist.
const closestMax = 300 * time.Millisecond

// closeLink leads to a view with a value that exists, instead of one that finds nothing.
type closeLink struct {
	Text, Href string
	Requests   string
}

// suggestClosest suggests values that exist, for a filter that finds nothing.
func (d *Dashboard) suggestClosest(c *call, v *filterView) {
	group := v.Filter.group(d.Now())
	for _, value := range closest.Find(c.Context(), d.Records, c.identity(), group, closestMax) {
		// Which of the filter's conditions would the value replace?
		i := slices.IndexFunc(v.Filter.Conditions, func(candidate condition) bool {
			f := candidate.filter()
			return f.Field == value.Instead.Field && f.NestedKey == value.Instead.NestedKey &&
				string(f.Value) == string(value.Instead.Value)
		})
		if i < 0 {
			continue
		}

		// The page shows the filter as it is, so the suggestion changes a copy.
		f := v.Filter
		f.Conditions = slices.Clone(f.Conditions)
		f.Conditions[i].Value = value.Text

		name := strings.ToLower(fieldText(f.Conditions[i].Field)) + " " + f.Conditions[i].Key
		link := closeLink{
			Text:     strings.TrimSpace(name) + " " + value.Text,
			Href:     address(v.Path, f.values()),
			Requests: grouped(int64(value.Found.Total)),
		}
		if value.Found.TotalIsLowerBound {
			link.Requests += "+"
		}
		v.Closest = append(v.Closest, link)
	}
}
