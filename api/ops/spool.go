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

	"promptspool/api/wire"
)

// Spool is what the control socket gives access to of a sidecar's spool. Its methods may be called concurrently, and
// end with ctx.
type Spool interface {
	// Check reads everything and reports; the report is encoded as JSON.
	Check(ctx context.Context) (any, error)
	// Events yields what waits in the spool ("") or lies in a lane (its name).
	Events(ctx context.Context, lane string) iter.Seq2[SpoolEvent, error]
	// Replay appends what is picked of a lane to the spool, durably, before it leaves the lane. It returns how many.
	Replay(ctx context.Context, p Pick) (int, error)
	// Purge removes what is picked of a lane for good. It returns how many.
	Purge(ctx context.Context, p Pick) (int, error)
}

// SpoolEvent is an event as it lies in a spool. It holds no key, only its number.
type SpoolEvent struct {
	Seq     uint64    `json:"sequence"`
	Key     uint32    `json:"key_number"`
	At      time.Time `json:"spooled_at"`
	Lane    string    `json:"lane,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	MovedAt time.Time `json:"moved_at,omitzero"`
	Data    []byte    `json:"data"`            // the event's line, as it is on disk
	Error   string    `json:"error,omitempty"` // why it cannot be read; Data is empty then
}

// Pick says which events of a lane are meant.
type Pick struct {
	Lane      string   `json:"lane"` // a lane's name, or "" for every lane
	Sequences []uint64 `json:"sequences,omitempty"`
	All       bool     `json:"all,omitempty"`
	Key       string   `json:"key,omitempty"` // of Replay, a secret: under which key they go out; "" for their own
}

// Moved answers Replay and Purge.
type Moved struct {
	Events int `json:"events"`
}

// spoolRoutes are the control socket's routes of a spool.
func spoolRoutes(s Spool) []route {
	moved := func(move func(context.Context, Pick) (int, error)) handler {
		return func(ctx *fasthttp.RequestCtx) (any, error) {
			var p Pick
			if err := json.Unmarshal(ctx.PostBody(), &p); err != nil {
				return nil, wire.Errorf(wire.CodeBadJSON, "The body does not say which events: %v", err)
			}
			n, err := move(ctx, p)
			return Moved{n}, err
		}
	}
	routes := []route{
		{"GET", "/spool/check", func(ctx *fasthttp.RequestCtx) (any, error) { return s.Check(ctx) }},
		{"GET", "/spool/events", func(ctx *fasthttp.RequestCtx) (any, error) { streamEvents(ctx, s); return nil, nil }},
	}
	if s == nil {
		for i := range routes {
			routes[i].handle = noSpool
		}
		return append(routes, route{"POST", "/spool/replay", noSpool}, route{"POST", "/spool/purge", noSpool})
	}
	return append(routes, route{"POST", "/spool/replay", moved(s.Replay)}, route{"POST", "/spool/purge", moved(s.Purge)})
}

// noSpool answers for a process that has none.
func noSpool(*fasthttp.RequestCtx) (any, error) {
	return nil, wire.Errorf(wire.CodeNotImplemented, "This process has no spool; a sidecar does. Give the sidecar's data folder as --data.")
}

// streamEvents answers one event a line. ?lane= names a lane.
func streamEvents(ctx *fasthttp.RequestCtx, s Spool) {
	lane := string(ctx.QueryArgs().Peek("lane"))
	ctx.SetContentType("application/x-ndjson")
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		encoder := json.NewEncoder(w)
		// This runs in a goroutine of fasthttp's own, where a panic would end the process. What was streamed so far is followed by
		// an error, so that nobody takes it for all.
		defer func() {
			if p := recover(); p != nil {
				slog.Error("streaming the spool's events panicked", "panic", p, "stack", string(debug.Stack()))
				_ = encoder.Encode(SpoolEvent{Error: "Something failed inside promptspool; its log says what."})
			}
		}()
		for e, err := range s.Events(context.Background(), lane) { // ctx ends before the stream does
			if err != nil {
				e.Data, e.Error = nil, err.Error()
			}
			if encoder.Encode(e) != nil {
				return // whoever asked has gone
			}
		}
	})
}
