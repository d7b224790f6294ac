package spooltool

import (
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
	"promptspool/spool"
)

// DeadCommand looks after the events that the server rejects: those held for their key, and the dead letters.
func DeadCommand() *cli.Command {
	// Every subcommand has --lane and --data; those that print a table have --output as well.
	flags := func(command string) []cli.Flag {
		lane := config.TextFlag("lane", "", "only this `lane`: held (the key is refused) or dead (the content is)")
		return append(config.OfCommand("dead "+command, lane), sidecarDataFlag())
	}
	withOutput := func(command string, own ...cli.Flag) []cli.Flag {
		return append(append(flags(command), config.OutputFlag()), config.OfCommand("dead "+command, own...)...)
	}
	all := func() cli.Flag { return config.SwitchFlag("all", "every event, instead of some by sequence") }

	return &cli.Command{
		Name:  "dead",
		Usage: "list, show, replay, export and purge events that the server refuses",
		Subcommands: []*cli.Command{
			{
				Name:   "list",
				Usage:  "list held events and dead letters",
				Flags:  withOutput("list"),
				Action: listDead,
			},
			{
				Name:      "show",
				Usage:     "show one event as it is on disk",
				ArgsUsage: "SEQUENCE",
				Flags:     withOutput("show"),
				Action:    showDead,
			},
			{
				Name:      "replay",
				Usage:     "send events again",
				ArgsUsage: "[SEQUENCE...]",
				Flags: withOutput("replay", all(),
					config.TextFlag("key-file", "", "a `file` with the key under which they go out, instead of their own"),
				),
				Action: replayDead,
			},
			{
				Name:      "export",
				Usage:     "write events as newline-delimited JSON, which `requests import` takes",
				ArgsUsage: "[FILE]",
				Flags:     flags("export"),
				Action:    exportDead,
			},
			{
				Name:      "purge",
				Usage:     "remove events for good",
				ArgsUsage: "[SEQUENCE...]",
				Flags:     withOutput("purge", all(), config.SwitchFlag("yes", "do it; without, only say how many")),
				Action:    purgeDead,
			},
		},
	}
}

// deadEvents calls do for every event of --lane, or of both.
func deadEvents(c *cli.Context, do func(ops.SpoolEvent) error) error {
	lanes := []string{spool.LaneHeld.String(), spool.LaneDead.String()}
	if name := config.Read(c).Text("lane"); name != "" {
		if _, err := spool.ParseLane(name); err != nil {
			return config.Usagef(c, "--lane: %v", err)
		}
		lanes = []string{name}
	}
	for _, lane := range lanes {
		if err := eventsOf(c, lane, do); err != nil {
			return err
		}
	}
	return nil
}

// deadRow is a line of the list.
type deadRow struct {
	Seq       uint64    `json:"sequence"`
	Lane      string    `json:"lane"`
	Kind      string    `json:"kind"`
	RequestID string    `json:"request_id"`
	Reason    string    `json:"reason"`
	MovedAt   time.Time `json:"moved_at"`
}

