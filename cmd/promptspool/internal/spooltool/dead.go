package spooltool

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

// DeadCommand is `promptspool dead`: events that the server rejects, held for their key or dead letters.
func DeadCommand() *cli.Command {
	return config.Commands("dead", "list, show, replay, export and purge events that the server refuses",
		config.Command("list", "list held events and dead letters",
			listDead, laneFlags(), config.ShowingFlags(), []cli.Flag{config.ColumnsFlag()}),

		config.Command("show SEQUENCE", "show one event as it is on disk",
			showDead, laneFlags(), config.ShowingFlags()),

		config.Command("replay [SEQUENCE...]", "send events again", replayDead, laneFlags(), []cli.Flag{
			allFlag(),
			config.TextFlag("key-file", "", "a `file` with the key that replaces theirs"),
		}, config.ShowingFlags()),

		config.Command("export [FILE]",
			"write events as newline-delimited JSON, which `requests import` takes", exportDead, laneFlags()),

		config.Command("purge [SEQUENCE...]", "remove events for good", purgeDead, laneFlags(), []cli.Flag{
			allFlag(),
			config.SwitchFlag("yes", "do it; without, only say how many"),
		}, config.ShowingFlags()))
}

// laneFlags returns --lane and --data, which every subcommand has.
func laneFlags() []cli.Flag {
	return []cli.Flag{
		config.ChoiceFlag("lane", "", "only this `lane` (held: the key is refused; dead: the content is)",
			queue.LaneHeld.String(), queue.LaneDead.String()),
		sidecarDataFlag(),
	}
}

func allFlag() cli.Flag { return config.SwitchFlag("all", "every event, instead of some by sequence") }

func exportDead(c *cli.Context) error {
	return export(c, func(do func(ops.SpoolEvent) error) error { return deadEvents(c, do) })
}

// deadEvents calls do for every event in the lane of --lane, or in both lanes.
func deadEvents(c *cli.Context, do func(ops.SpoolEvent) error) error {
	r := config.Read(c)
	lanes := lanesOf(r.OneOf("lane"))
	if err := r.Err(); err != nil {
		return err
	}

	for _, lane := range lanes {
		if err := eachEvent(c, lane, do); err != nil {
			return err
		}
	}
	return nil
}

// deadRow is one event in the list.
type deadRow struct {
	Seq       uint64    `json:"sequence"`
	Lane      string    `json:"lane"`
	Kind      string    `json:"kind"`
	RequestID string    `json:"request_id"`
	Cause     string    `json:"cause,omitempty"` // "limit" if the event's record is at a limit
	Reason    string    `json:"reason"`
	MovedAt   time.Time `json:"moved_at"`
}

func newDeadRow(e ops.SpoolEvent) deadRow {
	var event struct {
		Kind      string `json:"kind"`
		RequestID string `json:"request_id"`
	}
	// Damaged data is listed without a kind.
	_ = json.Unmarshal(e.Data, &event)

	return deadRow{
		Seq:       e.Seq,
		Lane:      e.Lane,
		Kind:      event.Kind,
		RequestID: event.RequestID,
		Cause:     e.Cause,
		Reason:    cmp.Or(e.Error, e.Reason), // that it cannot be read matters more
		MovedAt:   e.MovedAt,
	}
}

func listDead(c *cli.Context) error {
	rows := []deadRow{}
	err := deadEvents(c, func(e ops.SpoolEvent) error {
		rows = append(rows, newDeadRow(e))
		return nil
	})
	if err != nil {
		return err
	}

	return print.Output(c, map[string][]deadRow{"items": rows}, func(t *print.Table) {
		t.Head("SEQUENCE", "LANE", "KIND", "REQUEST ID", "@MOVED", "CAUSE", "REASON")
		for _, r := range rows {
			t.Row(r.Seq, r.Lane, r.Kind, r.RequestID, t.Moment(r.MovedAt), cmp.Or(r.Cause, "-"), r.Reason)
		}
	})
}

func showDead(c *cli.Context) error {
	seqs, err := readSequences(c)
	if err != nil {
		return err
	}
	if len(seqs) != 1 {
		return config.Usagef(c, "give the sequence of one event; `promptspool dead list` shows them")
	}

	event, err := findDead(c, seqs[0])
	if err != nil {
		return err
	}
	if event.Error != "" {
		return errors.New(event.Error)
	}

	shown := struct {
		deadRow
		Event json.RawMessage `json:"event"`
	}{newDeadRow(event), event.Data}
	if !json.Valid(event.Data) {
		// A string can always be encoded.
		shown.Event, _ = json.Marshal(string(event.Data))
	}

	return print.Output(c, shown, func(t *print.Table) {
		t.Row("sequence", event.Seq)
		t.Row("lane", event.Lane)
		t.Row("moved", t.Moment(event.MovedAt))
		t.Known("cause", event.Cause)
		t.Row("reason", event.Reason)
		t.Row()
		t.Row(string(event.Data))
	})
}

