package filter

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// Order is how a list is sorted. An address has it as sort and order; the zero Order is requests,
// newest first.
type Order struct {
	By        string // as wire.IsSortField allows, or one of wire.RollupSortFields; "" for newest first
	Ascending bool

	usual string // the field of newest first; "" is ByTime
}

// ByTime is the field of the time by which a list is sorted anyway.
const ByTime = "list_time"

// readOrder reads the order in an address, by one of some fields. Whatever is none sorts newest first,
// by the first field.
func readOrder(q url.Values, fields []string) Order {
	o := Order{By: q.Get("sort"), Ascending: q.Get("order") == "asc", usual: fields[0]}
	isScore := fields[0] == ByTime && wire.IsSortField(o.By)
	if !isScore && !slices.Contains(fields, o.By) || o.By == o.usual && !o.Ascending {
		return Order{usual: o.usual}
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
func (o Order) field() string { return cmp.Or(o.By, o.usual, ByTime) }

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
	turned := Order{By: field, Ascending: o.Direction(field) == "descending", usual: o.usual}
	if field == cmp.Or(o.usual, ByTime) && !turned.Ascending {
		turned.By = ""
	}

	return turned
}

// Text returns the order in words.
func (o Order) Text() string {
	name, _ := strings.CutPrefix(o.By, wire.ScoreSort)
	words := map[string][2]string{
		wire.ScoreSort + name:    {"highest " + name + " first", "lowest " + name + " first"},
		ByTime:                   {"newest first", "oldest first"},
		"accepted_at":            {"last received first", "first received first"},
		"request_start_time":     {"latest start first", "earliest start first"},
		"latency_ms":             {"slowest first", "fastest first"},
		"time_to_first_token_ms": {"slowest first token first", "fastest first token first"},
		"cost":                   {"most expensive first", "cheapest first"},
		"input_tokens":           {"most input tokens first", "fewest input tokens first"},
		"output_tokens":          {"most output tokens first", "fewest output tokens first"},
		"status":                 {"by status, from Z to A", "by status, from A to Z"},
		"cache_write_tokens":     {"most cache writes first", "fewest cache writes first"},
		"last_seen":              {"most recent first", "least recent first"},
		"first_seen":             {"newest first", "oldest first"},
		"duration_ms":            {"longest first", "shortest first"},
		"turns":                  {"most turns first", "fewest turns first"},
		"spans":                  {"most spans first", "fewest spans first"},
		"tokens":                 {"most tokens first", "fewest tokens first"},
		"errors":                 {"most errors first", "fewest errors first"},
		"mean_score":             {"highest mean score first", "lowest mean score first"},
	}[o.field()]
	if o.Ascending {
		return words[1]
	}

	return words[0]
}
