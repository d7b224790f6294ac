package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"promptspool/api/calls/otel"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/secrets"
	"promptspool/spool/archive/rowcode"
)

// Event is one accepted write after decoding: what State.Fold merges. At most one of
// Request, Score, Metadata, Prompt, GroupID, Span and Log is set, but both Score and Log of a
// score that names a span. None is set if the body could not
// be read: then only the history shows the event, and its body is kept. A span also sets
// Request if it is a model call, and Metadata if it is not. So does a log record that stands for
// one.
type Event struct {
	wire.Event
	ArrivedAt time.Time // by the server's clock, UTC
	OrderTime time.Time // UTC; see orderTime, and Stamp for what State.Take makes of it
	Hash      string    // of Body, if the body must be kept; see HashBody
	Unread    bool      // some field does not follow the contract
	Prices    Prices    // by which its call is priced if its log records complete it; may be nil

	Request  *Request
	Score    *wire.Score
	Scores   []wire.Score      // of a span
	Target   *wire.ScoreTarget // what Score is of, if it names no request
	Metadata map[string]string // as StoredValue, as is that of Request
	Prompt   *Link
	GroupID  string
	Span     *Span
	Log      *Log
}

// Link ties a record to a template version.
type Link struct {
	Name    string `json:"name"`
	Version int    `json:"version,omitempty"` // 0 while unknown
	Label   string `json:"label,omitempty"`

	// InputVariables is an object or nil. A request's link leaves it nil, because the
	// request's own body has the variables. Elsewhere is set for long ones, which are
	// only in the body of the link's event.
	InputVariables json.RawMessage `json:"input_variables,omitempty"`
	Elsewhere      bool            `json:"elsewhere,omitempty"`
}

// Decode reads an event that has just arrived. It takes whatever can be read of the body
// and leaves out the rest, because a sidecar has already answered 200 to it. It rejects
// only bodies that are not JSON objects and malformed ids; the error's text tells a
// person why the event can never be folded. The result aliases e.Body.
//
// Secrets are masked here as well as at acceptance: an older sidecar, its spool or an
// export may still contain some.
func Decode(e wire.Event, now time.Time) (Event, error) {
	var err error
	e.ID, err = wire.ParseID(e.ID)
	if err != nil {
		return Event{}, errors.New("id " + err.Error())
	}
	e.RequestID, err = wire.ParseID(e.RequestID)
	if err != nil {
		return Event{}, errors.New("request_id " + err.Error())
	}
	object, err := wire.ParseObject(e.Body)
	if err != nil {
		return Event{}, errors.New("body: " + wire.AsError(err).Message)
	}

	if masked, found := secrets.Mask(e.Body, object); found {
		e.Body = masked
		object, err = wire.ParseObject(masked)
		if err != nil {
			return Event{}, errors.New(
				"body: unreadable after masking its secrets: " + wire.AsError(err).Message)
		}
	}

	// Stored times have no monotonic clock, so ours must not have one either.
	now = now.UTC().Round(0)
	e.AcceptedAt = e.AcceptedAt.UTC().Round(0)
	// The state repeats the name for each event, so its length is not left to the sidecar.
	e.Sidecar = rowcode.CutBytes(e.Sidecar, wire.SidecarBytesMax)

	d := Event{
		Event:     e,
		ArrivedAt: now,
		OrderTime: orderTime(&e, now),
	}
	d.read(object)

	// Other bodies are not kept: what they say is in the state.
	if long := d.shorten(); long || d.Kind == wire.KindRequest || d.Kind.DerivesID() || d.Unread {
		d.Hash = HashBody(e.Body)
	}

	return d, nil
}

