package dashboard

import "slices"

// column is a column of the list of requests. The first one, when a call started and how it ended,
// is always shown, and is not among them.
type column struct {
	Name, Text string
	Number     bool
	Excerpt    bool   // the beginning of a text, in one line
	Sort       string // the field that its heading sorts by, one of wire.SortFields; "" if it does not sort
	byDefault  bool   // shown unless the reader chose columns
	csv        string // the names of what a CSV has in its place
}

var columns = []column{
	{Name: "status", Text: "Status", Sort: "status", csv: "error_type"},
	{Name: "template", Text: "Template", byDefault: true, csv: "template version label"},
	{Name: "call", Text: "Input → output", byDefault: true, csv: "input_excerpt output_excerpt"},
	{Name: "input", Text: "Input", Excerpt: true, csv: "input_excerpt"},
	{Name: "output", Text: "Output", Excerpt: true, csv: "output_excerpt"},
	{Name: "model", Text: "Model", csv: "model"},
	{Name: "provider", Text: "Provider", csv: "provider"},
	{Name: "latency", Text: "Latency", Number: true, Sort: "latency_ms", byDefault: true, csv: "latency_seconds"},
	{Name: "tokens", Text: "Tokens", Number: true, Sort: "input_tokens",
		csv: "input_tokens output_tokens cached_tokens reasoning_tokens"},
	{Name: "cost", Text: "Cost", Number: true, Sort: "cost", byDefault: true, csv: "cost_usd"},
	{Name: "score", Text: "Main score", Number: true, byDefault: true, csv: "scores"},
	{Name: "scores", Text: "All scores", csv: "scores"},
	{Name: "tags", Text: "Tags", csv: "tags"},
	{Name: "metadata", Text: "Metadata", csv: "metadata"},
	{Name: "tools", Text: "Tools called", csv: "tools"},
	{Name: "finish", Text: "Finish reason", csv: "finish_reason"},
	{Name: "function", Text: "Function", csv: "function_name"},
	{Name: "sidecar", Text: "Sidecar", csv: "sidecar"},
	{Name: "groups", Text: "Groups", csv: "group_ids"},
}

// namedColumns returns the names of columns that exist, in their usual order; nil if there are none.
func namedColumns(names []string) (known []string) {
	for _, c := range columns {
		if slices.Contains(names, c.Name) {
			known = append(known, c.Name)
		}
	}

	return known
}

// defaultColumns returns the names of the columns that are shown unless the reader chose others.
func defaultColumns() (names []string) {
	for _, c := range columns {
		if c.byDefault {
			names = append(names, c.Name)
		}
	}

	return names
}

// heading is the heading of a column, which may sort the list.
type heading struct {
	column
	Href   string // the list sorted by this column; "" if it cannot be
	Sorted string // ascending or descending if it is sorted by this column
}

// headings returns those of a list: of the first column, and of the shown ones. main names the score
// that its rows show.
func (f filter) headings(shown []column, main string) []heading {
	all := []heading{{column: column{Name: "started", Text: "Started", Sort: byTime}}}
	for _, c := range shown {
		all = append(all, heading{column: c})
	}

	for i, h := range all {
		if h.Name == "score" && main != "" {
			all[i].Text = main
		}
		if h.Sort == "" {
			continue
		}
		sorted := f
		sorted.Order = f.Order.next(h.Sort)
		all[i].Href = sorted.requests()
		all[i].Sorted = f.Order.Direction(h.Sort)
	}

	return all
}
