package spooltool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
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
