package archive

import (
	"encoding/json"
	"slices"

	"promptspool/api/wire/jsonscan"
)

// Joint is the body of a record in which searches look, in place of its event's.
//
// It is a list, which no event's body is: the body of the event with the log records of its span, and
// that of another report of its call, if that has an input or an output and the first has none.
type Joint struct {
	ID   string `json:"id"`   // of its body, among those of the record's events
	Hash string `json:"hash"` // as that of an Entry
	Of   string `json:"of"`   // a hash of what it is made of
}

func (s *State) jointID() string {
	if s.Joint == nil {
		return ""
	}
	return s.Joint.ID
}

// firstOf returns the first body of a joint one.
func firstOf(joint json.RawMessage) json.RawMessage {
	for _, first := range jsonscan.Elements(joint) {
		return first
	}
	return nil
}

// Searched returns the entry of the body in which searches look, if the record has a request.
func (s *State) Searched() (h Entry, ok bool) {
	if s.Joint != nil {
		return Entry{Stamp: Stamp{ID: s.Joint.ID}, Hash: s.Joint.Hash}, true
	}
	i := s.winner()
	if i < 0 {
		return h, false
	}

	return s.History[i], true
}

// ReadBodies returns the bodies kept of the record's events, by event. read reads one that is stored.
func (r *Record) ReadBodies(read func(Entry) ([]byte, error)) (map[string]json.RawMessage, error) {
	return r.State.Bodies(false, func(h Entry) ([]byte, error) {
		id, _ := ParseUUID(h.ID)
		if body, came := r.fresh[h.ID]; came {
			return body, nil
		}
		if body, replaced := r.Replaced[id]; replaced {
			return body, nil
		}
		return read(h)
	})
}

// compose makes the joint body of a record again if a part of it has changed.
func (u *uniting) compose(r *Record) error {
	if r.Removed || r.State.Request == nil {
		return nil
	}
	var other *Record
	of := r.State.Logs
	if same := r.State.Same; same != nil && same.Words != "" {
		var err error
		if other, err = u.AddLoaded(u.loader, u.account, same.Words); err != nil {
			return err
		}
		if h, ok := other.State.Searched(); ok {
			of += " " + h.Hash
		}
	}
	if i := r.State.winner(); of != "" && i >= 0 {
		of = HashBody([]byte(of + " " + r.State.History[i].Hash))
	}
	switch old := r.State.Joint; {
	case old == nil && of == "" || old != nil && old.Of == of:
		return nil
	case of == "":
		r.State.Joint = nil
		r.touch()
		return nil
	}

	body, err := u.composed(r, other)
	if err != nil {
		return err
	}
	id := r.ID.joint()
	if r.State.Joint = (&Joint{id.String(), HashBody(body), of}); r.hadJoint {
		r.Replaced = with(r.Replaced, id, json.RawMessage(body))
	} else {
		r.Bodies = append(r.Bodies, PackedBody{id, u.loader.Pack(body)})
		r.fresh = with(r.fresh, id.String(), json.RawMessage(body)) // the record that stands for the call may ask
	}
	r.touch()

	return nil
}

func (u *uniting) composed(r, other *Record) (body json.RawMessage, err error) {
	own, err := u.bodies(r)
	if err != nil {
		return nil, err
	}
	first := r.joined
	if first == nil {
		first = r.State.ShownBody(own)
	}
	body = slices.Concat([]byte("["), first)
	if other == nil {
		return append(body, ']'), nil
	}

	bodies, err := u.bodies(other)
	if err != nil {
		return nil, err
	}
	second := other.joined
	if second == nil {
		second = other.State.ShownBody(bodies)
	}

	return append(append(append(body, ','), second...), ']'), nil
}
