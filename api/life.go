package api

import (
	"context"
	"net"
	"sync"
	"time"

	"promptspool/api/edge"
	"promptspool/api/room"
)

// callLife is the context of a call. It ends with the API, after callTimeMax, when the call is answered, or when its caller
// leaves. Most calls are answered without waiting for anything: only when somebody asks for Done, or for Err after a while,
// does it become a context with a timer. Safe for concurrent use.
type callLife struct {
	parent   context.Context
	deadline time.Time
	conn     net.Conn // the caller's; nil: the call goes on without them
	claim    room.Claim

	mu     sync.Mutex
	ctx    context.Context // under mu, as all below; nil until somebody asks
	cancel context.CancelFunc
	ended  bool
}

// end ends it. Who still has it finds it canceled.
func (l *callLife) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.cancel != nil {
		l.cancel()
	}
}

// made is the context that it has become.
func (l *callLife) made() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithDeadline(l.parent, l.deadline)
		if l.ended {
			l.cancel()
		} else if l.conn != nil {
			go cancelWhenLeft(l.ctx, l.cancel, l.conn)
		}
	}
	return l.ctx
}

// leftEvery is how often a call that takes long looks whether its caller is still there. Sooner it does not: a caller who
// ends its side of the connection behind a call still gets the answer to one that does not take long.
const leftEvery = 400 * time.Millisecond

// cancelWhenLeft cancels a context when the caller has left.
func cancelWhenLeft(ctx context.Context, cancel context.CancelFunc, conn net.Conn) {
	tick := time.NewTicker(leftEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if edge.HasLeft(conn) {
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Deadline is callTimeMax after the call came.
func (l *callLife) Deadline() (time.Time, bool) { return l.deadline, true }

// Done closes when it ends.
func (l *callLife) Done() <-chan struct{} { return l.made().Done() }

// Err says why it ended; nil if it has not.
func (l *callLife) Err() error {
	l.mu.Lock()
	ctx, ended := l.ctx, l.ended
	l.mu.Unlock()
	if ctx == nil && l.conn != nil && !ended && time.Until(l.deadline) < callTimeMax-leftEvery {
		ctx = l.made()
	}
	switch {
	case ctx != nil:
		return ctx.Err()
	case ended:
		return context.Canceled
	case !time.Now().Before(l.deadline):
		return context.DeadlineExceeded
	}
	return l.parent.Err()
}

// Value is that of the context that it becomes, besides the claim: package context looks
// there for what to end together with it.
func (l *callLife) Value(key any) any {
	if key == room.Key {
		return &l.claim
	}

	return l.made().Value(key)
}
