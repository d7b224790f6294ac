package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
	"promptspool/spool/archive/rowcode"
)

// Event is one accepted write, read: what State.Fold merges. Of Request, Score, Metadata, Prompt and GroupID it has at
// most one, and none if its body could not be read: then only the history shows it, and its body is kept.
type Event struct {
	wire.Event
	ArrivedAt time.Time // by the server's clock, UTC
	OrderTime time.Time // UTC; see orderTime, and Stamp for what State.Take makes of it
	Hash      string    // of Body, if the body is to be kept; see HashBody
	Unread    bool      // some field was not as the contract says

	Request  *Request
	Score    *wire.Score
	Metadata map[string]string // as StoredValue, likewise that of Request
	Prompt   *Link
	GroupID  string
}

// Link ties a record to a template version.
type Link struct {
	Name    string `json:"name"`
	Version int    `json:"version,omitempty"` // 0 while unknown
	Label   string `json:"label,omitempty"`
	// InputVariables is an object or nil. A request's link leaves it nil: the request's own body has it.
	InputVariables json.RawMessage `json:"input_variables,omitempty"`
	Elsewhere      bool            `json:"elsewhere,omitempty"` // long ones are only in the body of the link's event
}

// Decode reads an event that arrived now. It takes whatever the body holds that can be read, for a sidecar has answered
// 200 to it: what cannot be read is left out. Its only errors are a body that is no JSON object and ids that are none;
// their text tells a person why the event can never be folded. The result aliases e.Body.
//
// Secrets are masked here as well as where a body was accepted: an older sidecar, its spool, or an export may hold some.
func Decode(e wire.Event, now time.Time) (Event, error) {
	var err error
	if e.ID, err = wire.ParseID(e.ID); err != nil {
		return Event{}, errors.New("id " + err.Error())
	}
	if e.RequestID, err = wire.ParseID(e.RequestID); err != nil {
		return Event{}, errors.New("request_id " + err.Error())
	}
	object, err := wire.ParseObject(e.Body)
	if err != nil {
		return Event{}, errors.New("body: " + wire.AsError(err).Message)
	}
	if masked, found := secrets.Mask(e.Body, object); found {
		e.Body = masked
		if object, err = wire.ParseObject(masked); err != nil {
			return Event{}, errors.New("body: masked, it cannot be read: " + wire.AsError(err).Message)
		}
	}

	e.Sidecar = rowcode.CutBytes(e.Sidecar, wire.SidecarBytesMax)
	e.AcceptedAt = e.AcceptedAt.UTC().Round(0)
	now = now.UTC().Round(0) // without the monotonic clock, which a stored time has not
	d := Event{Event: e, ArrivedAt: now, OrderTime: orderTime(&e, now)}
	d.read(object)
	if long := d.shorten(); long || d.Kind == wire.KindRequest || d.Unread {
		d.Hash = HashBody(e.Body)
	}
	return d, nil
}

func (e *Event) read(object wire.Object) {
	var err error
	switch e.Kind {
	case wire.KindRequest:
		var w wire.RequestWrite
		if w, err = wire.DecodeRequest(object, false); wire.IsLog(object) {
			_, err = wire.DecodeLog(object)
		}
		e.Request = readRequest(object, w)
	case wire.KindScore:
		var w wire.ScoreWrite
		if w, err = wire.DecodeScore(object); !atFault(err, "score") {
			e.Score = &wire.Score{Name: w.Name, Score: w.Score}
		}
	case wire.KindMetadata:
		var w wire.MetadataWrite
		w, err = wire.DecodeMetadata(object)
		e.Metadata = w.Metadata
	case wire.KindPrompt:
		var w wire.PromptWrite
		w, err = wire.DecodePrompt(object)
		e.Prompt = newLink(w.PromptLink)
	case wire.KindGroup:
		var w wire.GroupWrite
		w, err = wire.DecodeGroup(object)
		e.GroupID = w.GroupID
	}
	e.Unread = err != nil
}

// link is the template link that the event makes, or nil.
func (e *Event) link() *Link {
	if e.Request != nil {
		return e.Request.Prompt
	}
	return e.Prompt
}

// Stamp is the event's place among those of its record.
func (e *Event) Stamp() Stamp { return Stamp{At: e.OrderTime, ID: e.ID} }

// newLink is nil if the write names no template.
func newLink(w wire.PromptLink) *Link {
	if w.Name == "" {
		return nil
	}
	return &Link{Name: w.Name, Version: w.Version, Label: w.Label, InputVariables: w.InputVariables}
}

// atFault says whether a decoding error is about a field.
func atFault(err error, field string) bool {
	var e *wire.Error
	return errors.As(err, &e) && slices.ContainsFunc(e.Fields, func(f wire.FieldError) bool { return f.Field == field })
}

// HashBody is the first 16 bytes of a body's SHA-256, in hex: it tells a retry from other content under the same id, and
// a stored body from a damaged one.
func HashBody(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}
