package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

type commandTag = pgconn.CommandTag

// headerColumns are the columns of a header.
var headerColumns = []string{
	"account_id", "at", "request_id", "ts",
	"version", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens",
	"start_at", "cost", "latency", "terms", "line", "accepted",
}

// header returns the values of headerColumns, or nil for an orphan.
func (f *folding) header(r *archive.Record) []any {
	row, ok := r.State.Row()
	if !ok {
		return nil
	}

	// In the units in which filters compare: nanoseconds for times, milliseconds for latency.
	var start *int64
	if row.StartTime != nil {
		n := nanosOf(*row.StartTime)
		start = &n
	}
	var latency *float64
	if row.Latency != nil {
		ms := query.Milliseconds(*row.Latency)
		latency = &ms
	}
	terms := withHidden(termsOf(r.Account, &row), r.Account, &r.State.State)

	return []any{
		r.Account, nanosOf(row.ListTime), uuid(r.ID), tsOf(uuid(r.ID)),
		row.PromptVersion, row.InputTokens, row.OutputTokens, row.CachedTokens, row.ReasoningTokens,
		start, row.Price, latency, terms, rowcode.Encode(&row),
		nanosOf(row.AcceptedAt),
	}
}

// rangeColumns are the columns that hold the number of a field as filters compare it.
var rangeColumns = map[rowcode.Column]string{
	rowcode.ColumnVersion:         "version",
	rowcode.ColumnInputTokens:     "input_tokens",
	rowcode.ColumnOutputTokens:    "output_tokens",
	rowcode.ColumnCachedTokens:    "cached_tokens",
	rowcode.ColumnReasoningTokens: "reasoning_tokens",
	rowcode.ColumnCost:            "cost",
	rowcode.ColumnLatency:         "latency",
}
