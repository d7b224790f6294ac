package dashboard

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// filter is which records a page shows, and which columns of them. It lives in the page's address, so that a view can be sent to
// somebody: q, span, the field and the value of each condition that a field is a value, for each other one field, key, op and value, in the
// order in which they stand, and col for each column.
type filter struct {
	Q          string
	Span       string // one of spans, or a stretch; "" for all
	Conditions []condition
	Columns    []string // names of columns; nil for those that a list has by itself
}

// condition is one line of a filter.
type condition struct{ Field, Key, Op, Value string }

// kind is what a field's values are.
type kind int

const (
	text kind = iota
	keyed
	number
	moments
	flag
)

// filterField is a field that a filter can ask about. The archive knows what it means.
type filterField struct {
	Name, Text string
	kind       kind
}

var filterFields = []filterField{
	{"tags", "Tag", text}, {"metadata", "Metadata", keyed}, {"model", "Model", text}, {"provider", "Provider", text},
	{"status", "Status", text}, {"score", "Score", number}, {"score_name", "Score name", text},
	{"prompt_name", "Template", text}, {"prompt_version_number", "Template version", number}, {"label", "Template label", text},
	{"latency_ms", "Latency in ms", number}, {"cost", "Cost in $", number},
	{"input_tokens", "Tokens in", number}, {"output_tokens", "Tokens out", number},
	{"input_text", "Prompt", text}, {"output_text", "Response", text}, {"input_variables", "Variable", keyed},
	{"tool_names", "Tool called", text}, {"is_tool_call", "Has tool calls", flag}, {"is_json", "JSON output", flag},
	{"group_id", "Group", text}, {"sidecar", "Sidecar", text}, {"function_name", "Function", text}, {"metadata_keys", "Metadata key", text},
	{"accepted_at", "Received", moments}, {"request_start_time", "Started", moments}, {"request_id", "Request id", text},
}

// operator is how a condition compares.
type operator struct{ Name, Text string }

var operators = []operator{
	{"is", "is"}, {"is_not", "is not"}, {"contains", "contains"}, {"not_contains", "does not contain"}, {"starts_with", "starts with"},
	{"in", "is one of"}, {"not_in", "is none of"}, {"gt", ">"}, {"gte", "≥"}, {"lt", "<"}, {"lte", "≤"}, {"between", "is between"},
	{"before", "is before"}, {"after", "is after"}, {"is_null", "does not exist"}, {"is_not_null", "exists"},
	{"is_true", "is true"}, {"is_false", "is false"},
}

// short says whether a condition stands in an address as its field and its value alone.
func (c condition) short() bool {
	return c.Op == "is" && c.Key == "" && c.Value != "" && slices.ContainsFunc(filterFields, func(f filterField) bool { return f.Name == c.Field && f.kind != keyed })
}

// conditionsMax bounds the conditions of an address.
const conditionsMax = 20

// readFilter reads the filter of an address. Lines without a field, which the form's empty line is, are left out.
func readFilter(q url.Values) filter {
	f := filter{Q: q.Get("q"), Span: readSpan(q.Get("span"))}
	at := func(name string, i int) string {
		if values := q[name]; i < len(values) {
			return strings.TrimSpace(values[i])
		}
		return ""
	}
	var others []condition
	short := url.Values{}
	for i := range q["field"] {
		c := condition{at("field", i), at("key", i), at("op", i), at("value", i)}
		if c.short() {
			short.Add(c.Field, c.Value)
		} else if c.Field != "" {
			others = append(others, c)
		}
	}
	for _, field := range filterFields {
		for _, value := range slices.Concat(q[field.Name], short[field.Name]) {
			if c := (condition{field.Name, "", "is", strings.TrimSpace(value)}); c.short() {
				f.Conditions = append(f.Conditions, c)
			}
		}
	}
	f.Conditions = append(f.Conditions, others...)
	f.Conditions = f.Conditions[:min(len(f.Conditions), conditionsMax)]
	for _, c := range columns {
		if slices.Contains(q["col"], c.Name) {
			f.Columns = append(f.Columns, c.Name)
		}
	}
	return f
}

