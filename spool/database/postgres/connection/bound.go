package connection

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// bound ends statements that the database should have ended by itself. A database whose disk
// hangs, or whose machine is gone, does not. bound is a pgx.QueryTracer: pgx calls it around
// each statement, and lets it replace the context.
type bound struct {
	most time.Duration // 0 if the database has no timeout
}

// This side waits longer than statement_timeout, so that normally the database is the one to
// end a statement. A batch has several statements.
const (
	answerGrace = 5 * time.Second
	batchFactor = 2
)

// newBound parses a statement_timeout as the database does: milliseconds, or a number with a
// unit. It returns nil if there is no timeout.
func newBound(statementTimeout string) *bound {
	// PostgreSQL allows spaces, and says min where Go says m.
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

// ending is the key of the cancel function that end calls.
type ending struct{}

// patient marks a context whose statements have no bound.
type patient struct{}

// Patiently returns a context for statements that may take any time.
func Patiently(ctx context.Context) context.Context { return context.WithValue(ctx, patient{}, true) }

func (b *bound) start(ctx context.Context, factor time.Duration) context.Context {
	most := factor*b.most + answerGrace
	hurry, hurried := ctx.Value(impatient{}).(time.Duration)
	switch {
	case hurried:
		most = hurry
	case ctx.Value(patient{}) != nil || b.most == 0:
		return ctx
	}
	// end finds cancel in the context: pgx passes it to the end of the same statement.
	ctx, cancel := context.WithTimeout(ctx, most)
	return context.WithValue(ctx, ending{}, cancel)
}

func end(ctx context.Context) {
	if cancel, ok := ctx.Value(ending{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (b *bound) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return b.start(ctx, 1)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (b *bound) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { end(ctx) }

// TraceBatchStart implements pgx.BatchTracer.
func (b *bound) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return b.start(ctx, batchFactor)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (b *bound) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (b *bound) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { end(ctx) }

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (b *bound) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return b.start(ctx, batchFactor)
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (b *bound) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	end(ctx)
}
