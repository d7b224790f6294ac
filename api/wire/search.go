package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire/jsonscan"
)

// LineRunesMax bounds a filter line.
const LineRunesMax = 4000

// FilterLine is a filter as people write it; package filterline has its grammar.
type FilterLine struct {
	// Line is a filter line, such as "status:error latency:>2s since:yesterday". It is combined
	// with filter_group and q: all of them must match.
	Line string `json:"filter,omitempty" jsonschema:"maxLength=4000"`

	// Zone is the time zone of the line's days, and of the days and hours of statistics, such as
	// Europe/Berlin or +02:00; UTC by default.
	Zone string `json:"tz,omitempty" jsonschema:"maxLength=512"`
}

// Filter is one condition of a search, or a group of conditions, which has filters.
type Filter struct {
	Logic   string   `json:"logic,omitempty"`   // AND (the default) or OR
	Filters []Filter `json:"filters,omitempty"` // the conditions and groups of a group

	Field     string          `json:"field,omitempty"`      // such as tags or cost
	Operator  string          `json:"operator,omitempty"`   // such as is, contains, gte or between
	Value     json.RawMessage `json:"value,omitempty"`      // an array for in and between
	NestedKey string          `json:"nested_key,omitempty"` // of a field that has keys, such as metadata
}

// Where returns one condition. The value is a text, a number or a time.
func Where(field, operator string, value any) Filter {
	raw, _ := json.Marshal(value) // these can be encoded
	return Filter{Field: field, Operator: operator, Value: raw}
}

// String returns the filter in words, for people; "" for none. No program reads it.
func (f *Filter) String() string {
	switch {
	case f == nil:
		return ""
	case len(f.Filters) == 0:
		name := strings.TrimSuffix(f.Field+"."+f.NestedKey, ".")
		return strings.TrimSpace(name + " " + f.Operator + " " + string(f.Value))
	}

	parts := make([]string, len(f.Filters))
	for i := range f.Filters {
		parts[i] = f.Filters[i].String()
		if len(f.Filters[i].Filters) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}

	return strings.Join(parts, " "+strings.ToLower(cmp.Or(f.Logic, "AND"))+" ")
}

// Search is the body of POST /api/public/v2/requests/search. Without SortBy, rows are
// sorted by order time, newest first. The API makes FilterGroup of Q and FilterLine, when a search is
// carried out. The archive checks the meaning of the filter.
type Search struct {
	// The conditions that records must match.
	FilterGroup *Filter `json:"filter_group,omitempty"`
	// Words in the prompt or response: a line without keys.
	Q string `json:"q,omitempty" jsonschema:"maxLength=1000"`
	FilterLine

	// SortBy is what to sort by: list_time (the default), accepted_at, request_start_time,
	// input_tokens, output_tokens, cost, latency_ms, time_to_first_token_ms, status, or
	// score.NAME for the numbers, or true and false, of a score.
	SortBy string `json:"sort_by,omitempty" read:"sort"`
	// Descending, if it is left out.
	SortOrder string `json:"sort_order,omitempty" jsonschema:"enum=asc,enum=desc"`
	// The page, from 1.
	Page int `json:"page,omitempty" jsonschema:"minimum=1,maximum=100000"`
	// How many a page has; 10 if it is left out.
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// The next_cursor of an earlier page, instead of page.
	Cursor string `json:"cursor,omitempty" jsonschema:"maxLength=2048"`

	// Quick is for who wants to know which rows there are, soon: without their excerpts and the
	// total, and with less time for reading prompts and responses. No caller can send it.
	Quick bool `json:"-"`
}

// SortFields are the fields that a search can be sorted by; accepted_at is the order
// time.
var SortFields = []string{
	"list_time", "accepted_at", "request_start_time", "input_tokens", "output_tokens", "cost", "latency_ms",
	"time_to_first_token_ms", "status", "cache_write_tokens",
}

// ScoreSort comes in front of a score's name, by whose values a search is sorted.
const ScoreSort = "score."

// SortWords are what a search can be sorted by, as people read it.
var SortWords = append(slices.Clone(SortFields), ScoreSort+"NAME")

