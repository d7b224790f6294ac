package dashboard

import (
	"promptspool/api/wire"
)

// neighbour is a link to the record in front of another one in a list, or behind it.
type neighbour struct{ Href, Text string }

// steps names the ways to the previous and to the next record of a list.
func (o order) steps() (previous, next string) {
	switch {
	case o.field() != byTime:
		return "Previous", "Next"
	case o.Ascending:
		return "Older", "Newer"
	}

	return "Newer", "Older"
}

// neighbours returns the addresses of the records in front of r and behind it in the list that it
// was opened from; "" is none.
func (d *Dashboard) neighbours(c *call, f filter, r wire.Record) (previous, next string, err error) {
	s, err := f.search(d.Now())
	if err == nil {
		s.SortBy, s.SortOrder = f.Order.search()
		previous, next, err = d.Records.Neighbours(c.Context(), c.identity(), s, r.RequestID, r.ListTime)
	}
	// The list explains what is wrong with its filter.
	if wire.IsCode(err, wire.CodeInvalid) {
		return "", "", nil
	}

	return f.recordAddress(previous), f.recordAddress(next), err
}

// recordAddress returns the address of a record in the list of the filter, "" for "".
func (f filter) recordAddress(id string) string {
	if id == "" {
		return ""
	}

	return f.Record(id)
}
