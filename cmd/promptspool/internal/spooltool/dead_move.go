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

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/proxy"
)

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