// IsSortField reports whether a search can be sorted by a field.
func IsSortField(by string) bool {
	name, ofScore := strings.CutPrefix(by, ScoreSort)
	return ofScore && name != "" || slices.Contains(SortFields, by)
}

// SearchPage answers POST /api/public/v2/requests/search.
type SearchPage struct {
	Success bool  `json:"success"`
	Items   []Row `json:"items"`
	Paging
	// Whether more records than `total` may match. It counts up to 10,000, and less where prompts and
	// responses are searched.
	TotalIsLowerBound bool    `json:"total_is_lower_bound"`
	NextCursor        *string `json:"next_cursor"`

	// Start is a cursor that leads to this page also when newer rows have come. It is "" for
	// page numbers from 2 on, and is not sent.
	Start string `json:"-"`

	// Complete is false if the time for reading prompts and responses ran out before the
	// page was full. More matches may follow, and next_cursor continues where the search
	// stopped. Without next_cursor, calls of a long trace still take its user and session.
	Complete bool `json:"complete"`
	BudgetMS int  `json:"budget_ms,omitempty"` // the time for that; absent if none is needed
	Warned
}

// filter reads a filter, such as filter_group.
func (f *fields) filter(name string) *Filter {
	var raw json.RawMessage
	if f.isQuery {
		raw = f.quotedObject(name)
	} else {
		raw = f.json(name, false)
	}
	if raw == nil {
		return nil
	}

	filter, err := ParseFilter(raw)
	if err != nil {
		f.fault(name, "%v", err)
	}
	return filter
}

// quotedObject reads an object that is JSON in a string.
func (f *fields) quotedObject(name string) json.RawMessage {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}

	// encoding/json alone accepts what a body is rejected for, such as repeated members.
	text := []byte(jsonscan.Unquote(v))
	if _, err := ParseObject(text); err != nil {
		f.fault(name, "must be a filter group in JSON, like that of a search")
		return nil
	}
	return text
}

// These bound the conditions and groups of a filter, and how deep they are nested. An archive takes
// fewer; here they must not take many times their bytes of memory and time.
const (
	filtersMax      = 1000
	filterLevelsMax = 64
)

// ParseFilter reads the shape of a filter from valid JSON: the archive knows the fields and
// their operators. Its error is a predicate. A member that does not exist is an error:
// without it, the filter would find something else.
func ParseFilter(raw json.RawMessage) (*Filter, error) {
	if countFilters(raw, filtersMax, filterLevelsMax) <= 0 {
		return nil, fmt.Errorf("has more than %d filters and groups, or more than %d levels of them",
			filtersMax, filterLevelsMax)
	}

	filter := new(Filter)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(filter); err != nil {
		reason := `must be {"logic": "AND" or "OR", "filters": [...]}, ` +
			`and each filter {"field", "operator", "value", "nested_key"}`
		if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
			reason += "; it has " + name
		}
		return nil, errors.New(reason)
	}

	return filter, nil
}

// countFilters returns how many parts a filter may still have after those in raw, 0 if it has too
// many or too many levels.
func countFilters(raw json.RawMessage, left, levels int) int {
	if left--; len(raw) == 0 || raw[0] != '{' {
		return left
	}
	if levels == 0 {
		return 0
	}
	for m := range jsonscan.Members(raw) {
		// As encoding/json finds it.
		if !strings.EqualFold(m.Name, "filters") || m.Value[0] != '[' {
			continue
		}
		for _, part := range jsonscan.Elements(m.Value) {
			left = countFilters(part, left, levels-1)
			if left <= 0 {
				return 0
			}
		}
	}

	return left
}

// oneOf reads one of a list of words, maybe in any case; "" if it is absent or empty.
func (f *fields) oneOf(name string, words []string, anyCase bool) (found string) {
	f.fitting(name, words, func(text string) bool {
		i := slices.IndexFunc(words, func(word string) bool {
			return word == text || anyCase && strings.EqualFold(word, text)
		})
		if i >= 0 {
			found = words[i]
		}
		return i >= 0
	})

	return found
}

