package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Heartbeat is a sidecar's report of its state. It sends one at start, when the server is
// back, and every HeartbeatEvery.
type Heartbeat struct {
	ID        string    `json:"id"` // a UUIDv7 that the sidecar made once and keeps in its data folder
	Name      string    `json:"name"`
	Version   string    `json:"version"`
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

	// DroppedToday is what OTLP exporters sent since midnight (UTC) and was not kept.
	DroppedToday DropCounts `json:"dropped_today,omitzero"`

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
)

// TimeHeader is a header of every answer: the answering process's time, in RFC 3339 with
// nanoseconds. A sidecar uses it to measure how far its clock is from the server's.
const TimeHeader = "Promptspool-Time"

// FleetSidecar is what the server knows about a sidecar.
type FleetSidecar struct {
	Heartbeat
	LastSeen time.Time `json:"last_seen"` // by the server's clock
	Alive    bool      `json:"alive"`     // it was heard from within 45 seconds
}

// Fleet answers GET /sync/fleet: the account's sidecars, by name and id. A sidecar that
// was not heard from for a month is removed.
type Fleet struct {
	Success bool           `json:"success"`
	Items   []FleetSidecar `json:"items"`

	// DroppedToday is what exporters sent to this server itself, and was not kept.
	DroppedToday DropCounts `json:"dropped_today,omitzero"`
}

// DecodeHeartbeat reads the body of POST /sync/heartbeat. It ignores unknown members,
// which newer sidecars may send.
func DecodeHeartbeat(body []byte) (Heartbeat, error) {
	var h Heartbeat
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

// DropCounts counts what OpenTelemetry exporters sent since midnight (UTC) and was not kept.
type DropCounts struct {
	LogRecords int64 `json:"log_records"` // not about model calls
	Spans      int64 `json:"spans"`       // of HTTP, database and similar instrumentation
	Metrics    int64 `json:"metrics"`     // requests with metrics
	Rejected   int64 `json:"rejected"`    // spans and log records with a fault
	GRPC       int64 `json:"grpc"`        // connections that spoke gRPC
}

// Add adds other counts of the same day.
func (d *DropCounts) Add(other DropCounts) {
	d.LogRecords += other.LogRecords
	d.Spans += other.Spans
	d.Metrics += other.Metrics
	d.Rejected += other.Rejected
	d.GRPC += other.GRPC
}

// Sum adds up the counts.
func (d DropCounts) Sum() int64 { return d.LogRecords + d.Spans + d.Metrics + d.Rejected + d.GRPC }

// DropCount is one of DropCounts, in words.
type DropCount struct {
	N            int64
	Noun, Reason string
}

// List lists the counts that are not zero.
func (d DropCounts) List() (all []DropCount) {
	for _, c := range []DropCount{
		{d.LogRecords, "log record", "not about model calls"},
		{d.Spans, "span", "HTTP, database or similar instrumentation; --otlp-keep all keeps them"},
		{d.Metrics, "metrics export", "only spans and log records are kept; OTEL_METRICS_EXPORTER=none stops them"},
		{d.Rejected, "faulty item", "the exporter was told why"},
		{d.GRPC, "gRPC connection", "gRPC is not served; set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"},
	} {
		if c.N > 0 {
			all = append(all, c)
		}
	}

	return all
}

// String returns a count in a sentence without its end.
func (c DropCount) String() string {
	plural := "s"
	if c.N == 1 {
		plural = ""
	}

	return fmt.Sprintf("%d %s%s dropped: %s", c.N, c.Noun, plural, c.Reason)
}
