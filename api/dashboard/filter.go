package dashboard

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// filter selects the records that a page shows, their columns and their order. It is part of the
// page's address, so that a view can be shared: filter has the line, col a column each.
type filter struct {
	Text    string   // the line
	Columns []string // names of columns; nil for those that the reader usually sees
	Order   order

	line  filterline.Line
	fault error          // what is wrong with the line; then it is as it was typed
	zone  *time.Location // of its days; nil is UTC

	unsaid []condition // of a page, which the line cannot say; an address with them is a fault
}

// newFilter returns the filter of a line.
func newFilter(text string) filter {
	line, err := filterline.Parse(text)
	if err == nil {
		// Again, so that the places of faults are those in what the page shows.
		text = line.String()
		line, err = filterline.Parse(text)
	}

	return filter{Text: text, line: line, fault: err}
}

// condition is a condition as pages make it, and as addresses had it before there was a line.
type condition struct{ Field, Key, Op, Value string }

// line returns the condition as a part of a line.
func (c condition) line() (string, bool) {
	f := c.filter()
	line, ok := filterline.FromFilter(&f, "")

	return line.String(), ok
}

// readFilter reads the filter in an address: its line, and what addresses had before. That is q,
// span, a field with its value, and field, key, op and value, which are matched by their order.
func readFilter(q url.Values) filter {
	line, sound := addressLine(q)
	f := newFilter(line)
	if !sound && f.fault == nil {
		f.fault = errUnsaid()
	}

	// The dates of the form take the place of another time.
	if part := datesLine(q.Get("from"), q.Get("to")); part != "" && f.fault == nil {
		f = f.during(part)
	}

	f.Columns, f.Order = namedColumns(q["col"]), readOrder(q)

	return f
}

// errUnsaid is the fault of a filter whose line leaves out a condition.
func errUnsaid() error {
	return wire.Invalid(wire.FieldError{Field: "filter",
		Reason: "does not have all that this address asks for, because a line cannot say it"})
}

// addressLine returns the line of an address. It reports false if it cannot say it all.
func addressLine(q url.Values) (text string, sound bool) {
	// A line and the older parameters may stand beside each other: all of them hold.
	words, _ := filterline.FromFilter(nil, q.Get("q"))
	parts := []string{strings.TrimSpace(q.Get("filter")), words.String(), spanLine(readSpan(q.Get("span")))}
	sound = true
	add := func(c condition) {
		part, ok := c.line()
		parts, sound = append(parts, part), sound && ok
	}

	for i := range filterline.Fields {
		for _, value := range q[filterline.Fields[i].JSON] {
			if c := (condition{filterline.Fields[i].JSON, "", "is", strings.TrimSpace(value)}); c.isShort(i) {
				add(c)
			}
		}
	}
	at := func(name string, i int) string {
		if values := q[name]; i < len(values) {
			return strings.TrimSpace(values[i])
		}
		return ""
	}
	for i, field := range q["field"] {
		if field != "" && i < filterline.TermsMax {
			add(condition{strings.TrimSpace(field), at("key", i), at("op", i), at("value", i)})
		}
	}

	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " "), sound
}

// isShort reports whether an address may have the condition as the field with its value. Of several
// fields of a line that stand for one, the first counts.
func (c condition) isShort(i int) bool {
	same := func(f filterline.Field) bool { return f.JSON == c.Field && f.Listed() }
	f := &filterline.Fields[i]

	return c.Value != "" && !f.NeedsPart && slices.IndexFunc(filterline.Fields, same) == i
}

// values returns the filter as an address has it.
func (f filter) values() url.Values {
	q := url.Values{}
	if f.Text != "" {
		q.Set("filter", f.Text)
	}
	for _, name := range f.Columns {
		q.Add("col", name)
	}
	f.Order.set(q)
	// What the line cannot say goes on as the conditions of an older address.
	for _, c := range f.unsaid {
		q.Add("field", c.Field)
		q.Add("key", c.Key)
		q.Add("op", c.Op)
		q.Add("value", c.Value)
	}

	return q
}

// titleRunesMax bounds the line in the title of a page: tabs and histories show the beginning.
const titleRunesMax = 80

// title returns the title of a page that shows what the filter finds, so that its tab can be told from others.
func (f filter) title(page string) string {
	var parts []string
	if f.Text != "" {
		line := []rune(f.Text)
		if len(line) > titleRunesMax {
			line = append(line[:titleRunesMax-1], '…')
		}
		parts = append(parts, string(line))
	}
	if f.Order.By != "" {
		parts = append(parts, f.Order.Text())
	}

	return strings.Join(append(parts, page), " · ")
}

