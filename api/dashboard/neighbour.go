package dashboard

import (
	"encoding/json"
	"errors"
	"math"
	"slices"

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
// was opened from; "" is none. Records of one list time, and of one value in a list that is sorted
// by something else, are newest first, then by id, in both directions.
func (d *Dashboard) neighbours(c *call, f filter, r wire.Record) (previous, next string, err error) {
	at, _ := json.Marshal(r.ListTime)
	if f.Order.field() != byTime {
		return d.sortedNeighbours(c, f, r, at)
	}

	before, behind, err := d.beside(c, f, r.RequestID, at)
	if errors.Is(err, errCrowded) {
		return "", "", nil
	}
	if before == nil && err == nil {
		if f.Order.Ascending {
			before, err = d.first(c, f, wire.Search{}, wire.Filter{Field: byTime, Operator: "before", Value: at})
		} else {
			before, err = d.newer(c, f, r)
		}
		before, err = d.lastBeside(c, f, before, err)
	}
	if err != nil {
		return "", "", err
	}

	switch {
	case behind != nil:
	case f.Order.Ascending:
		behind, err = d.newer(c, f, r)
	default:
		behind, err = d.first(c, f, wire.Search{}, wire.Filter{Field: byTime, Operator: "before", Value: at})
	}

	return f.recordOf(before), f.recordOf(behind), err
}

// besideMax bounds the records of one moment among which neighbours are looked for.
const besideMax = 1000

// errCrowded means that a record's neighbours are behind the bound: no link is better than one that
// skips records.
var errCrowded = errors.New("too many records of one moment")

// besides returns the rows of a list that have the same list time and satisfy the conditions, in the
// order of the list.
func (d *Dashboard) besides(
	c *call, f filter, at json.RawMessage, within ...wire.Filter,
) ([]wire.Row, error) {
	within = append(within, wire.Filter{Field: byTime, Operator: "is", Value: at})

	return d.rows(c, f, wire.Search{PerPage: besideMax}, within...)
}

// beside returns the rows before and behind a record among those of its list time.
func (d *Dashboard) beside(
	c *call, f filter, id string, at json.RawMessage, within ...wire.Filter,
) (before, behind *wire.Row, err error) {
	rows, err := d.besides(c, f, at, within...)
	i := slices.IndexFunc(rows, func(row wire.Row) bool { return row.RequestID == id })
	if err == nil && len(rows) == besideMax && (i < 0 || i == len(rows)-1) {
		return nil, nil, errCrowded
	}
	if i > 0 {
		before = &rows[i-1]
	}
	if i >= 0 && i+1 < len(rows) {
		behind = &rows[i+1]
	}

	return before, behind, err
}

// lastBeside returns the last row of the list time of a row that a search has found. It returns nil
// with the search's error, and where that row is behind the bound.
func (d *Dashboard) lastBeside(
	c *call, f filter, row *wire.Row, err error, within ...wire.Filter,
) (*wire.Row, error) {
	if row == nil || err != nil {
		return nil, err
	}

	at, _ := json.Marshal(row.ListTime)
	rows, err := d.besides(c, f, at, within...)
	if len(rows) == 0 || err != nil {
		return row, err
	}
	if len(rows) == besideMax {
		return nil, nil
	}

	return &rows[len(rows)-1], nil
}

// sortedNeighbours returns the neighbours in a list that is not sorted by time.
func (d *Dashboard) sortedNeighbours(
	c *call, f filter, r wire.Record, at json.RawMessage,
) (previous, next string, err error) {
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
	before, behind, err := d.beside(c, f, r.RequestID, at, than("eq", value))
	if errors.Is(err, errCrowded) {
		return "", "", nil
	}
	if behind == nil && err == nil {
		behind, err = d.first(c, f, wire.Search{}, than("eq", value), older)
	}
	if behind == nil && err == nil {
		behind, err = d.first(c, f, s, than(below, value))
	}
	if before != nil || err != nil {
		return f.recordOf(before), f.recordOf(behind), err
	}

	before, err = d.first(c, f, oldest, than("eq", value), newer)
	if before == nil && err == nil {
		before, err = d.first(c, f, back, than(above, value))
	}
	// That is the newest of its value, and the list ends with the oldest.
	if before != nil && err == nil {
		group := f.Order.valueOf(before)
		if string(group) != string(value) {
			before, err = d.first(c, f, oldest, than("eq", group))
		}
		before, err = d.lastBeside(c, f, before, err, than("eq", group))
	}

	return f.recordOf(before), f.recordOf(behind), err
}

// first returns the first row that a search finds among those of a filter and the given conditions,
// or nil.
func (d *Dashboard) first(c *call, f filter, s wire.Search, within ...wire.Filter) (*wire.Row, error) {
	s.PerPage = 1
	rows, err := d.rows(c, f, s, within...)
	if len(rows) == 0 {
		return nil, err
	}

	return &rows[0], err
}

// rows returns the rows that a search finds among those of a filter and the given conditions. An
// invalid filter has none: the list explains what is wrong with it.
func (d *Dashboard) rows(c *call, f filter, s wire.Search, within ...wire.Filter) ([]wire.Row, error) {
	found, err := f.search(d.Now())
	if err != nil {
		return nil, nil
	}
	if found.FilterGroup != nil {
		within = append(within, *found.FilterGroup)
	}

	s.FilterGroup, s.Q = &wire.Filter{Logic: "AND", Filters: within}, found.Q
	page, err := d.Records.Search(c.Context(), c.identity(), s)
	// The record is shown all the same, without a link to the next one.
	if wire.IsCode(err, wire.CodeInvalid) {
		return nil, nil
	}

	return page.Items, err
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
