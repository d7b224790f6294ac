package filterline

import "promptspool/api/wire"

// Rollup is a line as a search for sessions, traces or users takes it.
type Rollup struct {
	Calls  Selection    // what at least one of its calls must match
	Having *wire.Filter // what it must be itself; nil for anything
}

// CompileRollup returns what a line selects of sessions, traces or users. Its errors are those of Compile.
//
// Facts that these have themselves are theirs. A time is that of calls if the line selects calls,
// otherwise it finds what began before its end and ended after its beginning.
func (l Line) CompileRollup(clock Clock) (r Rollup, err error) {
	var own, calls []Term
	for _, t := range l.Terms {
		compared := len(t.Values) == 1 && t.Values[0].Operator != Exists
		switch {
		case t.isFact() && (t.Not || !compared):
			return r, faultAt(l.text, t.at, "of sessions, traces and users, %s takes one comparison, as in %s, "+
				"and no dash", t.key(), t.Field.Example)
		case t.isFact(), t.IsTime() && compared && !t.Not:
			own = append(own, t)
		default:
			calls = append(calls, t)
		}
	}

	having := group("AND")
	for _, t := range own {
		f, err := l.compileValue(&t, &t.Values[0], clock)
		if err != nil {
			return r, err
		}
		switch {
		case !t.IsTime():
			having.Filters = append(having.Filters, f)
		case calls != nil:
			calls = append(calls, t)
		default:
			for _, c := range conditions(f) {
				having.Filters = append(having.Filters, overlapping(c)...)
			}
		}
	}
	if len(having.Filters) > 0 {
		r.Having = &having
	}
	r.Calls, err = Line{Terms: calls, text: l.text}.Compile(clock)

	return r, err
}

// isFact reports whether the term is about a fact of sessions, traces and users. Whether a call has a
// cost is not.
func (t *Term) isFact() bool {
	return t.Field != nil && (t.Field.of == ofRollups || t.Field.of == ofBoth && t.Values[0].Operator != Exists)
}

// overlapping returns the conditions of what is in use at a time, of which c is a bound.
func overlapping(c wire.Filter) []wire.Filter {
	began, ended := c, c
	began.Field, ended.Field = "first_seen", "last_seen"
	switch c.Operator {
	case "lt", "lte":
		return []wire.Filter{began}
	case "is": // a moment
		began.Operator, ended.Operator = "lte", "gte"
		return []wire.Filter{began, ended}
	}

	return []wire.Filter{ended}
}

// WithoutRollupFacts returns the line without the conditions that no call can meet.
func (l Line) WithoutRollupFacts() (kept Line) {
	for _, t := range l.Terms {
		if t.Field == nil || t.Field.IsOfCalls() {
			kept.Terms = append(kept.Terms, t)
		}
	}

	return kept
}

// ReadRollup parses a line and compiles it for a search for sessions, traces or users.
func ReadRollup(text string, clock Clock) (Rollup, error) {
	line, err := Parse(text)
	if err != nil {
		return Rollup{}, err
	}

	return line.CompileRollup(clock)
}
