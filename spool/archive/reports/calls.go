package reports

import "slices"

// Bounds of what is brought together.
const (
	MembersMax = 16 // of one role under a key; more mean that the key identifies nothing
	namesMax   = 8  // spans and response ids of what evidence connects
)

// Call is the reports of one call.
type Call struct {
	Reports []*Report
	Step    bool // its only report is a span with several calls below it: that is none
}

// Finder finds reports by their places.
type Finder interface {
	// Under returns the reports in a place, each always as the same pointer. crowded reports whether there
	// are, or were, more than MembersMax: then they are not known.
	Under(p Place) (found []*Report, crowded bool, err error)
}

// CallsWith divides a report, and all others that evidence connects it with, into calls. If they are more
// than the bounds allow, each is a call, and perhaps not all are there.
func CallsWith(first *Report, f Finder) (calls []Call, err error) {
	step, err := isStep(first, f)
	if step || err != nil {
		return []Call{{[]*Report{first}, true}}, err
	}
	connected, err := connect(first, f)
	if err != nil {
		return nil, err
	}

	names := make(map[[10]byte]bool)
	for _, r := range connected {
		for _, p := range r.Places {
			names[[10]byte(p.Key[6:])] = true
		}
	}
	if len(connected) > MembersMax || len(names) > namesMax {
		for _, r := range connected {
			calls = append(calls, Call{Reports: []*Report{r}})
		}
		return calls, nil
	}

	return divide(inOrder(connected)), nil
}

// isStep reports whether different calls are directly below a span.
func isStep(r *Report, f Finder) (bool, error) {
	for _, p := range r.Places {
		if p.Role != Span {
			continue
		}
		below, crowded, err := f.Under(Place{p.Key, Below})
		if crowded || err != nil {
			return crowded, err
		}
		for i, a := range below {
			for _, b := range below[:i] {
				if !connects(a, b) || a.repeats(b) {
					return true, nil
				}
			}
		}
	}

	return false, nil
}

// How much speaks for two reports being of one call.
const (
	byNothing = iota
	byID
	byParent
	bySpan
)

// evidence returns what speaks for two reports being of one call.
func evidence(a, b *Report) int {
	switch {
	case a.meets(b, Span, Span) || a.meets(b, Span, Named) || b.meets(a, Span, Named) || a.meets(b, Named, Named) ||
		a.Part && b.Part && a.meets(b, Response, Response):
		return bySpan
	case a.meets(b, Span, Below) || b.meets(a, Span, Below):
		return byParent
	case a.meets(b, Response, Response):
		return byID
	}

	return byNothing
}

// connects reports whether something speaks for two reports being of one call, and nothing against it.
func connects(a, b *Report) bool { return evidence(a, b) > byNothing && !contradicts(a, b) }

// neighbours are the roles in which something is evidence beside a place.
var neighbours = map[Role][]Role{
	Response: {Response},
	Span:     {Span, Named, Below},
	Named:    {Span, Named},
	Below:    {Span},
}

// Neighbours returns the roles in which a report may be evidence for one that is in a role.
func Neighbours(role Role) []Role { return neighbours[role] }

// connect returns the reports that evidence connects with one, directly or by others: all of them, or
// more than the bounds allow.
func connect(first *Report, f Finder) (found []*Report, err error) {
	found = []*Report{first}
	for i := 0; i < len(found) && i <= MembersMax; i++ {
		for _, p := range found[i].Places {
			for _, role := range neighbours[p.Role] {
				others, _, err := f.Under(Place{p.Key, role})
				if err != nil {
					return nil, err
				}
				for _, other := range others {
					if slices.Contains(found, other) || !connects(found[i], other) {
						continue
					}
					step, err := isStep(other, f)
					if err != nil {
						return nil, err
					}
					if !step {
						found = append(found, other)
					}
				}
			}
		}
	}

	return found, nil
}

// inOrder orders connected reports by time, but each after one with which it has evidence.
func inOrder(connected []*Report) (ordered []*Report) {
	rest := slices.SortedFunc(slices.Values(connected), byTime)
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(r *Report) bool {
			return slices.ContainsFunc(ordered, func(o *Report) bool { return connects(r, o) })
		})
		next = max(next, 0)
		ordered = append(ordered, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}

	return ordered
}

// divide divides connected reports into calls. Each joins the call for which most speaks; none, if that
// is true of several.
func divide(connected []*Report) (calls []Call) {
	for _, r := range connected {
		best, most, several := 0, byNothing, false
		for i := range calls {
			switch speaks := evidenceOf(r, calls[i].Reports); {
			case speaks > most:
				best, most, several = i, speaks, false
			case speaks == most && most > byNothing:
				several = true
			}
		}
		if most == byNothing || several {
			calls = append(calls, Call{Reports: []*Report{r}})
			continue
		}
		calls[best].Reports = append(calls[best].Reports, r)
	}

	return calls
}

// evidenceOf returns what speaks for a report being of a call: nothing, if it contradicts another report
// of the call, or its reporter has reported that.
func evidenceOf(r *Report, call []*Report) (most int) {
	for _, other := range call {
		most = max(most, evidence(r, other))
	}
	for _, other := range call {
		// A span below one of the call's is within it, however deep.
		within := most >= byParent && r.Trace == other.Trace && r.Reporter != Logged
		if contradicts(r, other) || r.repeats(other) && !within {
			return byNothing
		}
	}

	return most
}
