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

// filter selects the records that a page shows, and their columns. It is part of the page's
// address, so that a view can be shared.
//
// In the address it is q, span, and col for each column. A condition that a field has a
// value is the field with the value. Any other condition is one field, key, op and value,
// matched by their order.
type filter struct {
	Q          string
	Span       string // one of spans, or a stretch; "" for all time
	Conditions []condition
	Columns    []string // names of columns; nil for the default ones
}

// condition is one line of a filter.
type condition struct{ Field, Key, Op, Value string }

// valueKind is the kind of a field's values.
type valueKind int

const (
	textKind valueKind = iota
	keyedKind
	numberKind
	timeKind
	flagKind
)

// filterField is a field that a filter can test. The archive defines its meaning.
type filterField struct {
	Name, Text string
	kind       valueKind
}

var filterFields = []filterField{
	{"tags", "Tag", textKind},
	{"metadata", "Metadata", keyedKind},
	{"model", "Model", textKind},
	{"provider", "Provider", textKind},
	{"status", "Status", textKind},
	{"score", "Score", numberKind},
	{"score_name", "Score name", textKind},
	{"prompt_name", "Template", textKind},
	{"prompt_version_number", "Template version", numberKind},
	{"label", "Template label", textKind},
	{"latency_ms", "Latency in ms", numberKind},
	{"cost", "Cost in $", numberKind},
	{"input_tokens", "Tokens in", numberKind},
	{"output_tokens", "Tokens out", numberKind},
	{"input_text", "Prompt", textKind},
	{"output_text", "Response", textKind},
	{"input_variables", "Variable", keyedKind},
	{"tool_names", "Tool called", textKind},
	{"is_tool_call", "Has tool calls", flagKind},
	{"is_json", "JSON output", flagKind},
	{"group_id", "Group", textKind},
	{"sidecar", "Sidecar", textKind},
	{"function_name", "Function", textKind},
	{"metadata_keys", "Metadata key", textKind},
	{"accepted_at", "Received", timeKind},
	{"request_start_time", "Started", timeKind},
	{"request_id", "Request id", textKind},
}

// operator is a comparison that a condition can make.
type operator struct{ Name, Text string }

var operators = []operator{
	{"is", "is"},
	{"is_not", "is not"},
	{"contains", "contains"},
	{"not_contains", "does not contain"},
	{"starts_with", "starts with"},
	{"in", "is one of"},
	{"not_in", "is none of"},
	{"gt", ">"},
	{"gte", "≥"},
	{"lt", "<"},
	{"lte", "≤"},
	{"between", "is between"},
	{"before", "is before"},
	{"after", "is after"},
	{"is_null", "does not exist"},
	{"is_not_null", "exists"},
	{"is_true", "is true"},
	{"is_false", "is false"},
}

// short reports whether an address holds the condition as its field with its value.
func (c condition) short() bool {
	if c.Op != "is" || c.Key != "" || c.Value == "" {
		return false
	}

	return slices.ContainsFunc(filterFields, func(f filterField) bool {
		return f.Name == c.Field && f.kind != keyedKind
	})
}

// conditionsMax bounds the conditions of an address.
const conditionsMax = 20

// readFilter reads the filter in an address.
func readFilter(q url.Values) filter {
	f := filter{Q: q.Get("q"), Span: readSpan(q.Get("span"))}
	at := func(name string, i int) string {
		if values := q[name]; i < len(values) {
			return strings.TrimSpace(values[i])
		}
		return ""
	}

	// The form sends every condition in its long form. Those that could be short are
	// treated as if they were, so that equal filters have equal addresses.
	var long []condition
	short := url.Values{}
	for i := range q["field"] {
		c := condition{at("field", i), at("key", i), at("op", i), at("value", i)}
		switch {
		case c.short():
			short.Add(c.Field, c.Value)
		case c.Field != "": // otherwise it is the form's empty line
			long = append(long, c)
		}
	}

	for _, field := range filterFields {
		for _, value := range slices.Concat(q[field.Name], short[field.Name]) {
			c := condition{field.Name, "", "is", strings.TrimSpace(value)}
			if c.short() {
				f.Conditions = append(f.Conditions, c)
			}
		}
	}
	f.Conditions = append(f.Conditions, long...)
	f.Conditions = f.Conditions[:min(len(f.Conditions), conditionsMax)]

	for _, c := range columns {
		if slices.Contains(q["col"], c.Name) {
			f.Columns = append(f.Columns, c.Name)
		}
	}

	return f
}

