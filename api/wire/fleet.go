package wire

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// Heartbeat is what a sidecar tells the server of itself: at start, when the server is back, and every HeartbeatEvery.
type Heartbeat struct {
	ID        string    `json:"id"` // a UUIDv7 that the sidecar made once and keeps in its data folder
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`

	BacklogEvents int64   `json:"backlog_events"` // events that wait in its spool
	BacklogBytes  int64   `json:"backlog_bytes"`
	OldestSeconds float64 `json:"oldest_seconds"` // age of the oldest event in its spool; 0 without any
	HeldEvents    int64   `json:"held_events"`    // events whose key the server refuses
	DeadLetters   int64   `json:"dead_letters"`   // events whose content the server refuses
	LostEvents    int64   `json:"lost_events"`    // events lost by damage to its disk, since it was started
	// ClockAhead is by how many seconds its clock is ahead of the server's; null while it does not know.
	ClockAhead *float64 `json:"clock_ahead_seconds"`
}

const (
	// HeartbeatEvery is how often a sidecar tells of itself.
	HeartbeatEvery = 15 * time.Second
	// AliveFor is how long a sidecar counts as alive after it was heard.
	AliveFor = 3 * HeartbeatEvery
)

// FleetSidecar is what the server knows of a sidecar.
type FleetSidecar struct {
	Heartbeat
	LastSeen time.Time `json:"last_seen"` // by the server's clock
	Alive    bool      `json:"alive"`     // it was heard from within 45 seconds
}

// Fleet answers GET /sync/fleet: the account's sidecars, by name and id. One that was not heard for a month is forgotten.
type Fleet struct {
	Success bool           `json:"success"`
	Items   []FleetSidecar `json:"items"`
}

// DecodeHeartbeat reads the body of POST /sync/heartbeat. Members that it does not know are those of a newer sidecar.
func DecodeHeartbeat(body []byte) (Heartbeat, error) {
	var h Heartbeat
	if err := json.Unmarshal(body, &h); err != nil {
		return h, Invalid(FieldError{"body", "must be a heartbeat: " + err.Error()})
	}
	id, err := ParseID(h.ID)
	if err != nil {
		return h, Invalid(FieldError{"id", "must be a UUIDv7"})
	}
	h.ID = id
	for field, s := range map[string]string{"name": h.Name, "version": h.Version} {
		if s == "" || len(s) > heartbeatTextMax || !utf8.ValidString(s) {
			return h, Invalid(FieldError{field, "must be a text of 1 to " + strconv.Itoa(heartbeatTextMax) + " bytes"})
		}
	}
	if !isMoment(h.StartedAt) {
		return h, Invalid(FieldError{"started_at", "must be a time"})
	}
	h.StartedAt = h.StartedAt.UTC()
	if h.BacklogEvents < 0 || h.BacklogBytes < 0 || h.OldestSeconds < 0 || h.HeldEvents < 0 || h.DeadLetters < 0 || h.LostEvents < 0 {
		return h, Invalid(FieldError{"backlog_events", "and the other counts must not be negative"})
	}
	return h, nil
}

const heartbeatTextMax = 255
