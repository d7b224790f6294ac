package filter

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
)

// Column is a column of the list of requests. The first one, when a call started and how it ended,
// is always shown, and is not among them.
type Column struct {
	Name, Text string
	Key        string // the metadata key whose values it has; "" for all other columns
	Around     bool   // it shows what is known around the call, rather than the call itself
	Number     bool
	Label      string // in front of the number on a narrow page
	Excerpt    bool   // the beginning of a text, in one line
	Sort       string // the field that its heading sorts by, one of wire.SortFields; "" if it does not sort
	ByDefault  bool   // shown unless the reader chose columns
	Optional   bool   // left out of a list in which it is empty
	CSV        string // the names of those of wire.Columns that a CSV has in its place

	cell func(*wire.Row) Cell // nil for the text that a CSV has
}

// Cell is what a column shows of a request.
type Cell struct {
	Text, Soft string // Soft is of less weight
	Href       string // where Text leads; "" for nowhere
	Badges     []string
}

// Columns are all columns but those of metadata keys, in their usual order.
var Columns = []Column{
	{Name: "status", Text: "Status", Sort: "status", CSV: "error_type"},
	{Name: "template", Text: "Template", ByDefault: true, Optional: true, CSV: "template version label",
		cell: templateCell},
	{Name: "call", Text: "Input → output", ByDefault: true, CSV: "input_excerpt output_excerpt"},
	{Name: "input", Text: "Input", Excerpt: true, CSV: "input_excerpt"},
	{Name: "output", Text: "Output", Excerpt: true, CSV: "output_excerpt"},
	{Name: "model", Text: "Model", Optional: true, CSV: "model"},
	{Name: "provider", Text: "Provider", Optional: true, CSV: "provider"},
	{Name: "latency", Text: "Latency", Number: true, Sort: "latency_ms", ByDefault: true, CSV: "latency_seconds",
		cell: func(r *wire.Row) Cell { return Cell{Text: number.Latency(r.Latency)} }},
	{Name: "first", Text: "First token", Number: true, Sort: "time_to_first_token_ms",
		CSV: "time_to_first_token_ms", cell: firstTokenCell},
	{Name: "tokens", Text: "Tokens", Number: true, Sort: "input_tokens", Optional: true, Label: "tokens",
		CSV: "input_tokens output_tokens cached_tokens reasoning_tokens", cell: tokensCell},
	{Name: "cache_writes", Text: "Cache writes", Number: true, Sort: "cache_write_tokens", Label: "cache writes",
		CSV:  "cache_write_tokens",
		cell: func(r *wire.Row) Cell { return Cell{Text: number.Tokens(r.CacheWrites)} }},
	{Name: "cost", Text: "Cost", Number: true, Sort: "cost", ByDefault: true, Optional: true, CSV: "cost_usd",
		cell: func(r *wire.Row) Cell { return Cell{Text: number.Cost(r.Price)} }},
	{Name: "score", Around: true, Text: "Main score", Number: true, Label: "score", ByDefault: true, Optional: true,
		CSV: "scores"},
	{Name: "scores", Around: true, Text: "All scores", Optional: true, CSV: "scores", cell: scoresCell},
	{Name: "tags", Around: true, Text: "Tags", Optional: true, CSV: "tags",
		cell: func(r *wire.Row) Cell { return Cell{Badges: r.Tags} }},
	{Name: "metadata", Around: true, Text: "Metadata", Optional: true, CSV: "metadata", cell: metadataCell},
	{Name: "session", Around: true, Text: "Session", CSV: "session_id",
		cell: func(r *wire.Row) Cell { return Cell{Text: r.SessionID, Href: address.Session(r.SessionID)} }},
	{Name: "user", Around: true, Text: "User", CSV: "user_id"},
	{Name: "environment", Around: true, Text: "Environment", CSV: "environment"},
	{Name: "trace", Around: true, Text: "Trace", CSV: "trace_id",
		cell: func(r *wire.Row) Cell {
			return Cell{Text: r.TraceID[:min(8, len(r.TraceID))], Href: "/traces/" + r.TraceID}
		}},
	{Name: "tools", Text: "Tools called", Optional: true, CSV: "tools",
		cell: func(r *wire.Row) Cell { return Cell{Badges: r.ToolNames} }},
	{Name: "finish", Text: "Finish reason", Optional: true, CSV: "finish_reason"},
	{Name: "function", Text: "Function", Optional: true, CSV: "function_name"},
	{Name: "sidecar", Around: true, Text: "Sidecar", CSV: "sidecar"},
	{Name: "groups", Around: true, Text: "Groups", Optional: true, CSV: "group_ids",
		cell: func(r *wire.Row) Cell { return Cell{Badges: r.GroupIDs} }},
}

// Cell returns what the column shows of a request.
func (c Column) Cell(r *wire.Row) Cell {
	if c.cell == nil {
		return Cell{Text: r.Cell(c.CSV)}
	}

	return c.cell(r)
}

// Cells returns the names of those of wire.Columns that a CSV has in its place.
func (c Column) Cells() []string {
	if c.Key != "" {
		return []string{c.CSV} // it may have spaces
	}

	return strings.Fields(c.CSV)
}

// IsEmpty reports whether the column shows nothing of a request.
func (c Column) IsEmpty(r *wire.Row) bool {
	return !slices.ContainsFunc(c.Cells(), func(name string) bool { return r.Cell(name) != "" })
}