// values returns the filter as an address holds it.
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

		// Empty ones as well: the four are matched by their order.
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

// Record returns the address of a record in the list of the filter.
func (f filter) Record(id string) string { return address("/requests/"+id, f.values()) }

// with returns the filter with one more condition.
func (f filter) with(c condition) filter {
	f.Conditions = append(slices.Clone(f.Conditions), c)

	return f
}

// between returns the filter for the requests from a time until before another. Both are
// whole seconds.
func (f filter) between(from, to time.Time) filter {
	f.Span = stretch{from, to.Sub(from)}.String()

	return f
}

// without returns the filter without condition i.
func (f filter) without(i int) filter {
	f.Conditions = slices.Delete(slices.Clone(f.Conditions), i, i+1)

	return f
}

// group returns the filter as the archive takes it, or nil for all records.
func (f filter) group(now time.Time) *wire.Filter {
	var all []wire.Filter
	addTime := func(op string, at time.Time) {
		value, _ := json.Marshal(at.UTC())
		all = append(all, wire.Filter{Field: "accepted_at", Operator: op, Value: value})
	}

	for _, s := range spans {
		if s.Word == f.Span && s.Duration > 0 {
			addTime("after", now.Add(-s.Duration))
		}
	}
	if s, ok := readStretch(f.Span); ok {
		addTime("gte", s.from)
		addTime("lt", s.from.Add(s.long))
	}

	for _, c := range f.Conditions {
		all = append(all, c.filter())
	}
	if all == nil {
		return nil
	}

	// Conditions narrow the list one after another, so all of them must hold.
	return &wire.Filter{Logic: "AND", Filters: all}
}

// filter returns the condition as the archive takes it. Conditions that make no sense are
// left to the archive, whose error says what it accepts.
func (c condition) filter() wire.Filter {
	w := wire.Filter{Field: c.Field, Operator: c.Op, NestedKey: c.Key}
	kind := fieldKind(c.Field)
	if c.Field != "score" && kind != keyedKind {
		w.NestedKey = "" // the form has one for every field
	}

	switch c.Op {
	case "is_null", "is_not_null", "is_true", "is_false":
	case "in", "not_in", "between":
		var list []json.RawMessage
		for part := range strings.SplitSeq(c.Value, ",") {
			list = append(list, typedValue(kind, strings.TrimSpace(part)))
		}
		w.Value, _ = json.Marshal(list)
	default:
		w.Value = typedValue(kind, c.Value)
	}

	return w
}

// typedValue returns what was typed as JSON: as a number if it is one and the field has
// numbers, otherwise as a string.
func typedValue(kind valueKind, typed string) json.RawMessage {
	if kind == numberKind {
		if n, err := strconv.ParseFloat(typed, 64); err == nil {
			// NaN and infinity are floats, and no JSON.
			if raw, err := json.Marshal(n); err == nil {
				return raw
			}
		}
	}
	raw, _ := json.Marshal(typed)

	return raw
}

func fieldKind(name string) valueKind {
	for _, f := range filterFields {
		if f.Name == name {
			return f.kind
		}
	}

	return textKind
}

// fieldText returns what people read for a field.
func fieldText(name string) string {
	for _, f := range filterFields {
		if f.Name == name {
			return f.Text
		}
	}

	return name
}

// Describe returns a condition in words.
func (c condition) Describe() string {
	op := c.Op
	for _, o := range operators {
		if o.Name == c.Op {
			op = o.Text
		}
	}

	return strings.TrimSpace(strings.Join([]string{fieldText(c.Field), c.Key, op, c.Value}, " "))
}

// requestsAddress returns the address of the requests in which a field has a value.
func requestsAddress(field, key, value string) string {
	return address("/requests", filter{Conditions: []condition{{field, key, "is", value}}}.values())
}
