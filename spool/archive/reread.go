package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"promptspool/api/wire"
)

// Reread reads the account's spans again, so that they gain what today's version knows. A
// span may become a request, and a request a span. It works behind the cursor of an earlier
// call ("" for the first) for about 2 s. What it reports is durable, and repeating
// it changes nothing. With an error it reports what was changed before that.
func (a *Archive) Reread(ctx context.Context, id wire.Identity, cursor string) (wire.Reread, error) {
	if err := checkAccount(id); err != nil {
		return wire.Reread{}, err
	}

	answer := wire.Reread{Success: true}
	w := a.newWalk(id, cursor, func(ctx context.Context, requestID string) error {
		return a.rereadSpan(ctx, id.Account, requestID, &answer)
	})
	err := w.run(ctx)
	answer.Cursor, answer.Done = w.cursor, w.done

	return answer, err
}

// rereadSpan reads the span of a record again, if it has one.
func (a *Archive) rereadSpan(ctx context.Context, account, requestID string, answer *wire.Reread) error {
	state, bodies, err := a.config.Store.Bodies(ctx, account, requestID)
	if wire.IsCode(err, wire.CodeNotFound) || err == nil && state.Span == nil {
		return nil
	}
	if err != nil {
		return err
	}

	answer.Seen++
	e := Event{
		Event: wire.Event{
			ID:        state.Span.ID,
			RequestID: requestID,
			Kind:      wire.KindSpan,
			Body:      bodies[state.Span.ID],
		},
		OrderTime: state.Span.At,
	}
	object, err := wire.ParseObject(e.Body)
	if err != nil {
		return nil // the record keeps what was read when it arrived
	}
	e.read(object)
	e.shorten()

	// The version that a template had then: the registry may have forgotten it.
	if err := a.resolve(ctx, account, &e); err != nil {
		return err
	}
	if link, old := e.link(), state.link(); link != nil && old != nil && link.Version == 0 &&
		link.Name == old.Value.Name && link.Label == old.Value.Label {
		link.Version = old.Value.Version
	}
	if e.Request != nil {
		e.Request.price(a.config.Prices, e.OrderTime)
	}

	// Most spans read as before, and need no transaction.
	if !state.reread(&e) {
		return nil
	}
	n, err := Edit(ctx, a.config.Store, account, []string{requestID},
		func(s *State, _ map[string]json.RawMessage) (bool, error) {
			isSame := s.Span != nil && s.Span.ID == e.ID // another one may have arrived
			return isSame && s.reread(&e), nil
		})
	answer.Changed += n

	return err
}

// reread replaces what was read of the record's span by what e says, and reports whether
// that changed anything.
func (s *State) reread(e *Event) (changed bool) {
	before, _ := json.Marshal(s)
	stamp := s.Span.Stamp
	s.Span = &Stamped[Span]{stamp, *e.Span}

	s.dropMetadata(stamp)
	for key, value := range e.Metadata {
		s.putMetadata(key, stamp, value)
	}
	for name, score := range s.Scores {
		if score.Compare(stamp) == 0 {
			delete(s.Scores, name)
		}
	}
	for _, score := range e.Scores {
		s.putScore(score.Name, stamp, score.Score)
	}

	// A logged request stays the record's.
	if s.Request == nil || s.Request.Value.Traced {
		s.Request = nil
		if e.Request != nil {
			s.Request = &Stamped[Request]{stamp, *e.Request}
		}
	}
	s.sums = sums{}
	after, _ := json.Marshal(s)

	return !bytes.Equal(before, after)
}

// dropMetadata removes the values that one event set.
func (s *State) dropMetadata(stamp Stamp) {
	isIts := func(v Stamped[string]) bool { return v.Compare(stamp) == 0 }
	for key, past := range s.Past {
		if past = slices.DeleteFunc(past, isIts); len(past) == 0 {
			delete(s.Past, key)
		} else {
			s.Past[key] = past
		}
	}

	for key, v := range s.Metadata {
		if !isIts(v) {
			continue
		}
		delete(s.Metadata, key)
		// The value before it stands again.
		if past := s.Past[key]; len(past) > 0 {
			s.Metadata[key] = past[len(past)-1]
			if s.Past[key] = past[:len(past)-1]; len(past) == 1 {
				delete(s.Past, key)
			}
		}
	}
}