// values is the filter as it stands in an address.
func (f filter) values() url.Values {
	q := url.Values{}
	if f.Q != "" {
		q.Set("q", f.Q)
	}
	if f.Span != "" {
		q.Set("span", f.Span)
	}
	for _, c := range f.Conditions {
		if c.short() {
			q.Add(c.Field, c.Value)
			continue
		}
		q.Add("field", c.Field)
		q.Add("key", c.Key)
		q.Add("op", c.Op)
		q.Add("value", c.Value)
	}
	for _, name := range f.Columns {
		q.Add("col", name)
	}
	return q
}

// Record is the address of a record as one of those that the filter shows.
func (f filter) Record(id string) string { return address("/requests/"+id, f.values()) }

// with is the filter with one condition more.
func (f filter) with(c condition) filter {
	f.Conditions = append(slices.Clone(f.Conditions), c)
	return f
}

// between is the filter for the requests of a stretch of time: from is in it, to is not. Both are whole seconds.
func (f filter) between(from, to time.Time) filter {
	f.Span = stretch{from, to.Sub(from)}.String()
	return f
}

// without is the filter without its condition i.
func (f filter) without(i int) filter {
	f.Conditions = slices.Delete(slices.Clone(f.Conditions), i, i+1)
	return f
}

// group is the filter as the archive takes it; nil for all records.
func (f filter) group(now time.Time) *wire.Filter {
	var all []wire.Filter
	accepted := func(op string, at time.Time) {
		value, _ := json.Marshal(at.UTC())
		all = append(all, wire.Filter{Field: "accepted_at", Operator: op, Value: value})
	}
	for _, s := range spans {
		if s.Word == f.Span && s.Duration > 0 {
			accepted("after", now.Add(-s.Duration))
		}
	}
	if s, ok := readStretch(f.Span); ok {
		accepted("gte", s.from)
		accepted("lt", s.from.Add(s.long))
	}
	for _, c := range f.Conditions {
		all = append(all, c.filter())
	}
	if all == nil {
		return nil
	}
	return &wire.Filter{Logic: "AND", Filters: all}
}

// filter makes a condition that the archive takes. What it does not take it answers with what it would.
func (c condition) filter() wire.Filter {
	w := wire.Filter{Field: c.Field, Operator: c.Op, NestedKey: c.Key}
	k := kindOf(c.Field)
	if c.Field != "score" && k != keyed {
		w.NestedKey = ""
	}
	switch c.Op {
	case "is_null", "is_not_null", "is_true", "is_false":
	case "in", "not_in", "between":
		var list []json.RawMessage
		for part := range strings.SplitSeq(c.Value, ",") {
			list = append(list, value(k, strings.TrimSpace(part)))
		}
		w.Value, _ = json.Marshal(list)
	default:
		w.Value = value(k, c.Value)
	}
	return w
}

// value is what somebody typed, as JSON: a number where the field has numbers and it is one.
func value(k kind, typed string) json.RawMessage {
	if k == number {
		if n, err := strconv.ParseFloat(typed, 64); err == nil {
			if raw, err := json.Marshal(n); err == nil {
				return raw
			}
		}
	}
	raw, _ := json.Marshal(typed)
	return raw
}

func kindOf(field string) kind {
	for _, f := range filterFields {
		if f.Name == field {
			return f.kind
		}
	}
	return text
}

// Describe says a condition in words.
func (c condition) Describe() string {
	name, op := c.Field, c.Op
	for _, f := range filterFields {
		if f.Name == c.Field {
			name = f.Text
		}
	}
	for _, o := range operators {
		if o.Name == c.Op {
			op = o.Text
		}
	}
	return strings.TrimSpace(strings.Join([]string{name, c.Key, op, c.Value}, " "))
}

// requestsAddress returns the address of the requests in which a field has a value.
func requestsAddress(field, key, value string) string {
	return address("/requests", filter{Conditions: []condition{{field, key, "is", value}}}.values())
}
