package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A trouble that lasts says the same thing thousands of times, and buries what else is said. Of each warning or error, by its
// message, thinBurst are logged within thinWindow; the others are counted, and the last of them is logged at its end.
const (
	thinWindow   = 10 * time.Second
	thinBurst    = 5
	thinMessages = 256 // known at once; those beyond them pass
)

// thin is a slog.Handler before another that leaves out repetitions. Safe for concurrent use.
type thin struct {
	next  slog.Handler
	state *thinState // shared by all that are derived of one
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
	through slog.Handler // whose that was
}

// NewThin returns a handler before next that leaves out repetitions.
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
	m.last, m.through = r.Clone(), through
	return false
}

// end closes a message's window, and says what was left out in it. If anything was, the next window begins at once, with nothing left
// of its burst: so a trouble that lasts is one line in each.
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
	last.AddAttrs(slog.Int("repeated", leftOut))
	_ = through.Handle(context.Background(), last)
}
