package wire

import (
	"strconv"
	"strings"
	"time"
)

// ExportMark is in the lines of an export that are not events: {"export": {"cursor",
// "done"}}.
type ExportMark struct {
	Cursor string `json:"cursor"` // continues after the lines so far; "" at the end
	Done   bool   `json:"done"`   // whether the export is complete
}

// The formats of an export.
const (
	FormatEvents = "events" // newline-delimited JSON, with an ExportMark now and then; the default
	FormatCSV    = "csv"    // a line for each record, with the beginning of its texts; see CSVColumns
)

// Export is the body of POST /api/public/v2/requests/export.
type Export struct {
	Search
	Format string `json:"format,omitempty"` // FormatEvents or FormatCSV; "" is FormatEvents
}

// DecodeExport reads the body of an export.
func DecodeExport(object Object) (Export, error) {
	f := fields{object: object}
	format := f.oneOf("format", []string{FormatEvents, FormatCSV})
	if err := f.err(); err != nil {
		return Export{}, err
	}

	s, err := DecodeSearch(object)
	return Export{s, format}, err
}

// ExportQuery says which records to export, in full, newest first.
type ExportQuery struct {
	FilterGroup *Filter `json:"filter_group,omitempty"`
	Q           string  `json:"q,omitempty"`
	Cursor      string  `json:"cursor,omitempty"` // continues after the record that came with it
}

// Exported is one record of an export.
type Exported struct {
	Record Record
	Cursor string // continues after it
}

// CSVColumns are the columns of an export as CSV. Its heading is sent only where the
// export begins. The last column has a cursor now and then, which continues after its
// line.
//
// An answer that ends properly by HTTP is complete; one that breaks off is not.
var CSVColumns = []string{
	"started_at", "request_id", "accepted_at", "function_name", "provider", "model",
	"status", "error_type", "error_message", "finish_reason", "latency_seconds", "time_to_first_token_ms",
	"input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
	"cost_usd",
	"template", "version", "label", "scores", "tags", "metadata",
	"session_id", "user_id", "environment", "trace_id", "group_ids", "sidecar",
	"input_excerpt", "output_excerpt", "cursor",
}

// CSVLine returns the row as a line of CSVColumns, with no cell that a spreadsheet takes
// for a formula.
func (r *Row) CSVLine(cursor string) []string {
	var metadata, scores []string
	for _, s := range r.Scores {
		scores = append(scores, s.String())
	}
	for _, m := range r.Metadata {
		metadata = append(metadata, m.Key+"="+m.Value)
	}

	line := []string{
		r.ListTime.UTC().Format(time.RFC3339Nano), r.RequestID, r.AcceptedAt.UTC().Format(time.RFC3339Nano),
		r.FunctionName, r.Provider, r.Engine,
		r.Status, r.ErrorType, r.errorLine(), r.FinishReason, decimalCell(r.Latency), decimalCell(r.FirstTokenMS),
		integerCell(r.InputTokens), integerCell(r.OutputTokens),
		integerCell(r.CachedTokens), integerCell(r.CacheWrites), integerCell(r.ReasoningTokens), decimalCell(r.Price),
		textCell(r.PromptName), integerCell(r.PromptVersion), textCell(r.PromptLabel),
		strings.Join(scores, " "), strings.Join(r.Tags, ","), strings.Join(metadata, "; "),
		r.SessionID, r.UserID, r.Environment, r.TraceID, strings.Join(r.GroupIDs, ","), r.Sidecar,
		r.InputExcerpt, r.OutputExcerpt, cursor,
	}
	for i := range line {
		// Every cell: names, tags and metadata are what callers sent.
		line[i] = CSVCell(line[i])
	}

	return line
}

// errorLine returns the beginning of what went wrong, which a failed call's row has in the place of
// its response; "" if no more is known than the type of the error.
func (r *Row) errorLine() string {
	if r.Status != "ERROR" || r.OutputExcerpt == r.ErrorType {
		return ""
	}

	return r.OutputExcerpt
}

// The cells of values that may be unknown, which are empty.

func integerCell(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func decimalCell(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

func textCell(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// CSVCell keeps a spreadsheet from taking a text for a formula, which could run commands
// (https://owasp.org/www-community/attacks/CSV_Injection). A cell that begins
// like a formula gets an apostrophe in front, which spreadsheets do not show. No number
// here is negative.
func CSVCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n|", rune(s[0])) {
		return "'" + s
	}
	return s
}
