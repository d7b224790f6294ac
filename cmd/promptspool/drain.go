package main

import (
	"context"
	"time"

	"promptspool/spool/queue"
)

// drainSpool gives the forwarder time to deliver what is left, and logs what stays, and where.
func drainSpool(ctx context.Context, spool *queue.Queue, c sidecarConfig) {
	ctx, cancel := context.WithTimeout(ctx, c.drain)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	// The forwarder is still running. Nothing new comes, because the API has ended.
	for spool.Status().Events > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}

	left := spool.Status()
	if left.Events > 0 {
		c.logger.Warn("stopping with events that the server does not have yet; "+
			"they stay in the spool and go out after the next start, or by `promptspool spool drain`",
			"events", left.Events, "bytes", left.Bytes, "data", c.data)
	} else {
		c.logger.Info("the spool is empty")
	}

	if left.Held+left.Dead > 0 {
		c.logger.Warn("events that the server refuses stay on disk; `promptspool dead list` shows them",
			"held", left.Held, "dead_letters", left.Dead, "data", c.data)
	}
}
