package filterline

import "promptspool/api/wire"

// Rollup is a line as a search for sessions, traces or users takes it.
type Rollup struct {
	Calls  *wire.Filter // what at least one of its calls must match; nil for anything
	Having *wire.Filter // what it must be itself; nil for anything
}

// Search returns the search for sessions, traces or users.
func (r Rollup) Search(of string) wire.RollupSearch {
	return wire.RollupSearch{Of: of, FilterGroup: r.Calls, Having: r.Having}
}

// CompileRollup returns what a line selects of sessions, traces or users. Its errors are those of Compile.
//
// Facts that these have themselves are theirs. A time is that of calls if the line selects calls,
// otherwise it finds what began before its end and ended after its beginning.
func (l Line) CompileRollup(clock Clock) (r Rollup, err error) {
	having := group("AND")
	calls, times := Line{text: l.text}, Line{text: l.text}
	for _, t := range l.Terms {
		compared := !t.Not && len(t.Values) == 1 && t.Values[0].Operator != Exists
		switch {
		case t.isFact() && !compared:
			return r, faultAt(l.text, t.at, "of sessions, traces and users, %s takes one comparison, as in %s, "+
				"and no dash", t.key(), t.Field.Example)
		case t.isFact():
			f, err := l.compileValue(&t, &t.Values[0], clock)
			if err != nil {
				return r, err
			}
			having.Filters = append(having.Filters, f)
		case t.IsTime() && compared:
			times.Terms = append(times.Terms, t)
		default:
			calls.Terms = append(calls.Terms, t)
		}
	}

	ofCalls := calls.Terms != nil
	calls.Terms = append(calls.Terms, times.Terms...)
	if r.Calls, err = calls.Compile(clock); !ofCalls {
		r.Calls = nil
		from, to := times.Range(clock)
		if !from.IsZero() {
			having.Filters = append(having.Filters, condition("last_seen", "", "gte", from))
		}
		if !to.IsZero() {
			having.Filters = append(having.Filters, condition("first_seen", "", "lt", to))
		}
	}
	if having.Filters != nil {
		r.Having = &having
	}

	return r, err
}

// isFact reports whether the term is about a fact of sessions, traces and users. Whether a call has a
// cost is not.
func (t *Term) isFact() bool {
	return t.Field != nil && (t.Field.of == ofRollups || t.Field.of == ofBoth && t.Values[0].Operator != Exists)
}
