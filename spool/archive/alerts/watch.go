package alerts

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// watch is a compiled rule with one window, in which it measures rows.
type watch struct {
	wire.AlertRule
	line     filterline.Line
	selected *wire.Filter // of the line
	query    query.Query

	start, end time.Time // of the window, without its end
	values     map[string]*query.Measured
	leftOut    int64 // rows of values that are too many
}

// compile returns the watch of a rule, without a window. Its errors are 422.
func compile(r wire.AlertRule) (*watch, error) {
	line, err := filterline.Parse(r.Filter)
	if err != nil {
		return nil, err
	}
	selected, err := line.Compile(filterline.Clock{Now: time.Now()})
	if err != nil {
		return nil, err
	}
	q, err := query.CompileMatch(selected)
	if err != nil {
		return nil, err
	}

	reason := ""
	from, to := q.Span()
	first, last := q.AcceptedSpan()
	switch {
	case q.NeedsBody():
		reason = "looks into prompts or responses, which alerts do not read; filter by tags, metadata or scores instead"
	case !from.IsZero() || !to.IsZero() || !first.IsZero() || !last.IsZero():
		reason = "must not name a time: an alert looks at one window after the other"
	}
	if reason != "" {
		return nil, wire.Invalid(wire.FieldError{Field: "filter", Reason: reason})
	}

	return &watch{AlertRule: r, line: line, selected: selected, query: q}, nil
}

// length returns how long a window is.
func (w *watch) length() time.Duration { return time.Duration(w.Window) * time.Minute }

// open begins the window that ends at a moment.
func (w *watch) open(end time.Time) {
	w.start, w.end = end.Add(-w.length()), end
	w.values, w.leftOut = map[string]*query.Measured{}, 0
}

// due opens the oldest window that has ended and is not judged, and reports whether there is one. until is
// the end of the last one that is.
func (w *watch) due(until, now time.Time) bool {
	last := now.Add(-settle).UTC().Truncate(w.length())
	oldest := last.Add(-w.length() * max(1, catchUp/w.length()))
	if until.Before(oldest) {
		until = oldest
	}
	w.open(until.Add(w.length()))

	return until.Before(last)
}

// has reports whether a time is in the window.
func (w *watch) has(at time.Time) bool { return !at.Before(w.start) && at.Before(w.end) }

// columns returns those that a row needs to be measured.
func (w *watch) columns() rowcode.Columns {
	of := rowcode.ColumnsOf(rowcode.ColumnTime, rowcode.ColumnAccepted, rowcode.ColumnMetadata)
	return w.query.Columns() | query.MeasuredColumns | of
}

// add measures a row of the window that matches, if it has the metadata key.
func (w *watch) add(row *wire.Row) {
	value := ""
	if w.By != "" {
		key := w.Key()
		i := slices.IndexFunc(row.Metadata, func(m wire.MetadataRow) bool { return m.Key == key })
		if i < 0 {
			return
		}
		value = row.Metadata[i].Value
	}

	m := w.values[value]
	if m == nil {
		if len(w.values) == wire.AlertValuesMax {
			w.leftOut++
			return
		}
		m = new(query.Measured)
		// The store uses the row's memory again.
		w.values[strings.Clone(value)] = m
	}
	query.Measure(w.Measure).Add(m, row)
}

// change is a value for which an alert began to fire, or stopped.
type change struct {
	value   string
	was, is wire.AlertValue
}

// judge makes the state after the window, and returns what began and what ended with it.
func (w *watch) judge(st *wire.AlertState) (changes []change) {
	if w.By == "" && len(w.values) == 0 {
		w.values[""] = new(query.Measured)
	}
	before, firing := st.Values, len(st.Firing())
	*st = wire.AlertState{Until: w.end, Values: map[string]wire.AlertValue{}, LeftOut: w.leftOut}

	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(w.values))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		m := w.values[name]
		if m == nil {
			m = new(query.Measured)
		}
		was := before[name]
		is := w.next(m, was)
		if is.Breaches >= w.Windows && is.Firing == nil && firing < wire.AlertFiringMax {
			is.Firing = new(w.end)
			firing++
		}
		if (is.Firing == nil) != (was.Firing == nil) {
			changes = append(changes, change{name, was, is})
		}
		if w.By == "" || is.Breaches > 0 || w.IsChange() && m.Requests > 0 {
			st.Values[name] = is
		}
	}

	return changes
}

// next returns what a window has shown of a value, after what the one before has.
func (w *watch) next(m *query.Measured, was wire.AlertValue) wire.AlertValue {
	is := was
	is.Value = query.Measure(w.Measure).Value(m)
	breach := w.breaches(is.Value, was.Value)
	if is.Value == nil || m.Requests == 0 && w.NoData != "ok" {
		if w.NoData == "keep" {
			return is
		}
		breach = w.NoData == "fire"
	}

	if breach {
		is.Breaches++
	} else {
		is.Breaches, is.Firing = 0, nil
	}
	return is
}

// breaches reports whether a value is as the rule says, which an unknown one is not.
func (w *watch) breaches(now, before *float64) bool {
	if now == nil || w.IsChange() && before == nil {
		return false
	}

	limit := *w.Threshold
	switch w.When {
	case "above":
		return *now > limit
	case "below":
		return *now < limit
	case "rises":
		return *now-*before > limit/100*math.Abs(*before)
	default:
		return *before-*now > limit/100*math.Abs(*before)
	}
}
