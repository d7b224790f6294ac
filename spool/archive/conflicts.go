package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sort"

	"promptspool/api/wire"
)

// conflictBytesMax bounds the conflicting contents that a record shows, beyond the first.
const conflictBytesMax = 4 << 20

// settleConflicts unmarks requests that differ from the record's own only in a
// secret, because one of them arrived when less was masked than today. It shows the
// content of the others.
func (a *Archive) settleConflicts(ctx context.Context, id wire.Identity, r *wire.Record) error {
	// Nearly all records have one request, and need no second look at the store.
	if !slices.ContainsFunc(r.Events, func(e wire.RecordEvent) bool { return e.Conflict }) {
		return nil
	}

	// The record may have gained events since it was read: only those in
	// both are compared.
	state, bodies, err := a.config.Store.Bodies(ctx, id.Account, r.RequestID)
	if err != nil {
		return err
	}

	own, _ := maskBody(r.Request)
	var others []wire.RecordEvent
	for i := range r.Events {
		e := &r.Events[i]
		if !e.Conflict || !slices.ContainsFunc(state.History, func(h Entry) bool { return h.ID == e.ID }) {
			continue
		}

		// Compared as they would be kept today, whatever was masked when they arrived.
		bodies[e.ID], _ = maskBody(bodies[e.ID])
		e.Conflict = string(bodies[e.ID]) != string(own)
		if e.Conflict {
			others = append(others, *e)
		}
	}
	r.Conflicts = conflictsOf(others, bodies)

	return nil
}

// conflictsOf returns the contents of other requests under a record's id, each once,
// in the order of arrival. The first is always shown: it stood before another took
// the record over.
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
		hash := HashBody(body)
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
