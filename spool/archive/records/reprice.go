package records

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Reprice reads the account's requests again as this version understands them. Until then they show
// what the version read that stored them. Each is priced by today's table, as of its time.
//
// It continues after the cursor of an earlier call ("" for the first), newest first, for about 2 s. Its
// result is durable, and repeating it changes nothing. With an error it reports what was changed
// before that.
func (svc *Service) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	if err := checkAccount(id); err != nil {
		return wire.Repriced{}, err
	}

	answer := wire.Repriced{Success: true}
	// Those that changed, by record.
	parts := make(map[string]wire.RepricedParts)
	change := func(s *archive.State, bodies map[string]json.RawMessage) (bool, error) {
		parts[s.RequestID] = svc.reprice(s, bodies)
		return parts[s.RequestID] != wire.RepricedParts{}, nil
	}
	e := edits{store: svc.config.Store, account: id.Account, change: change}
	w := svc.newWalk(id, cursor, func(ctx context.Context, requestID string) error {
		state, body, err := svc.config.Store.Record(ctx, id.Account, requestID)
		if wire.IsCode(err, wire.CodeNotFound) || err == nil && state.Request == nil {
			return nil
		}
		if err != nil {
			return err
		}

		answer.Seen++
		// Tried outside the transaction, for which writers wait: most stay as they were.
		tried := svc.reprice(&state, map[string]json.RawMessage{state.Request.ID: body})
		if tried == (wire.RepricedParts{}) {
			return nil
		}
		return e.add(ctx, &state)
	})
	err := w.run(ctx)
	if err == nil {
		err = e.flush(ctx)
	}
	for _, changed := range parts {
		answer.Parts.Add(changed)
	}
	answer.Changed, answer.Cursor, answer.Done = e.changed, w.cursor, w.done

	return answer, err
}

// reprice derives again what comes from the body of the request, and its price. It returns 1 for
// each part that changed.
func (svc *Service) reprice(s *archive.State, bodies map[string]json.RawMessage) (changed wire.RepricedParts) {
	if s.Request == nil {
		return changed
	}
	object, err := wire.ParseObject(s.ShownBody(bodies))
	i := slices.IndexFunc(s.History, func(h archive.Entry) bool { return h.ID == s.Request.ID })
	if err != nil || i < 0 {
		// The record keeps what was read when the body arrived.
		return changed
	}

	r := &s.Request.Value
	before := *r
	r.ReadAgain(s.History[i].Kind, object)
	r.SetPrice(svc.config.Prices, s.Request.At)

	return partsOf(&before, r)
}

// partsOf returns 1 for each part in which two requests differ, as they are stored.
func partsOf(before, after *archive.Request) (parts wire.RepricedParts) {
	stored, _ := json.Marshal(before)
	again, _ := json.Marshal(after)
	// Most stay as they were.
	if bytes.Equal(stored, again) {
		return parts
	}

	was, is := members(stored), members(again)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for name := range all {
		if !bytes.Equal(was[name], is[name]) {
			*partOf(&parts, name) = 1
		}
	}

	return parts
}

// members returns the members of a stored request.
func members(stored []byte) (all map[string]json.RawMessage) {
	_ = json.Unmarshal(stored, &all)

	return all
}

// partOf returns the part that a member of a stored request is of.
func partOf(parts *wire.RepricedParts, member string) *int {
	switch {
	case strings.HasSuffix(member, "_tokens"):
		return &parts.Tokens
	case strings.Contains(member, "price"):
		return &parts.Price
	case member == "status" || member == "error_type":
		return &parts.Status
	case member == "model" || member == "provider" || member == "asked" || member == "tier":
		return &parts.Model
	}

	return &parts.Text
}
