package dashboard

import "slices"

// column is a column of the list of requests, beside the moment at which they were accepted.
type column struct {
	Name, Text string
	Number     bool
	usual      bool // shown when nobody chose
}

var columns = []column{
	{Name: "status", Text: "Status", usual: true}, {Name: "model", Text: "Model", usual: true}, {Name: "provider", Text: "Provider"}, {Name: "template", Text: "Template", usual: true},
	{Name: "latency", Text: "Latency", Number: true, usual: true}, {Name: "tokens", Text: "Tokens", Number: true, usual: true},
	{Name: "cost", Text: "Cost", Number: true, usual: true}, {Name: "scores", Text: "Scores", usual: true},
	{Name: "tags", Text: "Tags", usual: true}, {Name: "metadata", Text: "Metadata"},
	{Name: "tools", Text: "Tools called"}, {Name: "finish", Text: "Finish reason"}, {Name: "function", Text: "Function"},
	{Name: "sidecar", Text: "Sidecar"}, {Name: "groups", Text: "Groups"},
}

// Shown are the columns that a list shows.
func (f filter) Shown() []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !f.Shows(c.Name) })
}

// Shows says whether a list shows a column.
func (f filter) Shows(name string) bool {
	if f.Columns != nil {
		return slices.Contains(f.Columns, name)
	}
	return slices.ContainsFunc(columns, func(c column) bool { return c.Name == name && c.usual })
}
