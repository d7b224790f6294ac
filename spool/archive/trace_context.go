package archive

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"promptspool/api/calls/otel/dialect"
	"promptspool/spool/archive/rowcode"
)

// Apps often say once, on the first span of a trace, whose trace it is. The calls below it have that
// as metadata unless they say something else themselves.

// traceKeys are the metadata that calls take from their trace.
var traceKeys = []string{dialect.UserKey, dialect.SessionKey, dialect.EnvironmentKey}

// TraceContext is what the calls of a trace take from its first span. Of the spans without a parent
// that have some of it, that is the one which began first.
type TraceContext struct {
	Start    int64             `json:"start"` // nanoseconds since 1970
	SpanID   string            `json:"span_id"`
	Metadata map[string]string `json:"metadata"`
}

func (c *TraceContext) compare(other *TraceContext) int {
	return cmp.Or(cmp.Compare(c.Start, other.Start), cmp.Compare(c.SpanID, other.SpanID))
}

// traceKey returns the key under which a Store keeps the TraceContext of the record's trace.
func (s *State) traceKey() (key UUID, ok bool) {
	id, ok := ParseUUID(s.RequestID)
	span := s.span()
	if !ok || span == nil || span.TraceID == "" {
		return key, false
	}

	return keyOf("trace "+span.TraceID, id.Time()), true
}

// context returns what the record's span says for the calls of its trace, nil if that is nothing.
func (s *State) context() *TraceContext {
	span := s.span()
	if span == nil || span.ParentID != "" || span.IsLog {
		return nil
	}

	c := &TraceContext{SpanID: span.SpanID}
	if span.Start != nil {
		c.Start = span.Start.UnixNano()
	}
	own := s.ownMetadata()
	for _, key := range traceKeys {
		if value := own[key]; value != "" && !rowcode.IsReference(value) {
			c.Metadata = with(c.Metadata, key, value)
		}
	}
	if c.Metadata == nil {
		return nil
	}

	return c
}

// takesContext reports whether the record is a call that takes metadata from its trace.
func (s *State) takesContext() bool {
	span := s.span()
	return s.Request != nil && span != nil && span.ParentID != ""
}

// lacks reports whether the record does not have what its trace says.
func (s *State) lacks(c *TraceContext) bool {
	return s.takesContext() && c != nil && !maps.Equal(s.Context, c.Metadata)
}

// takeContexts has the group's records say what they say for their traces, and its calls take what
// their traces say.
func (g *Group) takeContexts(account *GroupAccount, changed []*Record) {
	for _, r := range changed {
		key, ok := r.State.traceKey()
		said := r.State.context()
		if !ok || said == nil {
			continue
		}
		set := account.Calls[key]
		same := set.Trace != nil && set.Trace.SpanID == said.SpanID
		switch {
		case r.Removed && same:
			set.Trace, set.Changed = nil, true
		case !r.Removed && (same || set.Trace == nil || said.compare(set.Trace) < 0):
			set.Trace, set.Changed = said, true
		}
	}

	for _, r := range changed {
		key, ok := r.State.traceKey()
		if ok && !r.Removed && r.State.takesContext() && r.State.lacks(account.Calls[key].Trace) {
			r.State.Context = maps.Clone(account.Calls[key].Trace.Metadata)
			r.State.added = nil // no delta has it
		}
	}
}

// TraceToRenew returns the trace of a first span that says something for the calls of its trace.
func (e *Event) TraceToRenew() (trace UUID, ok bool) {
	s := e.alone()
	if s.context() == nil {
		return trace, false
	}
	return s.Trace()
}

// alone returns the state of a record that has only this event, as far as it concerns traces. It is
// empty if the event is in none.
func (e *Event) alone() (s State) {
	if e.Span == nil && (e.Request == nil || e.Request.TraceID == "") {
		return s
	}

	s.RequestID = e.RequestID
	if e.Request != nil {
		s.Request = &Stamped[Request]{Value: *e.Request}
	}
	if e.Span != nil {
		s.Span = &Stamped[Span]{Value: *e.Span}
	}
	if s.span().ParentID != "" {
		return s // only a first span says something for others
	}
	for key, value := range e.Metadata {
		s.Metadata = with(s.Metadata, key, Stamped[string]{Value: value})
	}

	return s
}

// Lacking returns the ids of those records of a trace that may lack what its first span says.
func Lacking(states []State) (ids []string) {
	var first *TraceContext
	for i := range states {
		if c := states[i].context(); c != nil && (first == nil || c.compare(first) < 0) {
			first = c
		}
	}
	for i := range states {
		if states[i].takesContext() && (first == nil || states[i].lacks(first)) {
			ids = append(ids, states[i].RequestID)
		}
	}

	return ids
}

// contextStep is how many records are renewed together: others' writes wait for them.
const contextStep = 50

// RenewContexts has calls take what their traces say now, durably when it returns.
func RenewContexts(ctx context.Context, s Store, account string, ids []string) error {
	for step := range slices.Chunk(ids, contextStep) {
		err := Apart(step, func(part []string) error {
			return s.Change(ctx, account, part, false, func(g *Group, reader Reader) error { return g.renew(reader) })
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// renew has the group's calls take what their traces say, if they lack it.
func (g *Group) renew(l Loader) error {
	for _, r := range g.Records {
		key, ok := r.State.traceKey()
		account := g.Accounts[r.Account]
		if ok && account.Calls[key] == nil {
			if err := l.CallSets(r.Account, []UUID{key}); err != nil {
				return err
			}
		}
		r.Changed = r.Changed || ok && r.State.lacks(account.Calls[key].Trace)
	}

	return nil
}

// inheritsDeleted reports whether a value that the record has from its trace was deleted after it.
func (s *State) inheritsDeleted(deleted Selectors) bool {
	own := s.ownMetadata()
	for key, value := range s.Context {
		before, ok := deleted(key, value)
		if _, has := own[key]; ok && !has && s.Request != nil && !s.Request.At.After(before) {
			return true
		}
	}

	return false
}
