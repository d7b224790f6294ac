package redact

import (
	"context"
	"sync/atomic"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// Recorder is what writes go to.
type Recorder interface {
	Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error)
}

// Before applies rules to events before it passes them to Next. Safe for concurrent use.
type Before struct {
	Next    Recorder
	Metrics *metrics.Metrics
	rules   atomic.Pointer[Rules]
}

// Set puts rules in force for all writes from now on.
func (b *Before) Set(rules *Rules) { b.rules.Store(rules) }

// Record hands events on with redacted bodies. The caller's are not changed.
func (b *Before) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	// Once: a reload must not change the rules within a batch.
	rules := b.rules.Load()
	if rules.Empty() {
		return b.Next.Record(ctx, id, events)
	}

	count := func(rule, action string) {
		b.Metrics.Redacted.WithLabelValues(rule, action).Inc()
	}

	// A copy: the caller's events must not change.
	redacted := make([]wire.Event, len(events))
	for i, e := range events {
		e.Body = rules.Body(e.Body, count)
		// It is derived from the body as it is stored.
		if e.Kind.DerivesID() {
			if id, err := wire.SpanEventID(e.RequestID, e.Body); err == nil {
				e.ID = id
			}
		}
		redacted[i] = e
	}

	return b.Next.Record(ctx, id, redacted)
}
