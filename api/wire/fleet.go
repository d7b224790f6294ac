package wire

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// Heartbeat is a sidecar's report of its state. It sends one at start, when the server is
// back, and every HeartbeatEvery.
type Heartbeat struct {
	ID        string    `json:"id"`      // a UUIDv7 that the sidecar made once and keeps in its data folder
	Name      string    `json:"name"`    // the sidecar's name
	Version   string    `json:"version"` // the sidecar's version of promptspool
	StartedAt time.Time `json:"started_at"`

	BacklogEvents int64   `json:"backlog_events"` // events waiting in its spool
	BacklogBytes  int64   `json:"backlog_bytes"`
	OldestSeconds float64 `json:"oldest_seconds"` // age of the oldest event in its spool; 0 without any
	HeldEvents    int64   `json:"held_events"`    // events whose key the server rejects
	DeadLetters   int64   `json:"dead_letters"`   // events whose content the server rejects
	LostEvents    int64   `json:"lost_events"`    // events lost by damage to its disk, since it started

	// Dropped is how many dead letters of records at a limit were dropped for lack of space,
	// since the sidecar started.
	Dropped int64 `json:"dead_letters_dropped,omitempty"`

	DroppedToday []Drop `json:"dropped_today,omitempty"` // of exporters
	Stopped      bool   `json:"stopped,omitempty"`       // it stops after this report

	// ClockAhead is how many seconds its clock is ahead of the server's; null while that
	// is unknown.
	ClockAhead *float64 `json:"clock_ahead_seconds"`
}

const (
	// HeartbeatEvery is the interval between a sidecar's heartbeats.
	HeartbeatEvery = 15 * time.Second

	// AliveFor is how long a sidecar counts as alive after a heartbeat.
	AliveFor = 3 * HeartbeatEvery

	// heartbeatTextMax bounds a sidecar's name and version.
	heartbeatTextMax = 255

	// heartbeatBytesMax bounds a heartbeat, with the texts that are only shown.
	heartbeatBytesMax = 16 << 10
)

// TimeHeader is a header of every answer: the answering process's time, in RFC 3339 with
// nanoseconds. A sidecar uses it to measure how far its clock is from the server's.
const TimeHeader = "Promptspool-Time"

// FleetSidecar is what the server knows about a sidecar.
type FleetSidecar struct {
	Heartbeat
	LastSeen time.Time `json:"last_seen"` // by the server's clock
	Alive    bool      `json:"alive"`     // it was heard from within 45 seconds

	KeyID    string   `json:"key_id,omitempty"`    // of the key by which it was last heard from
	Needs    []string `json:"needs,omitempty"`     // why it needs attention, and what to do
	SameName bool     `json:"same_name,omitempty"` // another one has its name: only the ids differ
}

// Fleet answers GET /sync/fleet: the account's sidecars, by name and id. A sidecar that
// was not heard from for a month is removed.
type Fleet struct {
	Success bool           `json:"success"`
	Items   []FleetSidecar `json:"items"` // the project's sidecars, by name

	DroppedToday []Drop `json:"dropped_today,omitempty"` // of exporters, by this server itself
}

// InNeed returns how many sidecars need attention.
func (f *Fleet) InNeed() (n int) {
	for _, s := range f.Items {
		if len(s.Needs) > 0 {
			n++
		}
	}
	return n
}

// DecodeHeartbeat reads the body of POST /sync/heartbeat. It ignores unknown members,
// which newer sidecars may send.
func DecodeHeartbeat(body []byte) (Heartbeat, error) {
	var h Heartbeat
	if len(body) > heartbeatBytesMax {
		return h, Errorf(CodeTooLarge, "A heartbeat has at most %d bytes.", heartbeatBytesMax)
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return h, Invalid(FieldError{Field: "body", Reason: "must be a heartbeat: " + err.Error()})
	}

	id, err := ParseID(h.ID)
	if err != nil {
		return h, Invalid(FieldError{Field: "id", Reason: "must be a UUIDv7"})
	}
	h.ID = id

	for field, s := range map[string]string{"name": h.Name, "version": h.Version} {
		if s == "" || len(s) > heartbeatTextMax || !utf8.ValidString(s) {
			reason := "must be a string of 1 to " + strconv.Itoa(heartbeatTextMax) + " bytes"
			return h, Invalid(FieldError{Field: field, Reason: reason})
		}
	}

	if !isMoment(h.StartedAt) {
		return h, Invalid(FieldError{Field: "started_at", Reason: "must be a time"})
	}
	// Stored and shown as the server's own times are.
	h.StartedAt = h.StartedAt.UTC()

	// Together, because a sidecar that counts below zero is broken anyhow.
	least := min(h.BacklogEvents, h.BacklogBytes, h.HeldEvents, h.DeadLetters, h.Dropped, h.LostEvents)
	if least < 0 || h.OldestSeconds < 0 {
		return h, Invalid(FieldError{Field: "backlog_events", Reason: "and the other counts must not be negative"})
	}

	return h, nil
}

// Drop counts things of one kind that OTLP exporters sent since midnight (UTC) and that were not kept.
type Drop struct {
	Count int64  `json:"count"`
	What  string `json:"what"` // one of them, such as log record
	Why   string `json:"why"`  // the reason, with what to do
}
