package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/metrics"
	"promptspool/proxy"
	"promptspool/spool"
)

func spoolDrainCommand() *cli.Command {
	return &cli.Command{
		Name: "drain", Usage: "deliver what a stopped sidecar's spool holds, until it is empty; held events too, if the server takes their key",
		Flags: append(append(own("spool drain",
			stringFlag("timeout", "10m", "after which `time` to give up; what is left stays"),
		), sidecarDataFlag(), stringFlag("upstream", "", "the server's `URL`, such as http://127.0.0.1:8788"), outputFlag()), trustFlags("upstream")...),
		Action: drainStopped,
	}
}

func drainStopped(c *cli.Context) error {
	v := values{c: c}
	patience, address := v.duration("timeout"), v.need("upstream")
	trust, err := trustOf(c, "upstream")
	v.note(err)
	if err := v.err(); err != nil {
		return err
	}
	upstream, err := client.New(client.Config{URL: address, Version: version, TLS: trust})
	if err != nil {
		return wrong(c, "upstream", address, err.Error())
	}
	defer upstream.Close()

	data, err := stoppedSpool(c)
	if err != nil {
		return err
	}
	queue, keys, done, err := openStopped(data, upstream, toolLogger(c))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, patience)
	defer cancel()
	proxy.New(queue, keys, nobody{}, toolLogger(c)).BringHome(ctx)
	forwarder := proxy.NewForwarder(queue, keys, upstream, metrics.New("sidecar", version), toolLogger(c))
	err = forwardUntilEmpty(ctx, queue, forwarder, progressOf(c))
	left := queue.Status()
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	if err := output(c, left, func(t *table) {
		t.row("waiting", "held", "dead letters", "lost")
		t.row(left.Events, left.Held, left.Dead, left.Gaps)
	}); err != nil {
		return err
	}
	switch {
	case left.Events > 0:
		return fmt.Errorf("%s left in the spool; run this again when the server answers", quantity(left.Events, "event"))
	case left.Gaps > 0:
		return fmt.Errorf("all that the disk could read was delivered, but it lost %s; what is damaged is in %s",
			quantity(left.Gaps, "event"), filepath.Join(spoolDir(data), "quarantine"))
	case left.Held+left.Dead > 0:
		return fmt.Errorf("the spool is empty, but the server refused %s by the key and %s by the content; see `promptspool dead list --data %s`", quantity(left.Held, "event"), quantity(left.Dead, "event"), data)
	}
	return nil
}

// forwardUntilEmpty runs the forwarder until nothing waits or ctx ends. Only a fault of the spool is an error.
func forwardUntilEmpty(ctx context.Context, queue *spool.Spool, forwarder *proxy.Forwarder, progress func(spool.Status)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- forwarder.Run(ctx) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		left := queue.Status()
		progress(left)
		if left.Events == 0 {
			cancel()
			return <-ended
		}
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
	}
}

// progressOf tells on stderr how much is left, if a person is there to read it.
func progressOf(c *cli.Context) func(spool.Status) {
	if !isTerminal(c.App.ErrWriter) {
		return func(spool.Status) {}
	}
	last := time.Time{}
	return func(left spool.Status) {
		if left.Events == 0 || time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(c.App.ErrWriter, "\r%s, %s left   ", quantity(left.Events, "event"), humanize.IBytes(uint64(left.Bytes)))
		}
		if left.Events == 0 {
			fmt.Fprintln(c.App.ErrWriter)
		}
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
