package filter

import (
	"cmp"
	"net/url"
	"slices"

	"promptspool/api/wire"
)

// Order is how a list of requests is sorted. An address has it as sort and order; the zero Order is
// newest first.
type Order struct {
	By        string // one of wire.SortFields, or "" for newest first
	Ascending bool
}

// ByTime is the field of the time by which a list is sorted anyway.
const ByTime = "list_time"

// readOrder reads the order in an address. Whatever is none sorts newest first.
func readOrder(q url.Values) Order {
	o := Order{By: q.Get("sort"), Ascending: q.Get("order") == "asc"}
	if !slices.Contains(wire.SortFields, o.By) || o.By == ByTime && !o.Ascending {
		return Order{}
	}

	return o
}

// set puts the order into an address.
func (o Order) set(q url.Values) {
	if o.By == "" {
		return
	}
	q.Set("sort", o.By)
	if o.Ascending {
		q.Set("order", "asc")
	}
}

// field returns what the list is sorted by.
func (o Order) field() string { return cmp.Or(o.By, ByTime) }

// Direction returns the direction in which a list is sorted by a field, as aria-sort has it. It returns ""
// if the list is sorted by another field.
func (o Order) Direction(field string) string {
	switch {
	case o.field() != field:
		return ""
	case o.Ascending:
		return "ascending"
	}

	return "descending"
}

// Next returns the order after a click on the heading of a field. That is the highest first, or the other
// way round if it is so already.
func (o Order) Next(field string) Order {
	turned := Order{By: field, Ascending: o.Direction(field) == "descending"}
	if field == ByTime && !turned.Ascending {
		return Order{}
	}

	return turned
}

// Text returns the order in words.
func (o Order) Text() string {
	words := map[string][2]string{
		ByTime:                   {"newest first", "oldest first"},
		"accepted_at":            {"last received first", "first received first"},
		"request_start_time":     {"latest start first", "earliest start first"},
		"latency_ms":             {"slowest first", "fastest first"},
		"time_to_first_token_ms": {"slowest first token first", "fastest first token first"},
		"cost":                   {"most expensive first", "cheapest first"},
		"input_tokens":           {"most input tokens first", "fewest input tokens first"},
		"output_tokens":          {"most output tokens first", "fewest output tokens first"},
		"status":                 {"by status, from Z to A", "by status, from A to Z"},
	}[o.field()]
	if o.Ascending {
		return words[1]
	}

	return words[0]
}
