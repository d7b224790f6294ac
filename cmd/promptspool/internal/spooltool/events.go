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
