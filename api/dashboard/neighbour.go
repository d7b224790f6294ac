package dashboard

import (
	"encoding/json"
	"math"

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
	if f.Order.field() != byTime {
		return d.sortedNeighbours(c, f, r)
	}

	newer, err := d.newer(c, f, r)
	if err != nil {
		return "", "", err
	}
	older, err := d.neighbour(c, f, wire.Search{}, bound{"before", r.ListTime})
	if f.Order.Ascending {
		return older, newer, err
	}

	return newer, older, err
}

// sortedNeighbours returns the neighbours in a list that is not sorted by time. Records of the
// same value are newest first there, in both directions.
func (d *Dashboard) sortedNeighbours(c *call, f filter, r wire.Record) (previous, next string, err error) {
	at, _ := json.Marshal(r.ListTime)
	id, _ := json.Marshal(r.RequestID)

	// What is sorted is the row's value, which may be rounded.
	row, err := d.first(c, filter{}, wire.Search{},
		wire.Filter{Field: byTime, Operator: "is", Value: at},
		wire.Filter{Field: "request_id", Operator: "is", Value: id},
	)
	if row == nil || err != nil {
		return "", "", err
	}
	value := f.Order.valueOf(row)
	if value == nil {
		return "", "", nil // those without a value come last
	}
	than := func(operator string, value json.RawMessage) wire.Filter {
		return wire.Filter{Field: f.Order.By, Operator: operator, Value: value}
	}
	older := wire.Filter{Field: byTime, Operator: "before", Value: at}
	newer := wire.Filter{Field: byTime, Operator: "after", Value: at}

	s := wire.Search{}
	s.SortBy, s.SortOrder = f.Order.search()
	back := wire.Search{SortBy: s.SortBy, SortOrder: "asc"}
	oldest := wire.Search{SortBy: byTime, SortOrder: "asc"}
	above, below := "gt", "lt"
	if f.Order.Ascending {
		back.SortOrder, above, below = "desc", "lt", "gt"
	}

	// One of the same value, or else one of the next value.
	behind, err := d.first(c, f, wire.Search{}, than("eq", value), older)
	if behind == nil && err == nil {
		behind, err = d.first(c, f, s, than(below, value))
	}
	if err != nil {
		return "", "", err
	}
	before, err := d.first(c, f, oldest, than("eq", value), newer)
	if before == nil && err == nil {
		before, err = d.first(c, f, back, than(above, value))
	}
	// That is the newest of its value, and the list ends with the oldest.
	if before != nil && err == nil {
		group := f.Order.valueOf(before)
		if string(group) != string(value) {
			before, err = d.first(c, f, oldest, than("eq", group))
		}
	}

	return f.recordOf(before), f.recordOf(behind), err
}

// first returns the first row that a search finds among those of a filter and the given conditions,
// or nil. An invalid filter has none: the list explains what is wrong with it.
func (d *Dashboard) first(c *call, f filter, s wire.Search, within ...wire.Filter) (*wire.Row, error) {
	found, err := f.search(d.Now())
	if err != nil {
		return nil, nil
	}
	if found.FilterGroup != nil {
		within = append(within, *found.FilterGroup)
	}

	s.FilterGroup = &wire.Filter{Logic: "AND", Filters: within}
	s.Q, s.PerPage = found.Q, 1
	page, err := d.Records.Search(c.Context(), c.identity(), s)
	switch {
	// The record is shown all the same, without a link to the next one.
	case wire.IsCode(err, wire.CodeInvalid):
		return nil, nil
	case err != nil || len(page.Items) == 0:
		return nil, err
	}

	return &page.Items[0], nil
}

// recordOf returns the address of a row's record in the list of the filter, "" for nil.
func (f filter) recordOf(row *wire.Row) string {
	if row == nil {
		return ""
	}

	return f.Record(row.RequestID)
}

// valueOf returns what a row is sorted by as JSON; nil if it is unknown, or no number.
func (o order) valueOf(row *wire.Row) json.RawMessage {
	var value any
	switch o.By {
	case "cost":
		value = row.Price
	case "latency_ms":
		if row.Latency != nil {
			value = math.Round(*row.Latency*1e9) / 1e6 // as the archive rounds it
		}
	case "input_tokens":
		value = row.InputTokens
	case "output_tokens":
		value = row.OutputTokens
	case "request_start_time":
		value = row.StartTime
	}

	raw, err := json.Marshal(value)
	if err != nil || string(raw) == "null" {
		return nil
	}

	return raw
}
