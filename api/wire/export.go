package wire

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
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

// RecordCursor begins the cursors of exports of all records.
const RecordCursor = "i."

// IsRecordCursor reports whether a cursor is one of all records, not of a search.
func IsRecordCursor(cursor string) bool { return strings.HasPrefix(cursor, RecordCursor) }

// The formats of an export.
const (
	FormatEvents = "events" // newline-delimited JSON, with an ExportMark now and then; the default
	FormatCSV    = "csv"    // a line for each record, with the beginning of its texts; see CSVColumns
)

// Export is the body of POST /api/public/v2/requests/export.
type Export struct {
	Search
	// Events, one a line, or CSV: a line for each record, with the beginning of its texts.
	Format string `json:"format,omitempty" jsonschema:"enum=events,enum=csv,default=events"`
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

// Column is a column of a list of requests.
type Column struct {
	Name string // in a CSV and in --columns
	Also string // words that mean it, too, with blanks between: the field of a Row, the heading of a table
	cell func(*Row) string
}

// Columns are the columns of requests, in the order of a CSV.
var Columns = []Column{
	{"started_at", "list_time started", func(r *Row) string { return r.ListTime.UTC().Format(time.RFC3339Nano) }},
	{"request_id", "", func(r *Row) string { return r.RequestID }},
	{"accepted_at", "", func(r *Row) string { return r.AcceptedAt.UTC().Format(time.RFC3339Nano) }},
	{"function_name", "", func(r *Row) string { return r.FunctionName }},
	{"provider", "provider_type", func(r *Row) string { return r.Provider }},
	{"model", "engine", func(r *Row) string { return r.Engine }},
	{"status", "", func(r *Row) string { return r.Status }},
	{"error_type", "", func(r *Row) string { return r.ErrorType }},
	{"error_message", "", (*Row).errorLine},
	{"finish_reason", "", func(r *Row) string { return r.FinishReason }},
	{"latency_seconds", "latency", func(r *Row) string { return decimalCell(r.Latency) }},
	{"time_to_first_token_ms", "", func(r *Row) string { return decimalCell(r.FirstTokenMS) }},
	{"input_tokens", "", func(r *Row) string { return integerCell(r.InputTokens) }},
	{"output_tokens", "", func(r *Row) string { return integerCell(r.OutputTokens) }},
	{"cached_tokens", "", func(r *Row) string { return integerCell(r.CachedTokens) }},
	{"cache_write_tokens", "", func(r *Row) string { return integerCell(r.CacheWrites) }},
	{"reasoning_tokens", "", func(r *Row) string { return integerCell(r.ReasoningTokens) }},
	{"cost_usd", "price cost", func(r *Row) string { return decimalCell(r.Price) }},
	{"template", "prompt_name", func(r *Row) string { return OrZero(r.PromptName) }},
	{"version", "prompt_version_number", func(r *Row) string { return integerCell(r.PromptVersion) }},
	{"label", "prompt_label", func(r *Row) string { return OrZero(r.PromptLabel) }},
	{"scores", "", func(r *Row) string { return inLine(r.Scores, " ") }},
	{"tags", "tags_array", func(r *Row) string { return strings.Join(r.Tags, ",") }},
	{"metadata", "", func(r *Row) string { return inLine(r.Metadata, "; ") }},
	{"session_id", "", func(r *Row) string { return r.SessionID }},
	{"user_id", "", func(r *Row) string { return r.UserID }},
	{"environment", "", func(r *Row) string { return r.Environment }},
	{"trace_id", "", func(r *Row) string { return r.TraceID }},
	{"group_ids", "", func(r *Row) string { return strings.Join(r.GroupIDs, ",") }},
	{"sidecar", "", func(r *Row) string { return r.Sidecar }},
	{"input_excerpt", "", func(r *Row) string { return r.InputExcerpt }},
	{"output_excerpt", "", func(r *Row) string { return r.OutputExcerpt }},
	{"tools", "tool_names", func(r *Row) string { return strings.Join(r.ToolNames, ",") }},
}

// CSVColumns are the columns of an export as CSV. Its heading is sent only where the
// export begins. The last column has a cursor now and then, which continues after its
// line.
//
// An answer that ends properly by HTTP is complete; one that breaks off is not.
var CSVColumns = func() (names []string) {
	for _, c := range Columns {
		if c.Name != "tools" {
			names = append(names, c.Name)
		}
	}

	return append(names, "cursor")
}()

// ColumnName returns the name of the column that a word means, such as "cost"; other words as they are.
func ColumnName(word string) string {
	for _, c := range Columns {
		if slices.Contains(strings.Fields(c.Also), word) {
			return c.Name
		}
	}

	return word
}

// MetadataColumn is before a metadata key in the name of the column that has its values.
const MetadataColumn = "metadata."

// Cell returns what the column of a name has of a row; "" for a name of none.
func (r *Row) Cell(name string) string {
	if key, ok := strings.CutPrefix(name, MetadataColumn); ok {
		for _, m := range r.Metadata {
			if m.Key == key {
				return m.Value
			}
		}
		return ""
	}

	at := slices.IndexFunc(Columns, func(c Column) bool { return c.Name == name })
	if at < 0 {
		return ""
	}

	return Columns[at].cell(r)
}

// CSV returns what the columns of some names have of a row. A spreadsheet takes no cell for a formula.
func (r *Row) CSV(names []string) []string {
	line := make([]string, len(names))
	for i, name := range names {
		// Every cell: names, tags and metadata are what callers sent.
		line[i] = CSVCell(r.Cell(name))
	}

	return line
}

// CSVExport writes records as CSV, a page of rows at a time.
type CSVExport struct {
	Columns []string
	Search  func(Search) (SearchPage, error)
	Record  func(requestID string) (Record, error)
}

// Write writes a line for each record that s finds, with the beginning of its texts: what a spreadsheet takes.
// It begins with page, which s has found. A search that continues another one gets no heading.
func (x CSVExport) Write(out io.Writer, s Search, page SearchPage) error {
	w := csv.NewWriter(out)
	if s.Cursor == "" {
		// w.Error returns its error below.
		_ = w.Write(x.Columns)
	}

	for {
		for i := range page.Items {
			line, err := x.line(&page.Items[i])
			if err != nil {
				return err
			}
			// The last row of a page has the cursor that continues after it.
			if at := slices.Index(x.Columns, "cursor"); at >= 0 && i == len(page.Items)-1 {
				line[at] = OrZero(page.NextCursor)
			}
			_ = w.Write(line)
		}
		if w.Flush(); w.Error() != nil || page.NextCursor == nil {
			return w.Error()
		}

		var err error
		s.Cursor = *page.NextCursor
		page, err = x.Search(s)
		if err != nil {
			return err
		}
	}
}

// line returns what the columns have of a row.
//
// A page of a search has only the beginning of long metadata. The record is read for the rest, one at a time, so
// that a page of them is never in memory.
func (x CSVExport) line(r *Row) ([]string, error) {
	if r.Truncated() {
		record, err := x.Record(r.RequestID)
		// Else it was deleted after the search.
		if err != nil && !IsCode(err, CodeNotFound) {
			return nil, err
		}
		r = r.WithMetadata(record.Metadata)
	}

	return r.CSV(x.Columns), nil
}

// errorLine returns the beginning of what went wrong, which a failed call's row has in the place of
// its response; "" if no more is known than the type of the error.
func (r *Row) errorLine() string {
	if r.Status != "ERROR" || r.OutputExcerpt == r.ErrorType {
		return ""
	}

	return r.OutputExcerpt
}

// inLine returns values as text, with a separator between them.
func inLine[T fmt.Stringer](values []T, between string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.String()
	}

	return strings.Join(texts, between)
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
