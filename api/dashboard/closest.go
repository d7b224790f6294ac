package dashboard

import (
	"slices"
	"strings"
	"time"

	"promptspool/api/closest"
)

// closestMax bounds the look for values that exist.
const closestMax = 300 * time.Millisecond

// closeLink leads to a view with a value that exists, in place of one that finds nothing.
type closeLink struct {
	Text, Href string
	Requests   string
}

// suggestClosest looks for values that exist, for a filter that finds nothing.
func (d *Dashboard) suggestClosest(c *call, v *filterView) {
	for _, value := range closest.Find(c.Context(), d.Records, c.identity(), v.Filter.group(d.Now()), closestMax) {
		i := slices.IndexFunc(v.Filter.Conditions, func(own condition) bool {
			f := own.filter()
			return f.Field == value.Instead.Field && f.NestedKey == value.Instead.NestedKey && string(f.Value) == string(value.Instead.Value)
		})
		if i < 0 {
			continue
		}

		f := v.Filter
		f.Conditions = slices.Clone(f.Conditions)
		f.Conditions[i].Value = value.Text
		link := closeLink{Href: address(v.Path, f.values()), Requests: grouped(int64(value.Found.Total))}
		if value.Found.TotalIsLowerBound {
			link.Requests += "+"
		}
		link.Text = strings.TrimSpace(strings.ToLower(fieldText(f.Conditions[i].Field)) + " " + f.Conditions[i].Key)
		link.Text += " " + value.Text
		v.Closest = append(v.Closest, link)
	}
}

// fieldText is what people read for a field.
func fieldText(name string) string {
	for _, f := range filterFields {
		if f.Name == name {
			return f.Text
		}
	}

	return name
}