// fitting is oneOf for words that stand for what fits.
func (f *fields) fitting(name string, words []string, fits func(text string) bool) string {
	v, ok := f.raw(name, false)
	// A form that leaves its choice open sends an empty string.
	if !ok || string(v) == `""` {
		return ""
	}
	if v[0] == '"' && fits(jsonscan.Unquote(v)) {
		return jsonscan.Unquote(v)
	}

	f.fault(name, "must be one of: %s", strings.Join(words, ", "))
	return ""
}

// SuggestQuery asks for the values that a field has.
type SuggestQuery struct {
	// A field of a filter.
	Field string `json:"field"`
	// The beginning of the values, in any case.
	Prefix string `json:"prefix,omitempty"`
	// Which metadata, of a field that has keys.
	Key string `json:"metadata_key,omitempty"`
	// Only names of the template with this id; with the field prompt.
	TemplateID string `json:"prompt_id,omitempty" jsonschema:"type=integer,minimum=1"`
	// Only values of the records that this filter finds: JSON, as in a search.
	FilterGroup *Filter `json:"filter_group,omitempty"`
	FilterLine
	// How many values to list; 50 by default.
	Limit int `json:"limit,omitempty" jsonschema:"minimum=1,maximum=1000"`

	// Inside also finds values in which a word begins with Prefix, as triage does in support/triage.
	Inside bool `json:"-"`

	// Budget is how long records may be read; 0 leaves it to the server.
	Budget time.Duration `json:"-"`
}

// check reads the template's id. With any other field the number is ignored: in the peer's schema it is the
// number of a template, and narrows the field prompt only.
func (q *SuggestQuery) check(f *fields) {
	if q.Field != "prompt" {
		q.TemplateID = ""
	}
	if _, err := strconv.ParseUint(q.TemplateID, 10, 63); err != nil && q.TemplateID != "" {
		f.fault("prompt_id", "must be an integer of at least 1")
	}
}

// Suggestions answers GET /api/public/v2/requests/suggestions: distinct values, the
// newest records' first.
type Suggestions struct {
	Success bool     `json:"success"`
	Values  []string `json:"values"` // the values, those of the newest records first

	// Complete is false if there are more values, or older records that were not read.
	Complete bool `json:"complete"`
}

// RollupKinds are what records are summed up by, as paths name them.
var RollupKinds = []string{"sessions", "traces", "users"}

// RollupSearch is the body of POST /api/public/v2/sessions/search, and of the same for traces and
// users.
type RollupSearch struct {
	Of string `json:"-"` // one of RollupKinds, in the path

	// The conditions that at least one of its calls must match.
	FilterGroup *Filter `json:"filter_group,omitempty"`
	// Words in the prompt or response: a line without keys of one.
	Q string `json:"q,omitempty" jsonschema:"maxLength=1000"`
	FilterLine

	// Having is what it must be itself: conditions like those of filter_group, all of which must
	// hold. Their fields are id and those of sort_by.
	Having *Filter `json:"having,omitempty"`

	// SortBy is what to sort by: last_seen (the default), first_seen, duration_ms, turns, spans,
	// cost, tokens, input_tokens, output_tokens, errors or mean_score.
	SortBy string `json:"sort_by,omitempty" read:"rollup sort"`
	// Descending, if it is left out.
	SortOrder string `json:"sort_order,omitempty" jsonschema:"enum=asc,enum=desc"`
	// How many a page has; 10 if it is left out.
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// The next_cursor of an earlier page.
	Cursor string `json:"cursor,omitempty" jsonschema:"maxLength=2048"`
}

// RollupSortFields are the fields that sessions, traces and users can be sorted by.
var RollupSortFields = []string{
	"last_seen", "first_seen", "duration_ms", "turns", "spans", "cost", "tokens", "input_tokens", "output_tokens",
	"errors", "mean_score",
}

