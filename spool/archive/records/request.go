package records

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sort"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Request returns a record of the identity's account.
func (svc *Service) Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error) {
	parsed, err := wire.ParseID(requestID)
	if err != nil {
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"There is no such request: a request_id %v.", err)
	}

	state, body, err := svc.config.Store.Record(ctx, id.Account, parsed)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"This project has no request %s. If a sidecar has just accepted it, it may still be on its way.",
			parsed)
	case err != nil:
		return wire.Record{}, err
	// A span is shown, with whatever was attached to it: no request need ever follow.
	case state.Request == nil && state.Span == nil:
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"The request %s has not arrived yet. %s for it arrived already and will be part of it.",
			parsed, english.Plural(len(state.History), "event", ""))
	}

	if err := svc.addReasons(ctx, id.Account, &state); err != nil {
		return wire.Record{}, err
	}
	record := state.View(ctx, body)
	if ctx.Err() != nil {
		return wire.Record{}, wire.Unavailable(0, "The request ended before it was answered: %w", ctx.Err())
	}
	if err := svc.settleConflicts(ctx, id, &record); err != nil {
		return wire.Record{}, err
	}

	return record, nil
}

// addReasons adds the reasons of scores that other records have.
func (svc *Service) addReasons(ctx context.Context, account string, state *archive.State) error {
	if state.Given == nil {
		return nil
	}
	for _, from := range state.Given.From {
		other, _, err := svc.config.Store.Record(ctx, account, from)
		if wire.IsCode(err, wire.CodeNotFound) {
			// Deleted meanwhile.
			continue
		}
		if err != nil {
			return err
		}
		for slot, score := range other.Scores {
			if state.Given.Scores[slot].ID == score.ID {
				state.Given.Scores[slot] = score
			}
		}
	}

	return nil
}

// conflictBytesMax bounds the conflicting contents that a record shows, beyond the first.
const conflictBytesMax = 4 << 20

// settleConflicts unmarks requests that differ from the record's own only in a
// secret, because one of them arrived when less was masked than today. It shows the
// content of the others.
func (svc *Service) settleConflicts(ctx context.Context, id wire.Identity, r *wire.Record) error {
	// Nearly all records have one request, and need no second look at the store.
	if !slices.ContainsFunc(r.Events, func(e wire.RecordEvent) bool { return e.Conflict }) {
		return nil
	}

	// The record may have gained events since it was read: only those in
	// both are compared.
	state, bodies, err := svc.config.Store.Bodies(ctx, id.Account, r.RequestID)
	if err != nil {
		return err
	}

	own, _ := archive.MaskBody(r.Request)
	var others []wire.RecordEvent
	for i := range r.Events {
		e := &r.Events[i]
		if !e.Conflict || !slices.ContainsFunc(state.History, func(h archive.Entry) bool { return h.ID == e.ID }) {
			continue
		}

		// Compared as they would be kept today, whatever was masked when they arrived.
		bodies[e.ID], _ = archive.MaskBody(bodies[e.ID])
		e.Conflict = string(bodies[e.ID]) != string(own)
		if e.Conflict {
			others = append(others, *e)
		}
	}
	r.Conflicts = conflictsOf(others, bodies)

	return nil
}

// conflictsOf returns the contents of other requests under a record's id, each once, in
// the order of arrival. The first is always shown: it was shown before another took the
// record over.
func conflictsOf(others []wire.RecordEvent, bodies map[string]json.RawMessage) []wire.Conflict {
	sort.Slice(others, func(i, j int) bool {
		a, b := &others[i], &others[j]
		return cmp.Or(a.ArrivedAt.Compare(b.ArrivedAt), cmp.Compare(a.ID, b.ID)) < 0
	})

	var conflicts []wire.Conflict
	shown := make(map[string]bool)
	size := 0
	for _, e := range others {
		body := bodies[e.ID]
		hash := archive.HashBody(body)
		if shown[hash] {
			continue
		}
		shown[hash] = true

		// Beyond the bound an event is named without its content, to bound the answer.
		if size += len(body); len(conflicts) > 0 && size > conflictBytesMax {
			body = nil
		}
		conflicts = append(conflicts, wire.Conflict{EventID: e.ID, Request: body})
	}

	return conflicts
}
