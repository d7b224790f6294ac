package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

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
	RecordID string            `json:"record_id"`
	Metadata map[string]string `json:"metadata"`
}

func (c *TraceContext) compare(other *TraceContext) int {
	return cmp.Or(cmp.Compare(c.Start, other.Start), cmp.Compare(c.RecordID, other.RecordID))
}

// traceKeys returns the keys of the record's trace if the record says something for the calls in it, or
// takes what others say.
func (s *State) traceKeys() []UUID {
	id, ok := ParseUUID(s.RequestID)
	trace := s.TraceID()
	if !ok || trace == "" || !s.takesContext() && !s.isFirst() {
		return nil
	}

	return keysAt(nameEnd("trace "+trace).apart(s.apiKey()), id.Time())
}

// isFirst reports whether the record is a span without a parent.
func (s *State) isFirst() bool {
	span := s.span()
	return span != nil && span.ParentID == "" && !span.IsLog
}

// context returns what the record's span says for the calls of its trace, nil if that is nothing.
func (s *State) context() *TraceContext {
	if !s.isFirst() {
		return nil
	}

	span := s.span()
	c := &TraceContext{RecordID: s.RequestID}
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
	return s.Request != nil && (span != nil && span.ParentID != "" || span == nil && s.Linked != nil)
}

// lacks reports whether the record does not have what its trace says.
func (s *State) lacks(c *TraceContext) bool {
	if c == nil {
		c = new(TraceContext)
	}
	return s.takesContext() && !maps.Equal(s.Context, c.Metadata)
}

// TakesMost is how many records of a trace take what it says in the transaction that brings it. Those
// of a longer trace do so later: see ToDo.
const TakesMost = 200

// takeContexts has the records that changed say what they say for their traces, and the calls of these
// take it.
func (u *uniting) takeContexts(changed []*Record) error {
	// By the keys of traces that say something else now.
	said := map[UUID]UUID{}
	for _, r := range changed {
		now := r.State.traceKeys()
		if err := u.load(slices.Concat(r.traced, now)); err != nil {
			return err
		}
		for _, key := range r.traced {
			// An earlier report of the record that came late may be of another trace.
			if !slices.Contains(now, key) && u.sets.Sets[key].say(r, nil) {
				said[key], _ = ParseTrace(r.trace)
			}
		}
		for _, key := range now {
			set := u.sets.Sets[key]
			set.Decided = set.Decided || r.isNew()
			if set.say(r, r.State.context()) {
				said[key], _ = ParseTrace(r.State.TraceID())
			}
		}
	}

	if len(said) > 0 {
		if err := u.renewTraces(said); err != nil {
			return err
		}
	}
	for _, r := range u.Records {
		if r.Account == u.account && (r.isNew() && r.Changed || r.touched || r.renews) && !r.Removed {
			// A link may have brought a request into a trace.
			if err := u.load(r.State.traceKeys()); err != nil {
				return err
			}
			u.takeContext(r)
		}
	}

	return nil
}

// say has a record say what it does for a trace, nil for nothing, and reports whether the trace says
// something else then.
func (s *Set) say(r *Record, says *TraceContext) bool {
	before := s.Context
	isOwn := before != nil && before.RecordID == r.ID.String()
	switch {
	case r.Removed || says == nil:
		if !isOwn {
			return false
		}
		// Others may follow: see renewTraces.
		s.Context = nil
	case before == nil || isOwn || says.compare(before) < 0:
		s.Context = says
	}
	if sameJSON(s.Context, before) {
		return false
	}
	s.Changed = true

	return true
}

// takeContext has a call take what its trace says.
func (u *uniting) takeContext(r *Record) {
	if r.State.Context != nil && !r.State.takesContext() {
		// The span that linked it to a trace is gone.
		r.State.Context = nil
		r.touch()
	}
	for _, key := range r.State.traceKeys() {
		set := u.sets.Sets[key]
		if set == nil {
			continue
		}

		// Another server may just be writing that the trace says something.
		set.Decided = set.Decided || r.State.takesContext()
		if set.Context == nil && r.State.Context == nil || !r.State.lacks(set.Context) {
			continue
		}

		r.State.Context = nil
		if set.Context != nil {
			r.State.Context = maps.Clone(set.Context.Metadata)
		}
		r.touch()
		return
	}
}

