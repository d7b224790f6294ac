package records

import (
	"context"
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Reread reads the account's spans again, so that they gain what today's version knows. A
// span may become a request, and a request a span. It works after the cursor of an
// earlier call ("" for the first) for about 2 s. Its result is durable, and repeating it
// changes nothing. With an error it reports what was changed before that.
func (svc *Service) Reread(ctx context.Context, id wire.Identity, cursor string) (wire.Reread, error) {
	if err := checkAccount(id); err != nil {
		return wire.Reread{}, err
	}

	answer := wire.Reread{Success: true}
	w := svc.newWalk(id, cursor, func(ctx context.Context, requestID string) error {
		return svc.rereadSpan(ctx, id.Account, requestID, &answer)
	})
	err := w.run(ctx)
	answer.Cursor, answer.Done = w.cursor, w.done

	return answer, err
}

// rereadSpan reads the span of a record again, if it has one.
func (svc *Service) rereadSpan(ctx context.Context, account, requestID string, answer *wire.Reread) error {
	state, bodies, err := svc.config.Store.Bodies(ctx, account, requestID)
	if wire.IsCode(err, wire.CodeNotFound) || err == nil && state.Span == nil {
		return nil
	}
	if err != nil {
		return err
	}

	answer.Seen++
	e, ok := state.SpanEvent(bodies[state.Span.ID])
	if !ok {
		return nil // the record keeps what was read when it arrived
	}

	// The version that a template had then: the registry may have forgotten it.
	if err := svc.resolve(ctx, account, &e); err != nil {
		return err
	}
	if link, old := e.TemplateLink(), state.TemplateLink(); link != nil && old != nil && link.Version == 0 &&
		link.Name == old.Value.Name && link.Label == old.Value.Label {
		link.Version = old.Value.Version
	}
	if e.Request != nil {
		e.Request.SetPrice(svc.config.Prices, e.OrderTime)
	}

	// Most spans read as before, and need no transaction.
	if !state.Reread(&e) {
		return nil
	}
	n, err := archive.Edit(ctx, svc.config.Store, account, []string{requestID}, false,
		func(s *archive.State, _ map[string]json.RawMessage) (bool, error) {
			isSame := s.Span != nil && s.Span.ID == e.ID // another one may have arrived
			return isSame && s.Reread(&e), nil
		})
	answer.Changed += n

	return err
}
