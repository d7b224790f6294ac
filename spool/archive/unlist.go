package archive

import (
	"bytes"
	"slices"
	"sort"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// enrichmentsMax is RecordEventsMax but in tests.
var enrichmentsMax = RecordEventsMax

// isEnrichment reports whether events of a kind say something about a record that a later one
// may replace. An agent may report each of its steps so. Group links are none: a record does
// not remember which event brought which group.
func isEnrichment(kind wire.Kind) bool {
	return kind == wire.KindScore || kind == wire.KindMetadata || kind == wire.KindPrompt
}

// unlist takes all enrichments but those with the highest stamps out of the history, and
// their bodies with them. Their effects stay. Also listed is the one that set a long
// value, long variables or a reason which still stand, because only its body has them.
//
// The listed events depend on the stamps of all events alone, not on the order in which
// they came: the bounds of two sets give that of their union. The ids of the others are
// kept, so that an event which is sent again changes nothing.
func (s *State) unlist() {
	if len(s.History) <= enrichmentsMax {
		return
	}

	s.sum()
	beyond := s.sums.enrichments - enrichmentsMax
	for i := 0; beyond > 0; {
		h := &s.History[i]
		if !isEnrichment(h.Kind) {
			i++
			continue
		}
		beyond--
		if h.Hash != "" && s.needsBody(h.ID) {
			i++
			continue
		}
		s.unlistAt(i)
	}
}

// unlistAt takes one entry out of the history. The few in front of it move, not the thousands
// after.
func (s *State) unlistAt(i int) {
	h := s.History[i]
	copy(s.History[1:i+1], s.History[:i])
	s.History = s.History[1:]
	if s.index != nil {
		delete(s.index, h.ID)
	}

	s.sums.enrichments--
	s.sums.bytes -= h.Bytes
	if h.Hash != "" {
		s.dropped = append(s.dropped, h.ID)
	}
	id, ok := ParseUUID(h.ID)
	at, known := s.findUnlisted(id)
	if ok && !known {
		s.Unlisted = slices.Insert(s.Unlisted, at*len(id), id[:]...)
	}
}

// needsBody reports whether something that stands is only in the body of an event.
func (s *State) needsBody(eventID string) bool {
	if p := s.Prompt; p != nil && p.Value.Elsewhere && p.ID == eventID {
		return true
	}
	for _, v := range s.Metadata {
		if v.ID == eventID && rowcode.IsReference(v.Value) {
			return true
		}
	}
	for _, v := range s.Scores {
		if v.ID == eventID && v.Value.Details != nil && v.Value.Details.Reasoned {
			return true
		}
	}

	return false
}

// isUnlisted reports whether unlist took an event out of the history.
func (s *State) isUnlisted(eventID string) bool {
	id, ok := ParseUUID(eventID)
	if !ok {
		return false
	}
	_, found := s.findUnlisted(id)

	return found
}

// findUnlisted returns the place of an id among those of unlisted events.
func (s *State) findUnlisted(id UUID) (place int, found bool) {
	return sort.Find(len(s.Unlisted)/len(id), func(i int) int {
		return bytes.Compare(id[:], s.Unlisted[i*len(id):(i+1)*len(id)])
	})
}

// joinUnlisted adds the unlisted ids of other states.
func (s *State) joinUnlisted(others []*State) {
	all := slices.Collect(slices.Chunk(s.Unlisted, len(UUID{})))
	for _, o := range others {
		all = slices.AppendSeq(all, slices.Chunk(o.Unlisted, len(UUID{})))
	}
	if len(all) == 0 {
		return
	}

	slices.SortFunc(all, bytes.Compare)
	all = slices.CompactFunc(all, bytes.Equal)
	s.Unlisted = bytes.Join(all, nil)
}

// Dropped returns the ids of events whose bodies are no longer kept since the state was read.
func (s *Stored) Dropped() []string { return s.dropped }
