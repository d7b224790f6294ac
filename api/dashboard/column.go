package dashboard

import "slices"

// column is a column of the list of requests. The time at which they were accepted is
// always shown, and is not among them.
type column struct {
	Name, Text string
	Number     bool
	Excerpt    bool // the beginning of a text, in one line
	byDefault  bool // shown if the address names no columns
}

var columns = []column{
	{Name: "status", Text: "Status", byDefault: true},
	{Name: "input", Text: "Input", Excerpt: true, byDefault: true},
	{Name: "output", Text: "Output", Excerpt: true, byDefault: true},
	{Name: "model", Text: "Model", byDefault: true},
	{Name: "provider", Text: "Provider"},
	{Name: "template", Text: "Template", byDefault: true},
	{Name: "latency", Text: "Latency", Number: true, byDefault: true},
	{Name: "tokens", Text: "Tokens", Number: true, byDefault: true},
	{Name: "cost", Text: "Cost", Number: true, byDefault: true},
	{Name: "scores", Text: "Scores", byDefault: true},
	{Name: "tags", Text: "Tags", byDefault: true},
	{Name: "metadata", Text: "Metadata"},
	{Name: "tools", Text: "Tools called"},
	{Name: "finish", Text: "Finish reason"},
	{Name: "function", Text: "Function"},
	{Name: "sidecar", Text: "Sidecar"},
	{Name: "groups", Text: "Groups"},
}

// Shown returns the columns that a list shows.
func (f filter) Shown() []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !f.Shows(c.Name) })
}

// Shows reports whether a list shows a column.
func (f filter) Shows(name string) bool {
	if f.Columns != nil {
		return slices.Contains(f.Columns, name)
	}

	return slices.ContainsFunc(columns, func(c column) bool { return c.Name == name && c.byDefault })
}