// renewTraces loads the records of traces that say something else now, or leaves them to do.
func (u *uniting) renewTraces(said map[UUID]UUID) error {
	found, err := u.loader.OfTraces(u.account, slices.Collect(maps.Values(said)), TakesMost+1)
	if err != nil {
		return err
	}

	var left []UUID
	for key, trace := range said {
		ids := found[trace]
		if len(ids) > TakesMost || u.held > u.heldMax/2 {
			left = append(left, key)
			continue
		}
		records, err := u.records(ids)
		if err != nil {
			return err
		}
		for _, r := range records {
			r.renews = true
			if err := u.load(r.State.traceKeys()); err != nil {
				return err
			}
		}
	}

	// Also those that are new: what the trace said until now may have come before theirs.
	for _, r := range u.Records {
		if r.Account != u.account || r.Removed || !r.State.isFirst() {
			continue
		}
		for _, key := range r.State.traceKeys() {
			if _, ok := said[key]; ok {
				u.sets.Sets[key].say(r, r.State.context())
			}
		}
	}

	// A to-do has a hash of what its trace says in the end.
	for _, key := range left {
		says, _ := json.Marshal(u.sets.Sets[key].Context) // of texts
		if err := u.leave(ToDo{traceText(said[key]), key.String(), HashBody(says)}); err != nil {
			return err
		}
	}

	return nil
}

// ToDo is a trace whose records do not all show yet what it says.
type ToDo struct {
	TraceID string `json:"trace_id"`
	Key     string `json:"key"`  // of its set
	Says    string `json:"says"` // a hash of it: if that changes meanwhile, it is to do again
}

// toDoKey is the key of the set that has what is to do. It is of no week that ever goes.
var toDoKey = keyAt(nameEnd("to do"), time.Date(2200, 1, 6, 0, 0, 0, 0, time.UTC))

// leave notes that something is to do.
func (u *uniting) leave(todo ToDo) error {
	if err := u.load([]UUID{toDoKey}); err != nil {
		return err
	}
	set := u.sets.Sets[toDoKey]
	if !slices.Contains(set.ToDo, todo) {
		set.ToDo, set.Changed = append(set.ToDo, todo), true
	}
	u.Left = true

	return nil
}

// ToDos returns what is to do for an account.
func ToDos(ctx context.Context, s Store, account string) (todos []ToDo, err error) {
	err = s.Change(ctx, account, []string{toDoKey.String()}, false, func(g *Group, reader Loader) error {
		of := g.Records[0].Account
		err := reader.Sets(of, []UUID{toDoKey})
		todos = slices.Clone(g.Accounts[of].Sets[toDoKey].ToDo)
		return err
	})

	return todos, err
}

// DoLeft does everything that is to do for an account.
func DoLeft(ctx context.Context, s Store, account string) error {
	for {
		todos, err := ToDos(ctx, s, account)
		for _, todo := range todos {
			if err == nil {
				err = todo.Do(ctx, s, account)
			}
		}
		if err != nil || len(todos) == 0 {
			return err
		}
	}
}

// Do does what is to do: all records of a trace show what it says when Do returns, durably.
func (t ToDo) Do(ctx context.Context, s Store, account string) error {
	trace, _ := ParseTrace(t.TraceID)
	key, _ := ParseUUID(t.Key)
	// The first spans, and then the calls.
	for _, which := range []func(*State) bool{(*State).isFirst, (*State).takesContext} {
		err := eachPage(ctx, s, account, Part{Trace: trace}, func(page []State) error {
			var ids []string
			for i := range page {
				if which(&page[i]) {
					ids = append(ids, page[i].RequestID)
				}
			}
			return renew(ctx, s, account, ids)
		})
		if err != nil {
			return err
		}
	}

	return s.Change(ctx, account, []string{toDoKey.String()}, false, func(g *Group, reader Loader) error {
		of := g.Records[0].Account
		if err := reader.Sets(of, []UUID{toDoKey, key}); err != nil {
			return err
		}
		set := g.Accounts[of].Sets[toDoKey]
		set.ToDo, set.Changed = slices.DeleteFunc(set.ToDo, func(other ToDo) bool { return other == t }), true

		return nil
	})
}

// renew has records say what they say for their traces, and take it.
func renew(ctx context.Context, s Store, account string, ids []string) error {
	for step := range slices.Chunk(ids, contextStep) {
		err := Apart(step, func(part []string) error {
			return s.Change(ctx, account, part, false, func(g *Group, reader Loader) error {
				for _, r := range g.Records {
					r.renews, r.Changed = true, r.State.isFirst()
					if err := reader.Sets(r.Account, r.State.traceKeys()); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// contextStep is how many records are renewed together: others' writes wait for them.
const contextStep = 50

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
