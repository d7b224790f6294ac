package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// bound ends statements that the database should have ended by itself: one whose disk hangs, or whose machine is gone, does not. It is a
// pgx.QueryTracer, which is told before and after whatever is sent, and may shorten its context.
type bound struct{ most time.Duration }

// answerGrace is how much longer than statement_timeout this side waits. A batch has several statements.
const (
	answerGrace = 5 * time.Second
	batchFactor = 2
)

// newBound reads a statement_timeout as the database does: milliseconds, or a number with a unit. nil if there is to be none.
func newBound(statementTimeout string) *bound {
	text := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(statementTimeout), " ", ""), "min", "m")
	most, err := time.ParseDuration(text)
	if ms, errNumber := strconv.Atoi(text); errNumber == nil {
		most, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || most <= 0 {
		return nil
	}
	return &bound{most}
}

// ending is where a context keeps what ends it.
type ending struct{}

// patient is in a context whose statements may take as long as they take.
type patient struct{}

func patiently(ctx context.Context) context.Context { return context.WithValue(ctx, patient{}, true) }

func (b *bound) start(ctx context.Context, factor time.Duration) context.Context {
	if ctx.Value(patient{}) != nil {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, factor*b.most+answerGrace)
	return context.WithValue(ctx, ending{}, cancel)
}

func end(ctx context.Context) {
	if cancel, ok := ctx.Value(ending{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart is pgx.QueryTracer's.
func (b *bound) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return b.start(ctx, 1)
}

// TraceQueryEnd is pgx.QueryTracer's.
func (b *bound) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { end(ctx) }

// TraceBatchStart is pgx.BatchTracer's.
func (b *bound) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return b.start(ctx, batchFactor)
}

// TraceBatchQuery is pgx.BatchTracer's.
func (b *bound) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is pgx.BatchTracer's.
func (b *bound) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { end(ctx) }

// TraceCopyFromStart is pgx.CopyFromTracer's.
func (b *bound) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return b.start(ctx, batchFactor)
}

// TraceCopyFromEnd is pgx.CopyFromTracer's.
func (b *bound) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	end(ctx)
}
