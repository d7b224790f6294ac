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
	Page, PerPage int      // pages count from 1
	Name          string   // a part of the name, in any case
	Label         string   // that the template has
	Tags          []string // that the template has, all of them
	Status        string   // one of TemplateStatuses; "" is active
	Author        string   // who published the first version

	External  ExternalID // that the template has; both parts or none
	IsSnippet *bool      // nil: snippets and others. Match leaves it to the registry

	CreatedAfter, CreatedBefore time.Time // inclusive
	UpdatedAfter, UpdatedBefore time.Time

	SortBy    string // one of TemplateSorts; "" is name
	SortOrder string // asc or desc; "" is asc by name, else desc

	// Rank, which is not sent, takes the place of SortBy: the templates with the highest rank come first.
	Rank func(*Template) float64
}

// TemplateStatuses are the states that a list can show: templates in use, archived ones,
// or both.
var TemplateStatuses = []string{"active", "deleted", "all"}

// TemplateSorts are the fields that a list can be sorted by.
var TemplateSorts = []string{"name", "id", "created_at", "updated_at"}

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
	case q.External != ExternalID{} && !slices.Contains(t.ExternalIDs, q.External):
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
