package spooltool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/url"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

// eachEvent calls do for each event that waits (lane "") or that a lane holds.
//
// The sidecar may run or be stopped. An event that cannot be read comes with its Error.
func eachEvent(c *cli.Context, lane string, do func(ops.SpoolEvent) error) error {
	data, running, _, err := spoolTarget(c)
	if err != nil {
		return err
	}

	if running {
		path := "/spool/events?lane=" + url.QueryEscape(lane)
		return ops.ControlLong(c.Context, data, "GET", path, nil, func(r io.Reader) error {
			return decodeEach(r, do)
		})
	}

	_, err = inSpool(data, func(folder *queue.Folder) (any, error) {
		events := waitingEvents(folder.Waiting())
		if lane != "" {
			events = laneEvents(lane, folder.Lane)
		}
		return nil, doEach(c.Context, events, do)
	})
	return err
}

// decodeEach calls do for each event that a running sidecar sends.
func decodeEach(r io.Reader, do func(ops.SpoolEvent) error) error {
	decoder := json.NewDecoder(r)
	for {
		var e ops.SpoolEvent
		// One at a time: a lane may hold more than fits in memory.
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(e)
		}
		if err != nil {
			return err
		}
	}
}

// doEach calls do for each event that is read from files.
func doEach(ctx context.Context, events iter.Seq2[ops.SpoolEvent, error], do func(ops.SpoolEvent) error) error {
	for e, err := range events {
		if err != nil {
			// The others can still be listed, and this one must show.
			e.Data, e.Error = nil, err.Error()
		}
		if err := errors.Join(ctx.Err(), do(e)); err != nil {
			return err
		}
	}
	return nil
}

func waitingEvents(events iter.Seq2[queue.Entry, error]) iter.Seq2[ops.SpoolEvent, error] {
	return func(yield func(ops.SpoolEvent, error) bool) {
		for e, err := range events {
			if !yield(ops.SpoolEvent{Seq: e.Seq, Key: e.Key, At: e.At, Data: e.Data}, err) {
				return
			}
		}
	}
}

func laneEvents(
	name string, read func(queue.Lane) iter.Seq2[queue.LaneEntry, error],
) iter.Seq2[ops.SpoolEvent, error] {
	return func(yield func(ops.SpoolEvent, error) bool) {
		lane, err := queue.ParseLane(name)
		if err != nil {
			yield(ops.SpoolEvent{}, err)
			return
		}

		for e, err := range read(lane) {
			event := ops.SpoolEvent{
				Seq:     e.Seq,
				Key:     e.Key,
				At:      e.At,
				Lane:    name,
				Reason:  e.Reason,
				MovedAt: e.MovedAt,
				Data:    e.Data,
			}
			if e.AtLimit {
				event.Cause = string(wire.CauseLimit)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// Live is the spool of this process, as the control socket shows it.
type Live struct {
	Queue *queue.Queue
	Proxy *proxy.Proxy
}

// Check verifies the spool.
func (l Live) Check(ctx context.Context) (any, error) { return l.Queue.Check(ctx) }

// Events returns the events that wait (lane "") or that a lane holds.
func (l Live) Events(ctx context.Context, lane string) iter.Seq2[ops.SpoolEvent, error] {
	if lane == "" {
		return waitingEvents(l.Queue.Waiting(ctx))
	}
	return laneEvents(lane, l.Queue.Lane)
}

// Replay puts events from the lanes back into the spool.
func (l Live) Replay(ctx context.Context, pick ops.Pick) (int, error) {
	return eachLane(pick, func(lane queue.Lane, matches func(queue.LaneEntry) bool) (int, error) {
		return l.Proxy.Replay(ctx, lane, matches, wire.Secret(pick.Key))
	})
}

// Purge deletes events from the lanes.
func (l Live) Purge(_ context.Context, pick ops.Pick) (int, error) {
	return eachLane(pick, l.Proxy.Purge)
}

// lanesOf returns the lane of this name, or both if there is no name.
func lanesOf(name string) []string {
	if name != "" {
		return []string{name}
	}
	return []string{queue.LaneHeld.String(), queue.LaneDead.String()}
}

// eachLane calls do for each lane that a pick includes, and adds up the results.
func eachLane(
	pick ops.Pick, do func(lane queue.Lane, matches func(queue.LaneEntry) bool) (int, error),
) (total int, err error) {
	picked := pickMatches(pick)
	matches := func(e queue.LaneEntry) bool { return picked(e.Seq) }
	for _, name := range lanesOf(pick.Lane) {
		lane, err := queue.ParseLane(name)
		if err != nil {
			return 0, wire.Invalid(wire.FieldError{Field: "lane", Reason: err.Error()})
		}
		n, err := do(lane, matches)
		// Also on an error: what was moved stays moved.
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// pickMatches returns a function that reports whether a pick includes an event.
func pickMatches(pick ops.Pick) func(seq uint64) bool {
	wanted := map[uint64]bool{}
	for _, seq := range pick.Sequences {
		wanted[seq] = true
	}
	return func(seq uint64) bool { return pick.All || wanted[seq] }
}
