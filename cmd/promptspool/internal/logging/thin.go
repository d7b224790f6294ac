package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A lasting problem logs the same line thousands of times, and buries the others. Of the warnings
// and errors with the same message, thinBurst are logged within thinWindow. The others are
// counted, and the last of them is logged when the window ends.
const (
	thinWindow   = 10 * time.Second
	thinBurst    = 5
	thinMessages = 256 // different messages at a time; those beyond them pass
)

// thin is a slog.Handler that leaves out repetitions before another. Safe for concurrent use.
type thin struct {
	next  slog.Handler
	state *thinState // shared by all handlers derived from one
}

type thinState struct {
	mu       sync.Mutex
	messages map[string]*repeated // under mu
}

// repeated is one message within one window.
type repeated struct {
	passed  int
	leftOut int
	last    slog.Record  // of those left out
	through slog.Handler // the handler that got it
}

// NewThin returns a handler that leaves out repetitions, and passes the rest on to next.
func NewThin(next slog.Handler) slog.Handler {
	return thin{next, &thinState{messages: map[string]*repeated{}}}
}

func (h thin) Enabled(ctx context.Context, level slog.Level) bool { return h.next.Enabled(ctx, level) }

func (h thin) WithAttrs(attrs []slog.Attr) slog.Handler {
	return thin{h.next.WithAttrs(attrs), h.state}
}

func (h thin) WithGroup(name string) slog.Handler { return thin{h.next.WithGroup(name), h.state} }

// Handle passes a record on, or counts it.
func (h thin) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && !h.state.passes(h.next, r) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (s *thinState) passes(through slog.Handler, r slog.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	m := s.messages[r.Message]
	switch {
	case m == nil && len(s.messages) >= thinMessages:
		return true
	case m == nil:
		m = new(repeated)
		s.messages[r.Message] = m
		time.AfterFunc(thinWindow, func() { s.end(r.Message) })
	}

	if m.passed < thinBurst {
		m.passed++
		return true
	}

	m.leftOut++
	// A copy: the caller may reuse the record.
	m.last, m.through = r.Clone(), through
	return false
}

// end closes a message's window, and logs how many records were left out in it.
//
// If there were any, the next window begins immediately and without a burst: a lasting problem
// is one line in each window.
func (s *thinState) end(message string) {
	s.mu.Lock()
	m := s.messages[message]
	if m.leftOut == 0 {
		delete(s.messages, message)
		s.mu.Unlock()
		return
	}

	last, through, leftOut := m.last, m.through, m.leftOut
	s.messages[message] = &repeated{passed: thinBurst}
	time.AfterFunc(thinWindow, func() { s.end(message) })
	s.mu.Unlock()

	// Outside the lock: the handler may be slow.
	last.AddAttrs(slog.Int("repeated", leftOut))
	_ = through.Handle(context.Background(), last)
}
