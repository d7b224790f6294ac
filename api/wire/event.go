package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"promptspool/api/wire/jsonscan"
)

// Kind says what an event does to its record.
type Kind string

// The kinds of event. A server answers ResultLater to a kind that it does not know, so
// that a newer sidecar loses nothing. It takes a line without a member of Event for a fault,
// so a new kind has all of them, and needs the right to log: 0.1.0 asks for it.
const (
	KindRequest  Kind = "request"
	KindScore    Kind = "score"
	KindMetadata Kind = "metadata"
	KindPrompt   Kind = "prompt"
	KindGroup    Kind = "group"
	KindSpan     Kind = "span" // its body is that of package otlp
	KindLog      Kind = "log"  // an OpenTelemetry event about a model call, which joins its span
)

// Known reports whether this version folds the kind.
func (k Kind) Known() bool {
	switch k {
	case KindRequest, KindScore, KindMetadata, KindPrompt, KindGroup, KindSpan, KindLog:
		return true
	}
	return false
}

// Scope returns the right that a key needs for an event of this kind.
func (k Kind) Scope() Scope {
	if k == KindScore {
		return ScopeScore
	}
	return ScopeLog
}

// DerivesID reports whether the ids of the kind's events are derived from their bodies, by
// SpanEventID.
func (k Kind) DerivesID() bool { return k == KindSpan || k == KindLog }

// Event is one accepted write: the unit that is spooled, batched, forwarded and folded.
type Event struct {
	ID         string    `json:"id"`          // UUIDv7 of this event
	Kind       Kind      `json:"kind"`        // what it does to the record
	RequestID  string    `json:"request_id"`  // the record that it belongs to
	AcceptedAt time.Time `json:"accepted_at"` // UTC, nanoseconds
	Sidecar    string    `json:"sidecar"`     // the acceptor; a server accepts under its own name

	// The clock of `id` and `accepted_at`, because several processes may share a name.
	// Events with the same `sidecar` and `clock` were accepted in the order of
	// `accepted_at`.
	Clock string `json:"clock,omitempty"`

	// Set in events that a server exports if their order time was before `accepted_at`,
	// because the acceptor's clock was ahead.
	OrderedAt time.Time `json:"ordered_at,omitzero"`

	// The key that the event came with, if that may do less than an app's. A server sets it: what
	// such a key reports is never taken for another key's.
	KeyID string `json:"key_id,omitempty"`

	// The template version that a link in `body` meant when it was accepted; 0 if that was
	// not known.
	Version int `json:"version,omitempty"`

	// Body is the write as it was sent, byte for byte, without secrets and line breaks
	// between tokens.
	Body json.RawMessage `json:"body"`

	// Link is the template link in Body, if the acceptor has read it. It is not sent.
	Link PromptLink `json:"-"`
}

// clockBytesMax bounds Event.Clock, which a server stores with each event.
const clockBytesMax = 64

// AppendLine appends the event as one line of newline-delimited JSON. Body must be valid
// JSON without raw line breaks; its bytes stay the same, unlike with encoding/json, which
// compacts and escapes them.
func (e *Event) AppendLine(b []byte) []byte {
	for _, part := range e.LineParts() {
		b = append(b, part...)
	}
	return b
}

// LineParts returns the line of AppendLine in parts, one of which is Body itself, not a
// copy.
func (e *Event) LineParts() [][]byte {
	head := *e
	head.AcceptedAt, head.OrderedAt, head.Body = e.AcceptedAt.UTC(), e.OrderedAt.UTC(), nil
	// The times were checked, and texts can always be written.
	text, _ := jsonscan.Marshal(head)

	return [][]byte{bytes.TrimSuffix(text, []byte("null}")), e.Body, []byte("}\n")}
}

// ParseEvent reads one line of AppendLine, of this or any other version: it ignores
// unknown members. The event's Body is a copy. Errors name the field at fault.
func ParseEvent(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("not an event: %w", err)
	}

	id, err := ParseID(e.ID)
	if err != nil {
		return e, fmt.Errorf("id %w", err)
	}
	requestID, err := ParseID(e.RequestID)
	if err != nil {
		return e, fmt.Errorf("request_id %w", err)
	}
	e.ID, e.RequestID, e.AcceptedAt = id, requestID, e.AcceptedAt.UTC()
	// Never stricter than any released sidecar: what one has accepted must be delivered.
	switch {
	case e.Kind == "":
		return e, errors.New("kind is missing")
	case !isMoment(e.AcceptedAt):
		return e, errors.New("accepted_at is missing, or not between the years 1 and 9999")
	case !e.OrderedAt.IsZero() && !isMoment(e.OrderedAt):
		return e, errors.New("ordered_at is not between the years 1 and 9999")
	case len(e.Clock) > clockBytesMax:
		return e, fmt.Errorf("clock is longer than %d bytes", clockBytesMax)
	case e.Version < 0:
		return e, errors.New("version must not be negative")
	case len(e.Body) == 0 || e.Body[0] != '{':
		return e, errors.New("body must be a JSON object")
	}

	return e, nil
}

// ResultCode says what became of one event.
type ResultCode string

// The results of an event.
const (
	ResultAccepted  ResultCode = "accepted"  // it is durable now
	ResultDuplicate ResultCode = "duplicate" // it was durable before
	ResultInvalid   ResultCode = "invalid"   // it will never be accepted
	ResultLater     ResultCode = "later"     // it cannot be accepted now: send it again

	// ResultForbidden means that the key may not deliver the event. It has no right to log it, or
	// had ended when it was accepted.
	ResultForbidden ResultCode = "forbidden"
)

// Cause names why an event was refused, where the event itself is not at fault. Readers treat
// a cause that they do not know like none.
type Cause string

// CauseLimit means that the event's record is at a documented limit.
const CauseLimit Cause = "limit"

// Result is the answer for one event.
type Result struct {
	ID     string     `json:"id"` // the event's id
	Code   ResultCode `json:"code"`
	Reason string     `json:"reason,omitempty"`
	Cause  Cause      `json:"cause,omitempty"` // set if the record is at a limit, and the event itself is valid

	// Leaves is set by an archive if something was left to do after some events; see archive.ToDo.
	Leaves bool `json:"-"`
}

// BatchAnswer answers POST /sync/events. Accepted + Duplicate + len(Refused) must equal
// the number of events sent, or the batch counts as not delivered.
type BatchAnswer struct {
	Success   bool     `json:"success"`
	Accepted  int      `json:"accepted"`  // how many events are new and durable
	Duplicate int      `json:"duplicate"` // how many events were there already
	Refused   []Result `json:"refused"`   // with the codes invalid, later and forbidden
}

// Answer sums results up in a BatchAnswer.
func Answer(results []Result) BatchAnswer {
	a := BatchAnswer{Success: true, Refused: []Result{}}
	for _, r := range results {
		switch r.Code {
		case ResultAccepted:
			a.Accepted++
		case ResultDuplicate:
			a.Duplicate++
		default:
			a.Refused = append(a.Refused, r)
		}
	}

	return a
}
