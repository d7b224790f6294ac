package spooltool

import (
	"context"
	"iter"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

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
	return eachLane(pick, func(lane queue.Lane, matches func(uint64) bool) (int, error) {
		return l.Proxy.Replay(ctx, lane, matches, wire.Secret(pick.Key))
	})
}

// Purge deletes events from the lanes.
func (l Live) Purge(_ context.Context, pick ops.Pick) (int, error) {
	return eachLane(pick, l.Proxy.Purge)
}

// eachLane calls do for each lane that a pick includes, and adds up the results.
func eachLane(
	pick ops.Pick, do func(lane queue.Lane, matches func(uint64) bool) (int, error),
) (total int, err error) {
	lanes := []queue.Lane{queue.LaneHeld, queue.LaneDead}
	if pick.Lane != "" {
		lane, err := queue.ParseLane(pick.Lane)
		if err != nil {
			return 0, wire.Invalid(wire.FieldError{Field: "lane", Reason: err.Error()})
		}
		lanes = []queue.Lane{lane}
	}

	matches := pickMatches(pick)
	for _, lane := range lanes {
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
