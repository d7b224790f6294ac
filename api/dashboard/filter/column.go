package filter

import "slices"

// Column is a column of the list of requests. The first one, when a call started and how it ended,
// is always shown, and is not among them.
type Column struct {
	Name, Text string
	Number     bool
	Label      string // in front of the number on a narrow page
	Excerpt    bool   // the beginning of a text, in one line
	Sort       string // the field that its heading sorts by, one of wire.SortFields; "" if it does not sort
	ByDefault  bool   // shown unless the reader chose columns
	Optional   bool   // left out of a list in which it is empty
	CSV        string // the names of what a CSV has in its place
}

// Columns are all columns, in their usual order.
var Columns = []Column{
	{Name: "status", Text: "Status", Sort: "status", CSV: "error_type"},
	{Name: "template", Text: "Template", ByDefault: true, Optional: true, CSV: "template version label"},
	{Name: "call", Text: "Input → output", ByDefault: true, CSV: "input_excerpt output_excerpt"},
	{Name: "input", Text: "Input", Excerpt: true, CSV: "input_excerpt"},
	{Name: "output", Text: "Output", Excerpt: true, CSV: "output_excerpt"},
	{Name: "model", Text: "Model", Optional: true, CSV: "model"},
	{Name: "provider", Text: "Provider", Optional: true, CSV: "provider"},
	{Name: "latency", Text: "Latency", Number: true, Sort: "latency_ms", ByDefault: true, CSV: "latency_seconds"},
	{Name: "first", Text: "First token", Number: true, Sort: "time_to_first_token_ms", CSV: "time_to_first_token_ms"},
	{Name: "tokens", Text: "Tokens", Number: true, Sort: "input_tokens", Optional: true,
		Label: "tokens", CSV: "input_tokens output_tokens cached_tokens reasoning_tokens"},
	{Name: "cache_writes", Text: "Cache writes", Number: true, Sort: "cache_write_tokens",
		Label: "cache writes", CSV: "cache_write_tokens"},
	{Name: "cost", Text: "Cost", Number: true, Sort: "cost", ByDefault: true, Optional: true, CSV: "cost_usd"},
	{Name: "score", Text: "Main score", Number: true, Label: "score", ByDefault: true, Optional: true, CSV: "scores"},
	{Name: "scores", Text: "All scores", Optional: true, CSV: "scores"},
	{Name: "tags", Text: "Tags", Optional: true, CSV: "tags"},
	{Name: "metadata", Text: "Metadata", Optional: true, CSV: "metadata"},
	{Name: "session", Text: "Session", CSV: "session_id"},
	{Name: "user", Text: "User", CSV: "user_id"},
	{Name: "environment", Text: "Environment", CSV: "environment"},
	{Name: "trace", Text: "Trace", CSV: "trace_id"},
	{Name: "tools", Text: "Tools called", Optional: true, CSV: "tools"},
	{Name: "finish", Text: "Finish reason", Optional: true, CSV: "finish_reason"},
	{Name: "function", Text: "Function", Optional: true, CSV: "function_name"},
	{Name: "sidecar", Text: "Sidecar", CSV: "sidecar"},
	{Name: "groups", Text: "Groups", Optional: true, CSV: "group_ids"},
}

// ColumnNames returns the names of columns that exist, in their usual order; nil if there are none.
func ColumnNames(names []string) (known []string) {
	for _, c := range Columns {
		if slices.Contains(names, c.Name) {
			known = append(known, c.Name)
		}
	}

	return known
}
