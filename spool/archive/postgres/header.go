package postgres

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

type commandTag = pgconn.CommandTag

// The first four columns of a header are its key, and stay while it stands where it does.
var headerColumns = []string{"account_id", "at", "request_id", "ts", "version", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "start_at", "cost", "latency",
	"terms", "line"}

const headerKeys = 4

// updateHeader takes the values of all headerColumns, in their order.
var updateHeader = `UPDATE records SET ` + equations(headerColumns, headerKeys, ", ") + ` WHERE ` + equations(headerColumns[:headerKeys], 0, " AND ")

// equations makes "column = $n" of the columns from the one at first on.
func equations(columns []string, first int, between string) string {
	var parts []string
	for i, c := range columns[first:] {
		parts = append(parts, c+" = $"+strconv.Itoa(first+i+1))
	}
	return strings.Join(parts, between)
}

// header makes the values of headerColumns; nil for an orphan.
func (f *folding) header(r *record) []any {
	row, ok := r.state.Row()
	if !ok {
		return nil
	}
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
	return []any{r.account, nanosOf(row.AcceptedAt), r.id, r.ts, row.PromptVersion, row.InputTokens, row.OutputTokens, row.CachedTokens, row.ReasoningTokens,
		start, row.Price, latency, withHidden(termsOf(r.account, &row), r), rowcode.Encode(&row)}
}

// rangeColumns are the columns that hold a field's one number, as a filter compares it.
var rangeColumns = map[rowcode.Column]string{
	rowcode.ColumnVersion: "version", rowcode.ColumnInputTokens: "input_tokens", rowcode.ColumnOutputTokens: "output_tokens", rowcode.ColumnCachedTokens: "cached_tokens",
	rowcode.ColumnReasoningTokens: "reasoning_tokens", rowcode.ColumnCost: "cost", rowcode.ColumnLatency: "latency",
}