func rowOf(e ops.SpoolEvent) deadRow {
	var event struct {
		Kind      string `json:"kind"`
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(e.Data, &event) // what is no event has no kind
	row := deadRow{e.Seq, e.Lane, event.Kind, event.RequestID, e.Reason, e.MovedAt}
	if e.Error != "" {
		row.Reason = e.Error
	}
	return row
}

func listDead(c *cli.Context) error {
	rows := []deadRow{}
	err := deadEvents(c, func(e ops.SpoolEvent) error {
		rows = append(rows, rowOf(e))
		return nil
	})
	if err != nil {
		return err
	}
	return print.Output(c, struct {
		Items []deadRow `json:"items"`
	}{rows}, func(t *print.Table) {
		t.Row("SEQUENCE", "LANE", "KIND", "REQUEST_ID", "MOVED", "REASON")
		for _, r := range rows {
			t.Row(r.Seq, r.Lane, r.Kind, r.RequestID, print.Moment(r.MovedAt), r.Reason)
		}
	})
}

// errFound ends a search.
var errFound = errors.New("found")

func showDead(c *cli.Context) error {
	seqs, err := sequences(c)
	if err != nil {
		return err
	}
	if len(seqs) != 1 {
		return config.Usagef(c, "give the sequence of one event; `promptspool dead list` shows them")
	}

	var found ops.SpoolEvent
	err = deadEvents(c, func(e ops.SpoolEvent) error {
		if e.Seq == seqs[0] {
			found = e
			return errFound
		}
		return nil
	})
	if err == nil {
		return fmt.Errorf("no event %d is held or dead; `promptspool dead list` shows them", seqs[0])
	}
	if !errors.Is(err, errFound) {
		return err
	}

	if found.Error != "" {
		return errors.New(found.Error)
	}

	shown := struct {
		deadRow
		Event json.RawMessage `json:"event"`
	}{rowOf(found), found.Data}
	if !json.Valid(found.Data) {
		shown.Event, _ = json.Marshal(string(found.Data)) // a string always encodes
	}

	return print.Output(c, shown, func(t *print.Table) {
		t.Row("sequence", found.Seq)
		t.Row("lane", found.Lane)
		t.Row("moved", print.Moment(found.MovedAt))
		_ = t.Flush()
		fmt.Fprintf(c.App.Writer, "reason    %s\n\n%s\n", strings.Map(visible, found.Reason), strings.Map(visible, string(found.Data)))
	})
}

// visible takes out what could drive a terminal.
func visible(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 {
		return ' '
	}
	return r
}

func exportDead(c *cli.Context) error {
	return export(c, func(do func(ops.SpoolEvent) error) error { return deadEvents(c, do) })
}

// sequences reads the arguments.
func sequences(c *cli.Context) ([]uint64, error) {
	var seqs []uint64
	for _, arg := range c.Args().Slice() {
		n, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || n == 0 {
			return nil, config.Usagef(c, "%q is not the sequence of an event; `promptspool dead list` shows them", arg)
		}
		seqs = append(seqs, n)
	}
	return seqs, nil
}

// picked reads which events a command is about.
func picked(c *cli.Context) (ops.Pick, error) {
	seqs, err := sequences(c)
	if err != nil {
		return ops.Pick{}, err
	}

	if (len(seqs) == 0) != c.Bool("all") {
		return ops.Pick{}, config.Usagef(c, "give the sequences of events, which `promptspool dead list` shows, or --all")
	}
	lane := config.Read(c).Text("lane")
	if _, err := spool.ParseLane(lane); err != nil && lane != "" {
		return ops.Pick{}, config.Usagef(c, "--lane: %v", err)
	}
	return ops.Pick{Lane: lane, Sequences: seqs, All: c.Bool("all")}, nil
}

func replayDead(c *cli.Context) error {
	p, err := picked(c)
	if err != nil {
		return err
	}

	if path := config.Read(c).Text("key-file"); path != "" {
		key, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--key-file: %w", err)
		}
		if p.Key = strings.TrimSpace(string(key)); p.Key == "" {
			return fmt.Errorf("--key-file: %s is empty; it must hold one key", path)
		}
	}

	moved, err := moveDead(c, "/spool/replay", p, Live.Replay)
	if err != nil {
		return err
	}
	return print.Output(c, moved, func(t *print.Table) {
		t.Row(fmt.Sprintf("%s put back into the spool, to be sent while the sidecar runs.", print.Quantity(moved.Events, "event")))
	})
}

func purgeDead(c *cli.Context) error {
	p, err := picked(c)
	if err != nil {
		return err
	}
	if !c.Bool("yes") {
		n, err := countPicked(c, p)
		if err != nil {
			return err
		}
		return fmt.Errorf("this would remove %s for good; `promptspool dead export` keeps a copy, --yes does it", print.Quantity(n, "event"))
	}
	moved, err := moveDead(c, "/spool/purge", p, Live.Purge)
	if err != nil {
		return err
	}
	return print.Output(c, moved, func(t *print.Table) { t.Row(fmt.Sprintf("%s removed.", print.Quantity(moved.Events, "event"))) })
}

func countPicked(c *cli.Context, p ops.Pick) (n int, err error) {
	wanted := map[uint64]bool{}
	for _, seq := range p.Sequences {
		wanted[seq] = true
	}
	err = deadEvents(c, func(e ops.SpoolEvent) error {
		if p.All || wanted[e.Seq] {
			n++
		}
		return nil
	})
	return n, err
}

// moveDead has a running sidecar move events, or does it in the folder of a stopped one.
func moveDead(c *cli.Context, path string, p ops.Pick, do func(Live, context.Context, ops.Pick) (int, error)) (ops.Moved, error) {
	var moved ops.Moved
	data, running, _, err := spoolTarget(c)
	if err != nil {
		return moved, err
	}
	if running {
		return moved, ops.ControlLong(c.Context, data, "POST", path, p, func(r io.Reader) error { return json.NewDecoder(r).Decode(&moved) })
	}
	queue, keys, done, err := openStopped(data, nobody{}, config.ToolLogger(c))
	if err != nil {
		return moved, err
	}
	moved.Events, err = do(Live{Queue: queue, Proxy: proxy.New(queue, keys, nobody{}, config.ToolLogger(c))}, c.Context, p)
	return moved, errors.Join(err, done())
}
