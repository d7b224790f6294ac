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

// judge makes the state after the window, and returns the notices of what began and what ended with it.
func (w *watch) judge(st *wire.AlertState) (notices []wire.Notice) {
	if w.By == "" && len(w.values) == 0 {
		w.values[""] = new(query.Measured)
	}
	before, firing := st.Values, len(st.Firing())
	st.Until, st.Values, st.LeftOut = w.end, map[string]wire.AlertValue{}, w.leftOut

	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(w.values))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		m := w.values[name]
		if m == nil {
			m = new(query.Measured)
		}
		was := before[name]
		is := w.next(m, was)
		switch {
		case is.Breaches >= w.Windows && is.Firing == nil && firing < wire.AlertFiringMax:
			is.Firing = new(w.end)
			firing++
			st.Begin(wire.AlertFiring{By: name, At: w.end, Value: is.Value, URL: w.address(name)})
		case is.Firing == nil && was.Firing != nil:
			st.End(name, w.end)
		}
		if (is.Firing == nil) != (was.Firing == nil) {
			notices = append(notices, w.notice(name, was, is))
		}
		if w.By == "" || is.Breaches > 0 || w.IsChange() && m.Requests > 0 {
			st.Values[name] = is
		}
	}

	return notices
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
