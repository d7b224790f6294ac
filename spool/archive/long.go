package archive

import (
	"encoding/json"
	"maps"
	"slices"

	"promptspool/api/calls/otel"
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// shorten replaces long values by references, and reports whether there were any: then
// the body must be kept.
func (e *Event) shorten() (long bool) {
	long = e.shortenScores()
	metadata := e.Metadata
	if e.Request != nil {
		metadata = e.Request.Metadata
	}
	for key, value := range metadata {
		if stored := rowcode.StoredValue(key, value); stored != value {
			// The map is the event's own: it was made when the body was read.
			metadata[key] = stored
			long = true
		}
	}

	if e.Prompt != nil && len(e.Prompt.InputVariables) > rowcode.LongBytes {
		e.Prompt.InputVariables, e.Prompt.Elsewhere = nil, true
		long = true
	}

	return long
}

// Shown returns the ids of the events whose bodies are needed to show the record. These
// are the request, and the events with reasons and long values that the state only refers to.
func (s *State) Shown() (ids []string) {
	if s.Joint != nil {
		ids = append(ids, s.Joint.ID)
	}
	if s.Request != nil {
		ids = append(ids, s.Request.ID)
	} else if s.Span != nil {
		ids = append(ids, s.Span.ID)
	}
	for _, v := range s.Metadata {
		if rowcode.IsReference(v.Value) {
			ids = append(ids, v.ID)
		}
	}
	for _, score := range s.Scores {
		if d := score.Value.Details; d != nil && d.Reasoned {
			ids = append(ids, score.ID)
		}
	}
	if s.Prompt != nil && s.Prompt.Value.Elsewhere {
		ids = append(ids, s.Prompt.ID)
	}
	// One event may have set several long values.
	slices.Sort(ids)

	return slices.Compact(ids)
}

// Bodies reads the stored bodies of the record's events, by id. With shown set it reads
// only those that Shown names.
func (s *State) Bodies(shown bool, read func(Entry) ([]byte, error)) (map[string]json.RawMessage, error) {
	var wanted []string
	if shown {
		wanted = s.Shown()
	}

	bodies := make(map[string]json.RawMessage)
	entries := s.History
	if s.Joint != nil {
		entries = append(entries[:len(entries):len(entries)], Entry{Stamp: Stamp{ID: s.Joint.ID}, Hash: s.Joint.Hash})
	}
	for _, entry := range entries {
		if entry.Hash == "" {
			// It is not stored.
			continue
		}
		if _, found := slices.BinarySearch(wanted, entry.ID); shown && !found {
			continue
		}

		body, err := read(entry)
		if err != nil {
			return nil, err
		}
		bodies[entry.ID] = body
	}

	return bodies, nil
}

// Kept returns the ids under which the bodies of the record's events are kept.
func (s *State) Kept() (ids []UUID) {
	_, _ = s.Bodies(false, func(h Entry) ([]byte, error) {
		if id, ok := ParseUUID(h.ID); ok {
			ids = append(ids, id)
		}
		return nil, nil
	})

	return ids
}

// Restore replaces references by the values that are in these bodies of events.
// References to other bodies stay.
func (s *State) Restore(bodies map[string]json.RawMessage) {
	s.restoreScores(bodies)
	s.restore(bodies, func(key, stored, value string) bool {
		return rowcode.StoredValue(key, value) == stored
	})
}

// restore is Restore for the values that match says belong to a reference.
func (s *State) restore(bodies map[string]json.RawMessage, match func(key, stored, value string) bool) {
	// Metadata by event.
	read := make(map[string]map[string]string)
	s.eachValue(func(event, key, stored string) string {
		if !rowcode.IsReference(stored) {
			return stored
		}

		if read[event] == nil {
			// Each body is parsed once, however many long values it has.
			read[event], _ = readLong(bodies[event])
		}
		if value, ok := read[event][key]; ok && match(key, stored, value) {
			return value
		}
		return stored
	})
	if s.Prompt == nil || !s.Prompt.Value.Elsewhere {
		return
	}
	// A body that is missing or unreadable leaves the
	// reference: the record is still shown.
	object, err := wire.ParseObject(bodies[s.Prompt.ID])
	if err != nil {
		return
	}
	w, _ := wire.Decode[wire.PromptWrite](object)
	// The event may share it.
	prompt := *s.Prompt
	prompt.Value.InputVariables, prompt.Value.Elsewhere = w.InputVariables, false
	s.Prompt = &prompt
}

// readLong returns the metadata and the scores in the body of an event.
func readLong(body json.RawMessage) (metadata map[string]string, scores []wire.Score) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return nil, nil
	}
	if otel.IsSpan(object) {
		span := otel.ReadObject(object)
		return span.Metadata, span.Scores
	}
	m, _ := wire.Decode[wire.MetadataWrite](object)
	s, _ := wire.DecodeScore(object)

	return m.Metadata, []wire.Score{s.Score}
}

// refer replaces the long values of events whose bodies are kept by references.
func (s *State) refer(bodies map[string]json.RawMessage) {
	s.eachValue(func(event, key, stored string) string {
		if bodies[event] == nil || rowcode.IsReference(stored) {
			return stored
		}
		return rowcode.StoredValue(key, stored)
	})

	// Without its body, the state has the only copy of the variables.
	if p := s.Prompt; p != nil && bodies[p.ID] != nil && len(p.Value.InputVariables) > rowcode.LongBytes {
		p.Value.InputVariables, p.Value.Elsewhere = nil, true
	}
}

// eachValue replaces every metadata value of the state by the result of fn. Maps that the
// state shares with events are copied first.
func (s *State) eachValue(fn func(event, key, stored string) string) {
	replaced := func(event string, metadata map[string]string) map[string]string {
		metadata = maps.Clone(metadata)
		for key, value := range metadata {
			metadata[key] = fn(event, key, value)
		}
		return metadata
	}

	for key, v := range s.Metadata {
		v.Value = fn(v.ID, key, v.Value)
		s.Metadata[key] = v
	}
	for key, past := range s.Past {
		for i := range past {
			past[i].Value = fn(past[i].ID, key, past[i].Value)
		}
	}
	for i := range s.Rivals {
		s.Rivals[i].Value = replaced(s.Rivals[i].ID, s.Rivals[i].Value)
	}
	if s.Request != nil {
		request := *s.Request
		request.Value.Metadata = replaced(request.ID, request.Value.Metadata)
		s.Request = &request
	}
}
