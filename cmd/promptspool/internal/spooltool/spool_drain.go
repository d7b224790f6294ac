package spooltool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/metrics"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

func drainStopped(c *cli.Context) error {
	v := config.Read(c)
	timeout, address := v.Duration("timeout"), v.Required("upstream")
	trust := v.Trust("upstream")
	if err := v.Err(); err != nil {
		return err
	}
	// Before the spool is opened, which changes its files: a wrong URL must change nothing.
	upstream, err := client.New(client.Config{URL: address, Version: c.App.Version, TLS: trust})
	if err != nil {
		return config.WrongValue(c, "upstream", address, err.Error())
	}
	defer upstream.Close()

	data, err := stoppedSpool(c)
	if err != nil {
		return err
	}
	logger := config.ToolLogger(c)
	stopped, err := openStopped(data, upstream, logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, timeout)
	defer cancel()

	// Held events first: those whose key is accepted by now go out with the others.
	proxy.New(stopped.spool, stopped.keys, noServer{}, logger).RetryHeld(ctx)
	numbers := metrics.New("sidecar", c.App.Version)
	forwarder := proxy.NewForwarder(stopped.spool, stopped.keys, upstream, numbers, logger)
	// The same forwarder as in a sidecar: what is refused goes to the same lanes.
	progress := print.NewProgress(c, "Delivering", "events", int64(stopped.spool.Status().Events))
	err = forwardUntilEmpty(ctx, stopped.spool, forwarder, progress)
	progress.End()
	left := stopped.spool.Status()
	if err := errors.Join(err, stopped.close()); err != nil {
		return err
	}

	if err := print.Output(c, left, func(t *print.Table) {
		t.Head(">WAITING", ">HELD", ">DEAD LETTERS", ">LOST")
		t.Row(left.Events, left.Held, print.DeadLetters(int64(left.Dead), int64(left.Dropped)), left.Gaps)
	}); err != nil {
		return err
	}
	return undelivered(left, data)
}

// undelivered returns an error that says what became of the events that were not delivered; nil if all were.
func undelivered(left queue.Status, data string) error {
	switch {
	// The remedy comes first: a second try often delivers the rest.
	case left.Events > 0:
		return fmt.Errorf("%s left in the spool; run this again when the server answers",
			print.Quantity(left.Events, "event"))
	case left.Gaps > 0:
		return fmt.Errorf("everything that the disk could read was delivered, but it lost %s; damaged files are in %s",
			print.Quantity(left.Gaps, "event"), quarantineOf(data))
	case left.Held+left.Dead+left.Dropped > 0:
		return fmt.Errorf("the spool is empty, but the server refused %s by the key and %s by the content; "+
			"see `promptspool dead list --data %s`",
			print.Quantity(left.Held, "event"), print.Quantity(left.Dead+left.Dropped, "event"), data)
	}
	return nil
}

// forwardUntilEmpty runs the forwarder until no event waits or ctx ends.
//
// Only a fault of the spool is an error: what the server does not take stays queued.
func forwardUntilEmpty(
	ctx context.Context, spool *queue.Queue, forwarder *proxy.Forwarder, progress *print.Progress,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ended := make(chan error, 1)
	go func() { ended <- forwarder.Run(ctx) }()
	waited := spool.Status().Events
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()

	for {
		left := spool.Status()
		progress.Set("", int64(waited)-int64(left.Events))
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
