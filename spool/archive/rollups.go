package archive

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rollup"
)

// longestSpan is how long a call or span may take at most in a roll-up: ends are what callers say.
const longestSpan = 24 * time.Hour

// rollups returns what the record adds to the roll-ups of its session, its trace and its user. That
// is nothing unless a list shows it, or it has a span.
func (s *State) rollups() (p rollup.Part) {
	if t := s.Target; t != nil && t.SpanID == "" && s.Request == nil && s.Span == nil {
		// A score moves no first or last moment.
		p.Sums = rollup.None()
		p.Names[rollup.Session], p.Names[rollup.Trace] = rollup.Name(t.SessionID), t.TraceID
		if s.addScores(&p.Sums); p.Sums.Empty() {
			return rollup.Part{}
		}
		return p
	}
	traced := s.span() != nil && !s.ClosesTrace() && !(s.hasLogs() && s.IsStep()) && (s.Span != nil || s.Linked == nil)
	if !s.Listed() && !traced {
		return p
	}

	p.Names[rollup.Session] = rollup.Name(s.SessionID())
	p.Names[rollup.User] = rollup.Name(s.UserID())
	if trace, ok := s.Trace(); ok {
		p.Names[rollup.Trace] = hex.EncodeToString(trace[:])
	}
	if p.Names == [rollup.Kinds]string{} {
		return p
	}

	p.Of[rollup.Spans] = one(traced)
	if s.Listed() {
		s.addCall(&p.Sums)
	} else {
		s.addSpan(&p.Sums)
	}
	// A step's scores are those of its call.
	if !s.IsStep() {
		s.addScores(&p.Sums)
	}

	return p
}

// addCall adds what only calls have.
func (s *State) addCall(sums *rollup.Sums) {
	r := s.shown()
	sums.Of[rollup.Turns], sums.Of[rollup.Errors] = 1, one(r.Status == "ERROR")
	// Callers' numbers are bounded, so that no sum overflows.
	if r.Price != nil {
		sums.Of[rollup.Cost] = min(max(int64(*r.Price), 0), 1<<45)
	}
	sums.Of[rollup.InputTokens], sums.Of[rollup.OutputTokens] = bounded(r.Tokens.Input), bounded(r.Tokens.Output)
	setBounds(sums, s.ListTime(), r.End)
}

// bounded returns a number of tokens that adds up; 0 if it is unknown.
func bounded(tokens *int64) int64 {
	if tokens == nil {
		return 0
	}
	return min(max(*tokens, 0), 1<<40)
}

// addSpan adds what a span that is not a call has, or a step.
func (s *State) addSpan(sums *rollup.Sums) {
	span := s.span()
	start := s.BareAt()
	if s.Span != nil {
		start = s.began(s.Span.Stamp, span.Start)
	}
	sums.Of[rollup.Errors] = one(span.Status == "ERROR" && s.Request == nil)
	setBounds(sums, start, span.End)
}

// addScores adds the scores that the record shows.
func (s *State) addScores(sums *rollup.Sums) {
	for _, score := range s.scores() {
		if score.Kind != wire.ScoreInteger {
			// Others have no scale in common.
			continue
		}
		sums.Of[rollup.Scores]++
		sums.Of[rollup.ScoreSum] += int64(score.Number)
	}
}

// setBounds sets when the record began and ended.
func setBounds(sums *rollup.Sums, start time.Time, end *time.Time) {
	sums.First, sums.Last = start.UnixMicro(), start.UnixMicro()
	if end != nil && end.After(start) && end.Sub(start) <= longestSpan {
		sums.Last = end.UnixMicro()
	}
}

// RollupChange is what a group adds to a roll-up in one week.
type RollupChange struct {
	Account string
	Kind    rollup.Kind
	Name    string
	Week    time.Time
	rollup.Sums
}

// Rollups returns how the group changes roll-ups, once it is settled, in an order that all writers
// keep to. A roll-up has a row for each week, which week returns for the id of a record.
func (g *Group) Rollups(week func(id UUID) time.Time) []*RollupChange {
	type place struct {
		account, name string
		kind          rollup.Kind
		week          time.Time
	}
	changes := make(map[place]*RollupChange)
	for _, r := range g.Records {
		before, after := &r.Before.Rollups, &r.After.Rollups
		if !r.Changed || *before == *after {
			continue
		}
		at := func(kind int, name string) *rollup.Sums {
			p := place{r.Account, name, rollup.Kind(kind), week(r.ID)}
			if changes[p] == nil {
				changes[p] = &RollupChange{r.Account, p.kind, name, p.week, rollup.None()}
			}
			return &changes[p].Sums
		}
		for kind := range rollup.Kinds {
			if name := before.Names[kind]; name != "" {
				at(kind, name).Subtract(before.Sums)
			}
			if name := after.Names[kind]; name != "" {
				at(kind, name).Add(after.Sums)
			}
		}
	}

	return slices.SortedFunc(maps.Values(changes), func(a, b *RollupChange) int {
		return cmp.Or(strings.Compare(a.Account, b.Account), cmp.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), a.Week.Compare(b.Week))
	})
}
