package archive

import (
	"encoding/json"
	"slices"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
)

// Mask masks the secrets in the bodies of a record and in what was derived from its
// events. It is an EditFunc.
func (s *State) Mask(bodies map[string]json.RawMessage) (changed bool, err error) {
	// Long values are restored below, to be masked whole. At the
	// end the state only refers to them again.
	defer func() { s.refer(bodies) }()

	for i := range s.History {
		h := &s.History[i]
		masked, found := MaskBody(bodies[h.ID])
		if !found {
			continue
		}
		bodies[h.ID] = masked
		h.Bytes, h.Hash = len(masked), HashBody(masked)
		changed = true

		// An excerpt may end within a secret, which then no longer looks like one.
		if s.Request != nil && h.ID == s.Request.ID {
			call := calls.Read(masked)
			s.Request.Value.InputExcerpt, s.Request.Value.OutputExcerpt = call.Excerpts()
		}
		// So may the name of a span, of which the state has only the beginning.
		if s.Span != nil && h.ID == s.Span.ID {
			if body, err := wire.ParseObject(masked); err == nil {
				span, _ := readSpan(body)
				s.Span.Value.Name = span.Name
			}
		}
	}

	// References are to values as they were before masking, so they no longer match.
	s.restore(bodies, func(string, string, string) bool { return true })

	// Ids look like anything, in the form in which these are stored.
	unlisted := s.Unlisted
	s.Unlisted = nil
	derived, err := json.Marshal(s)
	s.Unlisted = unlisted
	if err != nil {
		return false, err
	}
	masked, found := MaskBody(derived)
	if !found {
		return changed, nil
	}

	*s = State{}
	if err := json.Unmarshal(masked, s); err != nil {
		return false, err
	}
	s.Unlisted = unlisted
	// Groups whose ids differed in a secret alone are one
	// now, and the order may be another.
	slices.Sort(s.GroupIDs)
	s.GroupIDs = slices.Compact(s.GroupIDs)

	return true, nil
}

// MaskBody masks the secrets of a JSON object. In anything else it finds none.
func MaskBody(body []byte) (masked []byte, found bool) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return body, false
	}

	return secrets.Mask(body, object)
}