// Rollup is what the records of a session, a trace or a user add up to.
type Rollup struct {
	ID           string    `json:"id"`             // as records name it; of a trace 32 hexadecimal digits
	Name         string    `json:"name,omitempty"` // of a trace's first span, on pages of at most 100 traces
	FirstSeen    time.Time `json:"first_seen"`     // when the first began; after a deletion it may be earlier
	LastSeen     time.Time `json:"last_seen"`      // when the last ended; after a deletion it may be later
	Turns        int64     `json:"turns"`          // calls
	Spans        int64     `json:"spans"`          // spans that name it, calls among them
	Cost         float64   `json:"cost"`           // US dollars, of calls with a known price
	InputTokens  int64     `json:"input_tokens"`
	OutputTokens int64     `json:"output_tokens"`
	Errors       int64     `json:"errors"`     // calls and spans that failed
	Scores       int64     `json:"scores"`     // how many integer scores there are
	MeanScore    *float64  `json:"mean_score"` // of all integer scores; null without any
}

// Score returns the mean score as lists show it; "" without one.
func (r Rollup) Score() string {
	if r.MeanScore == nil {
		return ""
	}
	return strconv.FormatFloat(*r.MeanScore, 'f', 1, 64)
}

// Calls returns the search for the calls of a session, oldest first.
func (r Rollup) Calls() Search {
	return Search{
		// The times spare the search what was long before or after.
		FilterGroup: &Filter{Filters: []Filter{
			Where("session_id", "is", r.ID),
			Where("list_time", "gte", r.FirstSeen),
			Where("list_time", "lte", r.LastSeen.Add(time.Millisecond)),
		}},
		SortBy:    "list_time",
		SortOrder: "asc",
	}
}

// RollupPage answers a search for sessions, traces or users.
type RollupPage struct {
	Success    bool     `json:"success"`
	Items      []Rollup `json:"items"`
	Total      int      `json:"total"` // of all pages, if complete
	NextCursor *string  `json:"next_cursor"`

	// Complete is false if there was no time to look at all calls. The items are then those of the
	// newest calls that match, in their order, and next_cursor continues with older ones. Without
	// next_cursor, calls of a long trace still take its user and session.
	Complete bool `json:"complete"`
	Warned
}

// RollupFound answers GET /api/public/v2/sessions/{id}.
type RollupFound struct {
	Success bool `json:"success"`
	Rollup

	OwnScores []Score `json:"own_scores"` // of the session itself, by name
}

// SpanSearch is the body of POST /api/public/v2/spans/search.
type SpanSearch struct {
	// A part of the span's name.
	Name string `json:"name,omitempty" jsonschema:"maxLength=1000"`
	// Such as llm, agent or tool.
	Kind string `json:"kind,omitempty" jsonschema:"maxLength=1000"`
	// How it ended.
	Status string `json:"status,omitempty" jsonschema:"enum=SUCCESS,enum=WARNING,enum=ERROR"`

	// The conditions that at least one call of its trace must match.
	FilterGroup *Filter `json:"filter_group,omitempty"`
	FilterLine
	// The conditions of its trace, as in a search for traces.
	Having *Filter `json:"having,omitempty"`
	// How many a page has; 10 if it is left out.
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// The next_cursor of an earlier page.
	Cursor string `json:"cursor,omitempty" jsonschema:"maxLength=2048"`

	// ID, if it is set, is the id of the span.
	ID string `json:"-"`
}

// Matches reports whether a span is what the search is for, apart from its trace.
func (s *SpanSearch) Matches(span *TraceSpan) bool {
	return strings.Contains(span.Name, s.Name) && (s.ID == "" || s.ID == span.SpanID) &&
		(s.Kind == "" || strings.EqualFold(s.Kind, span.Kind)) &&
		(s.Status == "" || s.Status == span.Status)
}

// SpanPage answers a search for spans.
type SpanPage struct {
	Success    bool        `json:"success"`
	Items      []FoundSpan `json:"items"`       // by trace, the one seen last first, then by start
	Complete   bool        `json:"complete"`    // false if the time ran out before the page was full
	NextCursor *string     `json:"next_cursor"` // null on the last page
}

// FoundSpan is a span with its trace.
type FoundSpan struct {
	TraceID string `json:"trace_id"` // of its trace
	TraceSpan
}
