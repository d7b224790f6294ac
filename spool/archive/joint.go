package archive

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls/otel"
	"promptspool/api/wire"
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
	parts := []*Record{r}
	of := r.State.Logs
	if same := r.State.Same; same != nil && same.Words != "" {
		other, err := u.AddLoaded(u.loader, u.account, same.Words)
		if err != nil {
			return err
		}
		parts = append(parts, other)
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

	body, err := u.composed(parts)
	if err != nil {
		return err
	}
	id := r.ID.joint()
	r.State.Joint = &Joint{id.String(), HashBody(body), of}
	if r.hadJoint {
		r.Replaced = with(r.Replaced, id, json.RawMessage(body))
	} else {
		r.Bodies = append(r.Bodies, PackedBody{id, u.loader.Pack(body)})
		// The record that stands for the call may ask.
		r.fresh = with(r.fresh, id.String(), json.RawMessage(body))
	}
	r.touch()

	return nil
}

// composed returns the joint body of records.
func (u *uniting) composed(records []*Record) (body json.RawMessage, err error) {
	for _, r := range records {
		part := r.joined
		if part == nil {
			bodies, err := u.loader.Bodies(r)
			if err != nil {
				return nil, err
			}
			part = r.State.ShownBody(bodies)
		}
		body = append(append(body, ','), part...)
	}
	body[0] = '['

	return append(body, ']'), nil
}

// joinBytesMax bounds the log records that are joined to a span: with each it is written again.
// Evaluations have as much again, so that messages keep no score out.
const joinBytesMax = 4 << 20 // of the bodies

// join reads a span again with the messages in its log records.
func (u *uniting) join(r *Record, with []*Record) error {
	if r.State.Span == nil || r.State.Span.Value.IsLog {
		return nil
	}
	var of strings.Builder
	bytes := 0
	with = slices.DeleteFunc(slices.Clone(with), func(log *Record) bool { return log.State.Target != nil })
	for _, log := range with {
		for i := range log.State.History {
			of.WriteString(log.State.History[i].Hash)
		}
		bytes += log.State.Bytes()
	}
	if len(with) > 0 {
		of.WriteString(r.State.entry(r.State.Span.ID).Hash)
	}
	digest := ""
	if of.Len() > 0 && r.State.Bytes()+min(bytes, 2*joinBytesMax) <= RecordBytesMax/2 {
		digest = HashBody([]byte(of.String()))
	}
	was := r.State.Logs
	if digest == was || was == "" && !slices.ContainsFunc(with, func(log *Record) bool { return !log.State.Joined }) {
		return nil
	}

	bodies, err := u.loader.Bodies(r)
	if err != nil {
		return err
	}
	body := bodies[r.State.Span.ID]
	if digest != "" {
		logs, err := u.logs(with)
		if err != nil {
			return err
		}
		body = otel.Join(body, logs)
	}
	if e, ok := r.State.SpanEvent(body); ok {
		r.readJoined(&e, u.prices)
	}
	r.State.Logs, r.joined = digest, body
	if digest == "" {
		r.joined = nil
	}
	r.touch()

	return nil
}

// logs returns the bodies of log records, as many as are joined.
func (u *uniting) logs(with []*Record) (logs []json.RawMessage, err error) {
	// The sizes of evaluations, and of others.
	sizes := map[bool]int{}
	for _, log := range with {
		bodies, err := u.loader.Bodies(log)
		if err != nil {
			return nil, err
		}
		for _, h := range log.State.History {
			body := bodies[h.ID]
			object, err := wire.ParseObject(body)
			if err != nil || !object.Has("log") {
				continue
			}
			evaluates := otel.Evaluates(body)
			if sizes[evaluates] += len(body); sizes[evaluates] <= joinBytesMax {
				logs = append(logs, body)
			}
		}
	}

	return logs, nil
}

// readJoined takes over what a span says together with its log records.
func (r *Record) readJoined(e *Event, prices Prices) {
	old := r.State.Request
	if old != nil && !old.Value.Traced {
		// The call was logged, which says more.
		return
	}
	r.State.Request = nil
	if e.Request != nil {
		r.State.Request = &Stamped[Request]{r.State.Span.Stamp, *e.Request}
		r.State.Request.Value.settle(old, prices, e.OrderTime)
	}

	r.State.sums.known = false
}

// settle sets the version of the template, which is known from before, and the price.
func (r *Request) settle(old *Stamped[Request], prices Prices, at time.Time) {
	if old != nil && r.Prompt != nil && old.Value.Prompt != nil && r.Prompt.Name == old.Value.Prompt.Name {
		r.Prompt = old.Value.Prompt
	}
	if prices == nil && old != nil {
		r.Price, r.PriceGiven, r.TablePrice = old.Value.Price, old.Value.PriceGiven, old.Value.TablePrice
		return
	}
	r.SetPrice(prices, at)
}
