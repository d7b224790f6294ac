package wire

import (
	"strconv"
	"strings"
	"time"
)

// CSVColumns are the columns of an export as CSV, whose heading stands where the export begins. The last column holds a cursor now and
// then, which goes on behind its line. An answer that ends as HTTP says an answer ends is complete; one that is cut is not.
var CSVColumns = []string{"request_id", "accepted_at", "function_name", "provider", "model", "status", "error_type", "finish_reason", "latency_seconds",
	"input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd", "template", "version", "label", "scores", "tags", "metadata", "group_ids", "sidecar", "cursor"}

// CSVLine returns the row as a line of CSVColumns, with no cell that a spreadsheet takes for a formula.
func (r *Row) CSVLine(cursor string) []string {
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	or := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	latency, cost, version := "", "", ""
	if r.Latency != nil {
		latency = strconv.FormatFloat(*r.Latency, 'f', -1, 64)
	}
	if r.Price != nil {
		cost = strconv.FormatFloat(*r.Price, 'f', -1, 64)
	}
	if r.PromptVersion != nil {
		version = strconv.Itoa(*r.PromptVersion)
	}
	var metadata, scores []string
	for _, s := range r.Scores {
		scores = append(scores, s.Name+"="+strconv.Itoa(s.Score))
	}
	for _, m := range r.Metadata {
		metadata = append(metadata, m.Key+"="+m.Value)
	}
	line := []string{r.RequestID, r.AcceptedAt.UTC().Format(time.RFC3339Nano), r.FunctionName, r.Provider, r.Engine, r.Status, r.ErrorType, r.FinishReason, latency,
		number(r.InputTokens), number(r.OutputTokens), number(r.CachedTokens), number(r.ReasoningTokens), cost, or(r.PromptName), version, or(r.PromptLabel),
		strings.Join(scores, " "), strings.Join(r.Tags, ","), strings.Join(metadata, "; "), strings.Join(r.GroupIDs, ","), r.Sidecar, cursor}
	for i := range line {
		line[i] = unarmed(line[i])
	}
	return line
}

// unarmed keeps a spreadsheet from taking a cell for a formula (https://owasp.org/www-community/attacks/CSV_Injection): one that
// begins like a formula gets an apostrophe before it, which spreadsheets do not show. No number here is negative.
func unarmed(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n|", rune(s[0])) {
		return "'" + s
	}
	return s
}
