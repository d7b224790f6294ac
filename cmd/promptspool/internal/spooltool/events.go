package spooltool

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/print"
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

func exportSpool(c *cli.Context) error {
	err := export(c, func(do func(ops.SpoolEvent) error) error { return eachEvent(c, "", do) })
	if err == nil {
		err = lostInFolder(c)
	}
	return err
}

// lostInFolder returns an error if the disk lost events of a stopped sidecar. A running one counts and
// logs them.
func lostInFolder(c *cli.Context) error {
	data, running, _, err := spoolTarget(c)
	if err != nil || running {
		return err
	}

	status, err := folderStatus(c, data)
	if err == nil && status.Gaps > 0 {
		err = fmt.Errorf("the disk lost %s, which the export does not have; "+
			"`promptspool spool check --data %s` says more", print.Quantity(status.Gaps, "event"), data)
	}
	return err
}

// export writes events as lines to the file that the argument names, which must be new, or to stdout.
//
// It prints on stderr how many there are. One event is in memory at a time.
func export(c *cli.Context, events func(do func(ops.SpoolEvent) error) error) (err error) {
	out := c.App.Writer
	if path := c.Args().First(); path != "" && path != "-" {
		file, failed := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if failed != nil {
			return fmt.Errorf("the file to write to must be new: %w", failed)
		}
		// Synced, because a purge may follow: then this is the only copy.
		defer func() { err = errors.Join(err, file.Sync(), file.Close()) }()
		out = file
	}

	w := bufio.NewWriter(out)
	progress := print.NewProgress(c, "Exporting", "events", 0)
	var (
		count, unread int
		bytes         uint64
		keys          = map[uint32]bool{}
	)
	err = events(func(e ops.SpoolEvent) error {
		if e.Error != "" {
			// It is named as it comes, and counted for the exit code at the end.
			unread++
			fmt.Fprintln(c.App.ErrWriter, "promptspool:", print.Printable(e.Error))
			// The others can still be exported.
			return nil
		}

		count++
		progress.Add(1)
		bytes += uint64(len(e.Data))
		keys[e.Key] = true
		return writeLine(w, e.Data)
	})
	progress.End()
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}

	fmt.Fprintf(c.App.ErrWriter, "%s of %s, %s\n",
		print.Quantity(count, "event"), print.Quantity(len(keys), "key"), humanize.IBytes(bytes))
	if unread > 0 {
		return fmt.Errorf("%d could not be read, and are not in the export", unread)
	}
	return nil
}

// writeLine writes an event as it is on disk, and a line break if it does not end with one.
func writeLine(w io.Writer, line []byte) error {
	if n := len(line); n == 0 || line[n-1] != '\n' {
		line = append(line[:n:n], '\n')
	}
	_, err := w.Write(line)
	return err
}