// read fills in what the body says, by the event's kind.
func (e *Event) read(object wire.Object) {
	var err error
	switch e.Kind {
	case wire.KindRequest:
		// A log-request is read with the same fields. Its own decoder has the
		// last word on whether it follows the contract.
		var w wire.RequestWrite
		w, err = wire.DecodeRequest(object, false, e.AcceptedAt)
		if wire.IsLog(object) {
			_, err = wire.DecodeLog(object, e.AcceptedAt)
		}
		e.Request = readRequest(object, w)
	case wire.KindScore:
		// A fault in another field does not cost the score.
		var w wire.ScoreWrite
		w, err = wire.DecodeScore(object)
		if !concernsField(err, "score") && !concernsField(err, "value") {
			e.Score = &w.Score
		}
		e.Target = w.Target
		if e.Target != nil {
			// By the target as it is stored: rules may have redacted it.
			e.RequestID = w.RequestID
		}
		// It waits for its span as log records do.
		if e.Target != nil && e.Target.SpanID != "" {
			e.Log = &Log{TraceID: e.Target.TraceID, SpanID: e.Target.SpanID}
		}
	case wire.KindMetadata:
		var w wire.MetadataWrite
		w, err = wire.Decode[wire.MetadataWrite](object)
		e.Metadata = w.Metadata
	case wire.KindPrompt:
		var w wire.PromptWrite
		w, err = wire.Decode[wire.PromptWrite](object)
		e.Prompt = newLink(w.Link())
	case wire.KindGroup:
		var w wire.GroupWrite
		w, err = wire.Decode[wire.GroupWrite](object)
		e.GroupID = w.GroupID
	case wire.KindSpan:
		// A traced model call is a request too, as if it had been logged.
		var read otel.Span
		e.Span, read = readSpan(object)
		e.Request, e.Scores = readTraced(&read), read.Scores
		if e.Request == nil {
			e.Metadata = read.Metadata
		}
	case wire.KindLog:
		e.Log = readLog(object)
		e.Scores, e.Metadata = otel.Evaluation(e.Body)
		// Until its span comes, if ever, a log record with the details of a call is the call.
		if otel.HasDetails(object) {
			span, read := readSpan(object)
			e.Request = readTraced(&read)
			if e.Request != nil {
				span.IsLog, e.Span = true, span
			}
		}
	}

	e.Unread = err != nil
}

// TemplateLink returns the template link that the event makes, or nil.
func (e *Event) TemplateLink() *Link {
	if e.Request != nil {
		return e.Request.Prompt
	}

	return e.Prompt
}

// Stamp returns the event's place among those of its record.
func (e *Event) Stamp() Stamp { return Stamp{At: e.OrderTime, ID: e.ID} }

// newLink returns nil if the write names no template.
func newLink(w wire.PromptLink) *Link {
	if w.Name == "" {
		return nil
	}

	return &Link{
		Name:           w.Name,
		Version:        w.Version,
		Label:          w.Label,
		InputVariables: w.InputVariables,
	}
}

// concernsField reports whether a decoding error is about a field.
func concernsField(err error, field string) bool {
	var e *wire.Error
	isField := func(f wire.FieldError) bool { return f.Field == field }
	return errors.As(err, &e) && slices.ContainsFunc(e.Fields, isField)
}

// HashBody returns the first 16 bytes of a body's SHA-256, in hex. It tells a retry from
// other content under the same id, and a stored body from a damaged one.
func HashBody(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

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
			KeyID:      h.Key,
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
	scores   map[string]wire.ScoreSlot
	metadata map[string]map[string]string
	stamps   []Stamp // of the events in metadata
}

func (s *State) effects() effects {
	left := effects{scores: make(map[string]wire.ScoreSlot), metadata: make(map[string]map[string]string)}
	for slot, score := range s.Scores {
		left.scores[score.ID] = slot
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
		if slot, ok := left.scores[h.ID]; ok {
			s.Scores[slot].Value.Of(slot).Body(body)
		}

	case wire.KindMetadata:
		body["metadata"] = left.metadata[h.ID]
		// It must be an empty object, not null.
		if left.metadata[h.ID] == nil {
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
			w, _ := wire.Decode[wire.GroupWrite](object)
			groups = slices.DeleteFunc(groups, func(g string) bool { return g == w.GroupID })
		}
	}

	return groups
}