// findDead returns the event with this sequence.
func findDead(c *cli.Context, seq uint64) (ops.SpoolEvent, error) {
	var found ops.SpoolEvent
	err := deadEvents(c, func(e ops.SpoolEvent) error {
		if e.Seq == seq {
			found = e
		}
		return nil
	})
	if err == nil && found.Seq == 0 {
		err = fmt.Errorf("no event %d is held or dead; `promptspool dead list` shows them", seq)
	}
	return found, err
}

// readSequences reads the arguments of a command.
func readSequences(c *cli.Context) ([]uint64, error) {
	var seqs []uint64
	for _, arg := range c.Args().Slice() {
		n, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || n == 0 {
			return nil, config.Usagef(c,
				"%q is not the sequence of an event; `promptspool dead list` shows them", arg)
		}
		seqs = append(seqs, n)
	}
	return seqs, nil
}

// readPick reads which events a command moves.
func readPick(c *cli.Context) (ops.Pick, error) {
	seqs, err := readSequences(c)
	if err != nil {
		return ops.Pick{}, err
	}
	// Nothing given must not mean everything: purging cannot be undone.
	if (len(seqs) == 0) != c.Bool("all") {
		return ops.Pick{}, config.Usagef(c,
			"give the sequences of events, which `promptspool dead list` shows, or --all")
	}

	r := config.Read(c)
	return ops.Pick{Lane: r.OneOf("lane"), Sequences: seqs, All: c.Bool("all")}, r.Err()
}

func replayDead(c *cli.Context) error {
	pick, err := readPick(c)
	if err != nil {
		return err
	}

	if path := config.Read(c).Text("key-file"); path != "" {
		key, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--key-file: %w", err)
		}
		// Editors end a file with a line break.
		pick.Key = strings.TrimSpace(string(key))
		if pick.Key == "" {
			return fmt.Errorf("--key-file: %s is empty; it must hold one key", path)
		}
	}

	moved, err := moveDead(c, "/spool/replay", pick, Live.Replay)
	if err != nil {
		return err
	}
	return print.Outcome(c, moved, "%s put back into the spool, to be sent while the sidecar runs.",
		print.Quantity(moved.Events, "event"))
}

func purgeDead(c *cli.Context) error {
	pick, err := readPick(c)
	if err != nil {
		return err
	}

	if !c.Bool("yes") {
		// Counted and not guessed: the number is what makes a person stop.
		n, err := countDead(c, pick)
		if err != nil {
			return err
		}
		return fmt.Errorf("this would remove %s for good; `promptspool dead export` keeps a copy, --yes does it",
			print.Quantity(n, "event"))
	}

	moved, err := moveDead(c, "/spool/purge", pick, Live.Purge)
	if err != nil {
		return err
	}
	return print.Outcome(c, moved, "%s removed.", print.Quantity(moved.Events, "event"))
}

// countDead returns how many events a pick matches.
func countDead(c *cli.Context, pick ops.Pick) (n int, err error) {
	matches := pickMatches(pick)
	err = deadEvents(c, func(e ops.SpoolEvent) error {
		if matches(e.Seq) {
			n++
		}
		return nil
	})
	return n, err
}

// moveDead moves events in a running sidecar through path, or with do in the folder of a stopped one.
func moveDead(
	c *cli.Context, path string, pick ops.Pick, do func(Live, context.Context, ops.Pick) (int, error),
) (ops.Moved, error) {
	var moved ops.Moved
	data, running, _, err := spoolTarget(c)
	if err != nil {
		return moved, err
	}

	if running {
		err := ops.ControlLong(c.Context, data, "POST", path, pick, func(r io.Reader) error {
			return json.NewDecoder(r).Decode(&moved)
		})
		return moved, err
	}

	stopped, err := openStopped(data, noServer{}, config.ToolLogger(c))
	if err != nil {
		return moved, err
	}
	live := Live{
		Queue: stopped.spool,
		Proxy: proxy.New(stopped.spool, stopped.keys, noServer{}, config.ToolLogger(c)),
	}
	moved.Events, err = do(live, c.Context, pick)
	return moved, errors.Join(err, stopped.close())
}

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
