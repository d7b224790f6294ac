package archive

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Events gives the events of a record back, by order time, so that folding them elsewhere makes the same record. Those whose
// body was kept (bodies, by event id) come as they were sent. Of the others, which a record remembers only by what they
// did, the body is made from what is left of that: of an event that later ones have overtaken whole, only its place in the
// history. The result aliases bodies.
func (s *State) Events(bodies map[string]json.RawMessage) []wire.Event {
	groups := s.groupsWithout(bodies)
	events := make([]wire.Event, 0, len(s.History))
	for _, h := range s.History {
		e := wire.Event{
			ID: h.ID, Kind: h.Kind, RequestID: s.RequestID, AcceptedAt: h.AcceptedAt,
			Sidecar: h.Sidecar, Clock: h.Clock, Body: bodies[h.ID],
		}
		if !h.At.Equal(h.AcceptedAt) {
			e.OrderedAt = h.At
		}
		if s.Request != nil && s.Request.ID == h.ID && s.Request.Value.Prompt != nil {
			e.Version = s.Request.Value.Prompt.Version
		}
		if s.Prompt != nil && s.Prompt.ID == h.ID {
			e.Version = s.Prompt.Value.Version
		}
		if e.Body == nil {
			did := map[string]any{"request_id": s.RequestID}
			s.addEffect(did, h)
			if h.Kind == wire.KindGroup && len(groups) > 0 {
				did["group_id"], groups = groups[0], groups[1:]
			}
			e.Body, _ = jsonscan.Marshal(did)
		}
		events = append(events, e)
	}
	return events
}

// addEffect adds what is left of an event's effect.
func (s *State) addEffect(did map[string]any, h Entry) {
	switch h.Kind {
	case wire.KindScore:
		for _, name := range slices.Sorted(maps.Keys(s.Scores)) {
			if s.Scores[name].ID == h.ID {
				did["name"], did["score"] = name, s.Scores[name].Value
			}
		}
	case wire.KindMetadata:
		left := map[string]string{}
		s.pastValues(h.ID, left)
		for key, v := range s.Metadata {
			if v.ID == h.ID {
				left[key] = v.Value
			}
		}
		did["metadata"] = left
	case wire.KindPrompt:
		if s.Prompt == nil || s.Prompt.ID != h.ID {
			return
		}
		link := s.Prompt.Value
		did["prompt_name"], did["prompt_input_variables"] = link.Name, link.InputVariables
		if link.Label != "" {
			did["label"] = link.Label
		} else if link.Version > 0 {
			did["version"] = link.Version
		}
	}
}

// groupsWithout are the groups that came with events whose body was not kept. Which of these brought which makes no difference.
func (s *State) groupsWithout(bodies map[string]json.RawMessage) []string {
	groups := slices.Clone(s.GroupIDs)
	for _, h := range s.History {
		if h.Kind != wire.KindGroup || bodies[h.ID] == nil {
			continue
		}
		if object, err := wire.ParseObject(bodies[h.ID]); err == nil {
			w, _ := wire.DecodeGroup(object)
			groups = slices.DeleteFunc(groups, func(g string) bool { return g == w.GroupID })
		}
	}
	return groups
}

const (
	exportStep   = 100  // records between two cursors
	orphanCursor = "o." // begins the cursor of an export that has come to the orphans
)

// ExportEvents gives fn the events of every record that s finds, in its order, a record at a time, and behind them, if s has no
// filter, those that wait for their request. mark is called now and then with a cursor that goes on behind what fn got; "" at the
// end. It ends with the first error of either. Its memory is bounded by a page of rows and one record.
func (a *Archive) ExportEvents(ctx context.Context, id wire.Identity, s wire.Search, fn func([]wire.Event) error, mark func(cursor string) error) error {
	s.Page, s.PerPage = 0, exportStep
	after, inOrphans := strings.CutPrefix(s.Cursor, orphanCursor)
	for !inOrphans {
		page, err := a.Search(ctx, id, s)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := a.exportRecord(ctx, id, page.Items[i].RequestID, fn); err != nil {
				return err
			}
		}
		if page.NextCursor == nil {
			break
		}
		s.Cursor = *page.NextCursor
		if err := mark(s.Cursor); err != nil {
			return err
		}
	}
	if s.FilterGroup != nil || s.Q != "" {
		return mark("")
	}
	if !inOrphans {
		after = ""
	}
	return a.exportOrphans(ctx, id, after, fn, mark)
}

func (a *Archive) exportOrphans(ctx context.Context, id wire.Identity, after string, fn func([]wire.Event) error, mark func(string) error) error {
	for {
		page, err := a.Orphans(ctx, id, wire.OrphanQuery{PerPage: exportStep, Cursor: after})
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			if err := a.exportRecord(ctx, id, o.RequestID, fn); err != nil {
				return err
			}
		}
		if page.NextCursor == nil {
			return mark("")
		}
		after = *page.NextCursor
		if err := mark(orphanCursor + after); err != nil {
			return err
		}
	}
}

func (a *Archive) exportRecord(ctx context.Context, id wire.Identity, requestID string, fn func([]wire.Event) error) error {
	state, bodies, err := a.config.Store.Bodies(ctx, id.Account, requestID)
	if wire.IsCode(err, wire.CodeNotFound) {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	return fn(state.Events(bodies))
}
