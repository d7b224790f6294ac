package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"
)

// TemplateListQuery is the query of GET /prompt-templates. Empty and zero fields do not
// filter.
type TemplateListQuery struct {
	// The page, from 1.
	Page int `json:"page,omitempty" jsonschema:"minimum=1,maximum=100000,default=1"`
	// Templates of a page. It has 100 at most, however many are asked for.
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=1000,default=30"`
	// A part of the name, in any case.
	Name string `json:"name,omitempty"`
	// A label that the template has.
	Label string `json:"label,omitempty"`
	// Tags that the template has, all of them.
	Tags []string `json:"tags,omitempty"`
	// Templates in use, archived ones, or both.
	Status string `json:"status,omitempty" jsonschema:"enum=active,enum=deleted,enum=all,default=active"`
	// Who published the first version.
	Author string `json:"created_by_email,omitempty"`
	// Only templates of which the first version was published then or later.
	CreatedAfter time.Time `json:"created_after,omitzero"`
	// Only templates of which the first version was published then or before.
	CreatedBefore time.Time `json:"created_before,omitzero"`
	// Only templates that were changed then or later.
	UpdatedAfter time.Time `json:"updated_after,omitzero"`
	// Only templates that were last changed then or before.
	UpdatedBefore time.Time `json:"updated_before,omitzero"`
	// The system that external_id is of; both are given together.
	Source string `json:"external_source,omitempty"`
	// The template's id in that system.
	ExternalID string `json:"external_id,omitempty"`
	// Only templates that others have as snippets or, with false, only the rest.
	IsSnippet *bool `json:"is_snippet,omitempty"`
	// The field to sort by.
	SortBy string `json:"sort_by,omitempty" jsonschema:"enum=name,enum=id,enum=created_at,enum=updated_at,default=name"`
	// Ascending by name, else descending, if it is left out.
	SortOrder string `json:"sort_order,omitempty" jsonschema:"enum=asc,enum=desc"`

	// Rank, which is not sent, takes the place of SortBy: the templates with the highest rank come first.
	Rank func(*Template) float64 `json:"-"`
}

// check rejects one half of an id in another system.
func (q *TemplateListQuery) check(f *fields) {
	if (q.Source == "") != (q.ExternalID == "") {
		f.fault("external_id", "and external_source can only be given together")
	}
}

// Match reports whether the list shows a template.
func (q *TemplateListQuery) Match(t *Template) bool {
	switch q.Status {
	case "all":
	case "deleted":
		if t.DeletedAt == nil {
			return false
		}
	default:
		if t.DeletedAt != nil {
			return false
		}
	}

	switch {
	case !strings.Contains(strings.ToLower(t.Name), strings.ToLower(q.Name)):
		return false
	case q.Author != "" && (len(t.Versions) == 0 || t.Versions[0].Author != q.Author):
		return false
	case q.ExternalID != "" && !slices.Contains(t.ExternalIDs, ExternalID{Source: q.Source, ID: q.ExternalID}):
		return false
	case !within(t.CreatedAt, q.CreatedAfter, q.CreatedBefore),
		!within(t.UpdatedAt, q.UpdatedAfter, q.UpdatedBefore):
		return false
	}

	for _, tag := range q.Tags {
		if !slices.Contains(t.Tags, tag) {
			return false
		}
	}

	if q.Label == "" {
		return true
	}
	_, ok := t.Resolve(Selector{Label: q.Label})
	return ok
}

// within reports whether at is between two times, inclusive; the zero time is not a bound.
func within(at, from, to time.Time) bool {
	return (from.IsZero() || !at.Before(from)) && (to.IsZero() || !at.After(to))
}

// Compare returns a negative number if the list shows a before b, else a positive one.
func (q *TemplateListQuery) Compare(a, b *Template) int {
	order := 0
	switch q.SortBy {
	case "created_at":
		order = a.CreatedAt.Compare(b.CreatedAt)
	case "updated_at":
		order = a.UpdatedAt.Compare(b.UpdatedAt)
	case "id":
		order = cmp.Compare(a.ID, b.ID)
	}
	if q.Rank != nil {
		order = cmp.Compare(q.Rank(b), q.Rank(a))
	}

	// Names are unique, so the order is total.
	order = cmp.Or(order, cmp.Compare(a.Name, b.Name))
	if q.SortOrder == "desc" || q.SortOrder == "" && q.SortBy != "" && q.SortBy != "name" {
		return -order
	}

	return order
}

// PageOf sorts the matching templates in place, and returns one page of them and their
// number.
func (q *TemplateListQuery) PageOf(matching []Template) ([]Template, int) {
	sort.Slice(matching, func(i, j int) bool { return q.Compare(&matching[i], &matching[j]) < 0 })

	page, perPage := max(q.Page, 1), max(q.PerPage, 1)
	// A page after the last one is empty.
	from := min(len(matching), (page-1)*perPage)
	return matching[from:min(len(matching), from+perPage)], len(matching)
}

// TemplateList answers GET /prompt-templates.
type TemplateList struct {
	Success bool               `json:"success"`
	Items   []TemplateListItem `json:"items"`
	Paging

	// Cache is "stale" if a sidecar answers from its own copies, without the server; else
	// "". It is sent as X-Cache.
	Cache string        `json:"-"`
	Age   time.Duration `json:"-"` // since all items were known to be current; sent as Age, in seconds
}

// LabelNames returns the names of the labels of templates, each once.
func LabelNames(templates []TemplateListItem) (names []string) {
	for _, t := range templates {
		for _, l := range t.Labels {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}

	return names
}

// TemplateListItem is a template with its latest version.
type TemplateListItem struct {
	ID            int64           `json:"id"` // the template's id
	Name          string          `json:"prompt_name"`
	Version       int             `json:"version"` // the number of the latest version
	Tags          []string        `json:"tags"`    // the template's tags
	Labels        []Label         `json:"labels"`
	Blueprint     json.RawMessage `json:"prompt_template"` // the text of the latest version, as a blueprint
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	LLMKwargs     json.RawMessage `json:"llm_kwargs"` // always null in a list
	ExternalIDs   []ExternalID    `json:"external_ids"`

	// Whether the latest version of another template has this one as a snippet.
	IsSnippet bool `json:"is_snippet"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}
