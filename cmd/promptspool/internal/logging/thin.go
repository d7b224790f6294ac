// Package logging keeps a log readable: what repeats is counted, not written each time.
package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A lasting problem logs the same line thousands of times, and buries the others. Of the warnings
// and errors with the same message, thinBurst are logged within thinWindow. The others are
// counted, and the first one after the window says how many they were.
const (
	thinWindow   = 10 * time.Second
	thinBurst    = 5
	thinMessages = 256 // different messages at a time; one beyond them has all forgotten
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
	begun   time.Time
	passed  int
	leftOut int
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
	if r.Level >= slog.LevelWarn {
		leftOut, passes := h.state.passes(r.Message)
		if !passes {
			return nil
		}
		if leftOut > 0 {
			// The caller may reuse the record.
			r = r.Clone()
			r.AddAttrs(slog.Int("repeated", leftOut))
		}
	}
	return h.next.Handle(ctx, r)
}

// passes reports whether a message is logged, and how many were left out in the window before.
//
// If there were any, the next window has no burst: a lasting problem is one line in each window.
func (s *thinState) passes(message string) (leftOut int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	m := s.messages[message]
	if m == nil || time.Since(m.begun) >= thinWindow {
		next := repeated{begun: time.Now()}
		if m != nil && m.leftOut > 0 {
			leftOut, next.passed = m.leftOut, thinBurst-1
		}
		if m == nil && len(s.messages) == thinMessages {
			clear(s.messages)
		}
		m = &next
		s.messages[message] = m
	}

	if m.passed == thinBurst {
		m.leftOut++
		return 0, false
	}
	m.passed++
	return leftOut, true
}
