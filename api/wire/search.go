package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire/jsonscan"
)

// QueryRunesMax bounds the free text of a search.
const QueryRunesMax = 1000

// Filter is one condition of a search, or a group of them, which has filters.
type Filter struct {
	Logic   string   `json:"logic,omitempty"` // AND (the default) or OR
	Filters []Filter `json:"filters,omitempty"`

	Field     string          `json:"field,omitempty"`      // such as tags or cost
	Operator  string          `json:"operator,omitempty"`   // such as is, contains, gte or between
	Value     json.RawMessage `json:"value,omitempty"`      // an array for in and between
	NestedKey string          `json:"nested_key,omitempty"` // of a field that has keys, such as metadata
}

// Search is the body of POST /api/public/v2/requests/search. Newest first by order time, unless SortBy says otherwise.
type Search struct {
	FilterGroup *Filter `json:"filter_group,omitempty"` // what records must fit
	Q           string  `json:"q,omitempty"`            // words that prompt or response must hold, all of them, in any case
	// By what to sort: accepted_at, if it is left out, request_start_time, input_tokens, output_tokens, cost, latency_ms
	// or status.
	SortBy    string `json:"sort_by,omitempty"`
	SortOrder string `json:"sort_order,omitempty"` // one of asc and desc; desc if it is left out
	Page      int    `json:"page,omitempty"`       // from 1
	PerPage   int    `json:"per_page,omitempty"`   // 10 if it is left out, at most 1,000
	Cursor    string `json:"cursor,omitempty"`     // the next_cursor of an earlier page, in place of page
}

// SortFields are what a search can be sorted by; accepted_at is the order time, by which rows come newest first without any.
var SortFields = []string{"accepted_at", "request_start_time", "input_tokens", "output_tokens", "cost", "latency_ms", "status"}

// SearchPage answers POST /api/public/v2/requests/search.
type SearchPage struct {
	Success bool  `json:"success"`
	Items   []Row `json:"items"`
	Paging
	TotalIsLowerBound bool    `json:"total_is_lower_bound"`
	NextCursor        *string `json:"next_cursor"`
	// Complete is false when the time for looking into prompts and responses ran out before the page was full: matches may
	// follow, and next_cursor goes on where it ended.
	Complete bool `json:"complete"`
	BudgetMS int  `json:"budget_ms,omitempty"` // the time for prompts and responses; absent if the search need not look into them
}

// DecodeSearch reads the body of a search. Nothing, as of an absent body, means everything. The filter's meaning is the archive's
// to check.
func DecodeSearch(object Object) (Search, error) {
	f := fields{object: object}
	s := Search{
		FilterGroup: f.filter(),
		Q:           f.text("q", false, QueryRunesMax),
		Page:        f.count("page", PageOffsetMax),
		PerPage:     f.count("per_page", PageItemsMax),
		Cursor:      f.text("cursor", false, CursorRunesMax),
	}
	s.SortBy = f.oneOf("sort_by", SortFields)
	s.SortOrder = f.oneOf("sort_order", []string{"asc", "desc"})
	return s, f.err()
}

// CursorRunesMax bounds a cursor.
const CursorRunesMax = 2048

// filter reads filter_group.
func (f *fields) filter() *Filter {
	raw := f.json("filter_group", false)
	if raw == nil {
		return nil
	}
	filter := new(Filter)
	if err := json.Unmarshal(raw, filter); err != nil {
		f.fault("filter_group", `must be {"logic": "AND" or "OR", "filters": [...]}, and each filter {"field", "operator", "value"}`)
	}
	return filter
}

// oneOf reads a word of a list; "" if it is absent or empty.
func (f *fields) oneOf(name string, words []string) string {
	v, ok := f.raw(name, false)
	if !ok || string(v) == `""` {
		return ""
	}
	if v[0] == '"' && slices.Contains(words, jsonscan.Unquote(v)) {
		return jsonscan.Unquote(v)
	}
	f.fault(name, "must be one of: %s", strings.Join(words, ", "))
	return ""
}

// count reads an integer of at least 1; 0 if it is absent.
func (f *fields) count(name string, most int64) int {
	v, ok := f.raw(name, false)
	if !ok {
		return 0
	}
	n, ok := integer(v)
	if !ok || n < 1 || n > most {
		f.fault(name, "must be an integer from 1 to %d", most)
		return 0
	}
	return int(n)
}

// SuggestQuery asks for values that a field has.
type SuggestQuery struct {
	Field       string  `json:"field"`                  // a field of a filter, or one of the peer's names for suggestions
	Prefix      string  `json:"prefix,omitempty"`       // what the values begin with, in any case
	Key         string  `json:"metadata_key,omitempty"` // of a field that has keys
	TemplateID  string  `json:"prompt_id,omitempty"`    // of a template by its decimal id, with field prompt only
	FilterGroup *Filter `json:"filter_group,omitempty"` // of these records only
	Limit       int     `json:"limit,omitempty"`        // 0 is 50, at most PageItemsMax
	// Budget is how long records may be looked at; 0 is as long as the server likes.
	Budget time.Duration `json:"-"`
}

// Suggestions answers GET /api/public/v2/requests/suggestions: distinct values, those of the newest records first.
type Suggestions struct {
	Success bool     `json:"success"`
	Values  []string `json:"values"`
	// Complete is false when there are more values, or older records that were not looked at.
	Complete bool `json:"complete"`
}
