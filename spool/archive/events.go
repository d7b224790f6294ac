package archive

import (
	"encoding/json"
	"slices"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive/rowcode"
)

// Events returns the events of a record, by order time. Folding them elsewhere makes the
// same record. Events whose body was kept (bodies, by event id) are as they were sent.
//
// Of the others a record remembers only what they did, and their body is made from what
// is left of that. If later events replaced all of it, only the place in the history
// remains, and nothing of an event that is no longer listed. The result aliases bodies.
func (s *State) Events(bodies map[string]json.RawMessage) []wire.Event {
	groups := s.groupsWithoutBody(bodies)
	left := s.effects()
	unlisted := s.entriesUnlisted(left)
	events := make([]wire.Event, 0, len(unlisted)+len(s.History))
	for _, h := range slices.Concat(unlisted, s.History) {
		e := wire.Event{
			ID:         h.ID,
			Kind:       h.Kind,
			RequestID:  s.RequestID,
			AcceptedAt: h.AcceptedAt,
			Sidecar:    h.Sidecar,
			Clock:      h.Clock,
			Body:       bodies[h.ID],
		}
		// Where the two differ, another server could not derive the
		// order time from what the event says.
		if !h.At.Equal(h.AcceptedAt) {
			e.OrderedAt = h.At
		}

		// The version that the sidecar resolved is not in the body.
		if s.Request != nil && s.Request.ID == h.ID && s.Request.Value.Prompt != nil {
			e.Version = s.Request.Value.Prompt.Version
		}
		if s.Prompt != nil && s.Prompt.ID == h.ID {
			e.Version = s.Prompt.Value.Version
		}
		// Its body was not kept, because the state had all of it.
		if e.Body == nil {
			// Enough to fold the same effect again, and no more than the state remembers.
			body := map[string]any{"request_id": s.RequestID}
			if t := s.Target; t != nil && h.Kind == wire.KindScore {
				body = map[string]any{"trace_id": t.TraceID, "span_id": t.SpanID, "session_id": t.SessionID}
			}
			s.addEffect(body, h, left)
			if h.Kind == wire.KindGroup && len(groups) > 0 {
				body["group_id"] = groups[0]
				groups = groups[1:]
			}
			e.Body, _ = jsonscan.Marshal(body)
		}
		events = append(events, e)
	}

	return events
}

// entriesUnlisted returns entries for the events that are not listed and of which something is
// left, by order time.
func (s *State) entriesUnlisted(left effects) (entries []Entry) {
	if len(s.Unlisted) == 0 {
		return nil
	}

	add := func(stamp Stamp, kind wire.Kind) {
		if s.isUnlisted(stamp.ID) {
			entries = append(entries, Entry{Stamp: stamp, Kind: kind, AcceptedAt: stamp.At})
		}
	}
	for _, score := range s.Scores {
		add(score.Stamp, wire.KindScore)
	}
	for _, stamp := range left.stamps {
		add(stamp, wire.KindMetadata)
	}
	if s.Prompt != nil {
		add(s.Prompt.Stamp, wire.KindPrompt)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Compare(b.Stamp) })

	return entries
}

// effects are what is left of the scores and the metadata that events brought, by event.
// They are collected in one pass: a record may have thousands of both.
type effects struct {
	scores   map[string]string // the score's name
	metadata map[string]map[string]string
	stamps   []Stamp // of the events in metadata
}

func (s *State) effects() effects {
	left := effects{scores: make(map[string]string), metadata: make(map[string]map[string]string)}
	for name, score := range s.Scores {
		left.scores[score.ID] = name
	}

	set := func(key string, v Stamped[string]) {
		// A reference leads to the event's body, which is kept as long as it is listed.
		if rowcode.IsReference(v.Value) && s.isUnlisted(v.ID) {
			return
		}
		if left.metadata[v.ID] == nil {
			left.metadata[v.ID] = make(map[string]string)
			left.stamps = append(left.stamps, v.Stamp)
		}
		left.metadata[v.ID][key] = v.Value
	}
	for key, past := range s.Past {
		for _, v := range past {
			set(key, v)
		}
	}
	for key, v := range s.Metadata {
		set(key, v)
	}

	return left
}

// addEffect adds what is left of an event's effect to its body.
func (s *State) addEffect(body map[string]any, h Entry, left effects) {
	switch h.Kind {
	case wire.KindScore:
		if name, ok := left.scores[h.ID]; ok {
			body["name"], body["score"] = name, s.Scores[name].Value
		}

	case wire.KindMetadata:
		body["metadata"] = left.metadata[h.ID]
		if left.metadata[h.ID] == nil { // an empty object, not null
			body["metadata"] = map[string]string{}
		}

	case wire.KindPrompt:
		if s.Prompt == nil || s.Prompt.ID != h.ID {
			return
		}
		link := s.Prompt.Value
		body["prompt_name"], body["prompt_input_variables"] = link.Name, link.InputVariables
		// The version that a label meant is in the event's Version.
		if link.Label != "" {
			body["label"] = link.Label
		} else if link.Version > 0 {
			body["version"] = link.Version
		}
	}
}

// groupsWithoutBody returns the groups that came with events whose body was not kept.
// Which event brought which group makes no difference.
func (s *State) groupsWithoutBody(bodies map[string]json.RawMessage) []string {
	groups := slices.Clone(s.GroupIDs)
	for _, h := range s.History {
		// Events with a body bring their groups by themselves.
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
