package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"
)

// Spool is what the control socket gives access to of a sidecar's spool. Its methods may
// be called concurrently, and end with ctx.
type Spool interface {
	// Check reads everything and returns a report, which is encoded as JSON.
	Check(ctx context.Context) (any, error)

	// Events yields the events of a lane, or with lane "" those waiting in the spool.
	Events(ctx context.Context, lane string) iter.Seq2[SpoolEvent, error]

	// Replay moves the picked events of a lane back to the spool, and returns how many.
	// They are durable there before they leave the lane.
	Replay(ctx context.Context, p Pick) (int, error)

	// Purge deletes the picked events of a lane, and returns how many.
	Purge(ctx context.Context, p Pick) (int, error)
}

// SpoolEvent is an event as a spool has it. Instead of the key, it holds the key's
// number.
type SpoolEvent struct {
	Seq     uint64    `json:"sequence"`
	Key     uint32    `json:"key_number"`
	At      time.Time `json:"spooled_at"`
	Lane    string    `json:"lane,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Cause   string    `json:"cause,omitempty"` // "limit" if the event's record is at a limit
	MovedAt time.Time `json:"moved_at,omitzero"`
	Data    []byte    `json:"data"`            // the event's line, as it is on disk
	Error   string    `json:"error,omitempty"` // why it cannot be read; Data is empty then
}

// Pick selects events of a lane.
type Pick struct {
	Lane      string   `json:"lane"` // "" for every lane
	Sequences []uint64 `json:"sequences,omitempty"`
	All       bool     `json:"all,omitempty"`

	// Key is, for Replay, the secret key that replaces those of the events.
	Key string `json:"key,omitempty"`
}

// Moved is the answer to a Replay or a Purge.
type Moved struct {
	Events int `json:"events"`
}

// spoolRoutes are the control socket's routes of a spool.
func spoolRoutes(s Spool) []route {
	return []route{
		{"GET", "/spool/check", func(ctx *fasthttp.RequestCtx) (any, error) { return s.Check(ctx) }},
		{"GET", "/spool/events", func(ctx *fasthttp.RequestCtx) (any, error) {
			streamEvents(ctx, s)
			return nil, nil
		}},
		{"POST", "/spool/replay", moving(s, Spool.Replay)},
		{"POST", "/spool/purge", moving(s, Spool.Purge)},
	}
}

// moving returns a handler that moves the events that the body selects.
func moving(s Spool, move func(Spool, context.Context, Pick) (int, error)) handler {
	return posted(func(ctx context.Context, p Pick) (any, error) {
		n, err := move(s, ctx, p)
		return Moved{n}, err
	})
}

// streamEvents answers with one event a line. ?lane= names a lane.
func streamEvents(ctx *fasthttp.RequestCtx, s Spool) {
	lane := string(ctx.QueryArgs().Peek("lane"))
	ctx.SetContentType("application/x-ndjson")

	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		encoder := json.NewEncoder(w)

		// This runs in a goroutine of fasthttp's own, where a panic would end the
		// process. An error after the events streamed so far keeps readers from taking
		// them for all.
		defer func() {
			if p := recover(); p != nil {
				slog.Error("streaming the spool's events panicked",
					"panic", p, "stack", string(debug.Stack()))
				_ = encoder.Encode(SpoolEvent{Error: panicMessage})
			}
		}()

		// The context of the request ends before the stream does.
		for e, err := range s.Events(context.Background(), lane) {
			if err != nil {
				e.Data, e.Error = nil, err.Error()
			}
			if encoder.Encode(e) != nil {
				return // the client has disconnected
			}
		}
	})
}