// withLine returns the filter with another line.
func (f filter) withLine(text string) filter {
	other := newFilter(text)
	other.Columns, other.Order, other.zone = f.Columns, f.Order, f.zone

	return other.lacking(f.unsaid)
}

// lacking returns the filter with a fault if there are conditions that its line cannot say.
func (f filter) lacking(unsaid []condition) filter {
	f.unsaid = unsaid
	if len(unsaid) > 0 && f.fault == nil {
		f.fault = errUnsaid()
	}

	return f
}

// with returns the filter with one more condition.
func (f filter) with(c condition) filter {
	part, ok := c.line()
	if !ok {
		return f.lacking(append(slices.Clone(f.unsaid), c))
	}

	return f.withLine(strings.TrimSpace(f.Text + " " + part))
}

// during returns the filter with another time, which is a part of a line.
func (f filter) during(part string) filter {
	kept := f.line
	kept.Terms = slices.DeleteFunc(slices.Clone(kept.Terms), func(t filterline.Term) bool { return t.IsTime() })

	return f.withLine(strings.TrimSpace(kept.String() + " " + part))
}

// between returns the filter for the requests from a time until before another. Both are
// whole seconds.
func (f filter) between(from, to time.Time) filter {
	zone := cmp.Or(f.zone, time.UTC)
	line := "since:" + from.In(zone).Format(time.RFC3339) + " before:" + to.In(zone).Format(time.RFC3339)

	return f.during(line)
}

// requestsBetween returns the address of the requests that between selects. Their time is a span in
// it: a page may have hundreds of them, and the line would be three times as long.
func (f filter) requestsBetween(from, to time.Time) string {
	from = from.In(cmp.Or(f.zone, time.UTC))
	_, offset := from.Zone()
	if _, then := to.In(from.Location()).Zone(); then != offset {
		return address("/requests", f.between(from, to).values()) // clocks are changed within it
	}
	q := f.during("").values()
	q.Set("span", stretch{from, to.Sub(from)}.String())

	return address("/requests", q)
}

// without returns the filter without condition i.
func (f filter) without(i int) filter {
	kept := f.line
	kept.Terms = slices.Delete(slices.Clone(kept.Terms), i, i+1)

	return f.withLine(kept.String())
}

// search returns what the filter finds at this time, or what is wrong with it.
func (f filter) search(now time.Time) (wire.Search, error) {
	if f.fault != nil {
		return wire.Search{}, f.fault
	}
	selection, err := f.line.Compile(filterline.Clock{Now: now, Zone: f.zone})

	return wire.Search{FilterGroup: selection.Filter, Q: selection.Words}, err
}

// group returns what the filter finds as conditions only, nil for all records, or what is wrong with it.
func (f filter) group(now time.Time) (*wire.Filter, error) {
	s, err := f.search(now)

	return filterline.Selection{Filter: s.FilterGroup, Words: s.Q}.Group(), err
}

// filter returns the condition as the archive takes it. Conditions that make no sense are
// left to the archive, whose error says what it accepts.
func (c condition) filter() wire.Filter {
	w := wire.Filter{Field: c.Field, Operator: c.Op, NestedKey: c.Key}
	switch c.Op {
	case "is_null", "is_not_null", "is_true", "is_false":
	case "in", "not_in", "between":
		var list []json.RawMessage
		for part := range strings.SplitSeq(c.Value, ",") {
			list = append(list, typedValue(c.Field, strings.TrimSpace(part)))
		}
		w.Value, _ = json.Marshal(list)
	default:
		w.Value = typedValue(c.Field, c.Value)
	}

	return w
}

// typedValue returns what was typed as JSON: as a number if it is one and the field has
// numbers, otherwise as a string.
func typedValue(field, typed string) json.RawMessage {
	isNumeric := slices.ContainsFunc(filterline.Fields, func(f filterline.Field) bool {
		return f.JSON == field && (f.Kind == filterline.Number || f.Kind == filterline.Duration)
	})
	if isNumeric {
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

// requestsAddress returns the address of the requests in which a field has a value.
func requestsAddress(field, key, value string) string {
	return address("/requests", filter{}.with(condition{field, key, "is", value}).values())
}