func templateCell(r *wire.Row) (c Cell) {
	c.Text = wire.OrZero(r.PromptName)
	if r.PromptVersion != nil {
		c.Soft = "v" + r.Cell("version")
	}

	return c
}

func firstTokenCell(r *wire.Row) Cell {
	if r.FirstTokenMS == nil {
		return Cell{Text: "–"}
	}

	return Cell{Text: number.LatencyMS(r.FirstTokenMS)}
}

func tokensCell(r *wire.Row) Cell {
	if r.InputTokens == nil && r.OutputTokens == nil {
		return Cell{Text: "–"}
	}

	return Cell{Text: number.Tokens(r.InputTokens) + " + " + number.Tokens(r.OutputTokens)}
}

func scoresCell(r *wire.Row) (c Cell) {
	for _, s := range r.Scores {
		c.Badges = append(c.Badges, s.Name+"="+s.Short())
	}

	return c
}

func metadataCell(r *wire.Row) (c Cell) {
	for _, m := range r.Metadata {
		c.Badges = append(c.Badges, m.Key+" "+m.Value)
	}

	return c
}

// Bounds of the columns of metadata keys. A cookie keeps their names.
const (
	keyColumnsMax    = 8
	keyColumnNameMax = 100
)

// ColumnsOf returns the columns of some names, in their usual order. After them are those of metadata keys.
// Other names are ignored.
func ColumnsOf(names []string) (all []Column) {
	for _, c := range Columns {
		if slices.Contains(names, c.Name) {
			all = append(all, c)
		}
	}

	usual := len(all)
	for _, name := range names {
		key, ok := strings.CutPrefix(name, wire.MetadataColumn)
		known := slices.ContainsFunc(all, func(c Column) bool { return c.Name == name })
		if ok && !known && key != "" && len(name) <= keyColumnNameMax && len(all) < usual+keyColumnsMax {
			all = append(all, Column{Name: name, Text: key, Key: key, Label: key, Around: true, CSV: name})
		}
	}

	return all
}

// ColumnNames returns the names of what ColumnsOf returns; nil if that is nothing.
func ColumnNames(names []string) (known []string) {
	for _, c := range ColumnsOf(names) {
		known = append(known, c.Name)
	}

	return known
}

// Order is how a list is sorted. An address has it as sort and order; the zero Order is requests,
// newest first.
type Order struct {
	By        string // as wire.IsSortField allows, or one of wire.RollupSortFields; "" for newest first
	Ascending bool

	usual string // the field of newest first; "" is ByTime
}

// ByTime is the field of the time by which a list is sorted anyway.
const ByTime = "list_time"

// readOrder reads the order in an address, by one of some fields. Whatever is none sorts newest first,
// by the first field.
func readOrder(q url.Values, fields []string) Order {
	o := Order{By: q.Get("sort"), Ascending: q.Get("order") == "asc", usual: fields[0]}
	isScore := fields[0] == ByTime && wire.IsSortField(o.By)
	if !isScore && !slices.Contains(fields, o.By) || o.By == o.usual && !o.Ascending {
		return Order{usual: o.usual}
	}

	return o
}

// set puts the order into an address.
func (o Order) set(q url.Values) {
	if o.By == "" {
		return
	}
	q.Set("sort", o.By)
	if o.Ascending {
		q.Set("order", "asc")
	}
}

// field returns what the list is sorted by.
func (o Order) field() string { return cmp.Or(o.By, o.usual, ByTime) }

// Direction returns the direction in which a list is sorted by a field, as aria-sort has it. It returns ""
// if the list is sorted by another field.
func (o Order) Direction(field string) string {
	switch {
	case o.field() != field:
		return ""
	case o.Ascending:
		return "ascending"
	}

	return "descending"
}

// Next returns the order after a click on the heading of a field. That is the highest first, or the other
// way round if it is so already.
func (o Order) Next(field string) Order {
	turned := Order{By: field, Ascending: o.Direction(field) == "descending", usual: o.usual}
	if field == cmp.Or(o.usual, ByTime) && !turned.Ascending {
		turned.By = ""
	}

	return turned
}

// Text returns the order in words.
func (o Order) Text() string {
	name, _ := strings.CutPrefix(o.By, wire.ScoreSort)
	words := map[string][2]string{
		wire.ScoreSort + name:    {"highest " + name + " first", "lowest " + name + " first"},
		ByTime:                   {"newest first", "oldest first"},
		"accepted_at":            {"last received first", "first received first"},
		"request_start_time":     {"latest start first", "earliest start first"},
		"latency_ms":             {"slowest first", "fastest first"},
		"time_to_first_token_ms": {"slowest first token first", "fastest first token first"},
		"cost":                   {"most expensive first", "cheapest first"},
		"input_tokens":           {"most input tokens first", "fewest input tokens first"},
		"output_tokens":          {"most output tokens first", "fewest output tokens first"},
		"status":                 {"by status, from Z to A", "by status, from A to Z"},
		"cache_write_tokens":     {"most cache writes first", "fewest cache writes first"},
		"last_seen":              {"most recent first", "least recent first"},
		"first_seen":             {"newest first", "oldest first"},
		"duration_ms":            {"longest first", "shortest first"},
		"turns":                  {"most turns first", "fewest turns first"},
		"spans":                  {"most spans first", "fewest spans first"},
		"tokens":                 {"most tokens first", "fewest tokens first"},
		"errors":                 {"most errors first", "fewest errors first"},
		"mean_score":             {"highest mean score first", "lowest mean score first"},
	}[o.field()]
	if o.Ascending {
		return words[1]
	}

	return words[0]
}
