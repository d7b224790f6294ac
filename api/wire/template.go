package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Template is the head of a template: everything except the texts of its versions.
type Template struct {
	ID         int64    `json:"id"`
	Name       string   `json:"prompt_name"`
	Tags       []string `json:"tags"`
	Labels     []Label  `json:"labels"`                // sorted by name
	LabelsMade int64    `json:"labels_made,omitempty"` // how many labels it ever had; see LabelID
	Moves      []Move   `json:"moves"`                 // the labels' history, oldest first
	Versions   []Stamp  `json:"versions"`

	// ExternalIDs are the template's ids in other systems.
	ExternalIDs []ExternalID `json:"external_ids,omitempty"`

	// Snippets are the templates that the latest version has as snippets, each once.
	Snippets []string `json:"snippets"`

	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	DeletedAt *time.Time `json:"deleted_at,omitempty"`

	// Revision is the project's registry revision that last changed this template; see
	// Changes.
	Revision uint64 `json:"revision"`
}

// ExternalID is the id of a template in another system.
type ExternalID struct {
	// The other system.
	Source string `json:"source" jsonschema:"minLength=1,maxLength=128"`
	// The template's id there.
	ID string `json:"external_id" jsonschema:"minLength=1,maxLength=512"`
}

// Latest returns the newest version's number; 0 if there is none.
func (t *Template) Latest() int { return len(t.Versions) }

// Resolve returns the version that a selector means now, and whether there is one. A
// label takes precedence over a version.
func (t *Template) Resolve(s Selector) (int, bool) {
	switch {
	case s.Label != "":
		i := slices.IndexFunc(t.Labels, func(l Label) bool { return l.Name == s.Label })
		if i < 0 {
			return 0, false
		}
		return t.Labels[i].Version, true
	case s.Version > 0:
		return s.Version, s.Version <= t.Latest()
	}
	return t.Latest(), t.Latest() > 0
}

// ResolveAt is Resolve at an earlier moment: the version that was latest, or labelled,
// then.
func (t *Template) ResolveAt(s Selector, at time.Time) (version int, ok bool) {
	switch {
	case s.Label != "":
		for _, m := range t.Moves {
			// Oldest first, so the last one before the moment
			// counts. A removal leaves version 0.
			if m.Label == s.Label && !m.At.After(at) {
				version = m.Version
			}
		}
	case s.Version > 0:
		return t.Resolve(s)
	default:
		for i, v := range t.Versions {
			if !v.At.After(at) {
				version = i + 1
			}
		}
	}

	return version, version > 0
}

// Stamp is the head's summary of a version; version n is at index n-1.
type Stamp struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Message string    `json:"commit_message,omitempty"`
	Author  string    `json:"author,omitempty"` // an email, or the id of a key
}

// Version is one version of a template. It never changes.
type Version struct {
	ID            int64           `json:"id"`
	TemplateID    int64           `json:"template_id"`
	Number        int             `json:"number"`
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"` // an object, or null
	CommitMessage string          `json:"commit_message"`
	Author        string          `json:"author,omitempty"`
	CreatedAt     time.Time       `json:"created_at"`
}

// Selector chooses a version: by label, else by number, else the latest.
type Selector struct {
	// The version; without it and a label, the latest.
	Version int `json:"version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label whose version is meant, in place of a version.
	Label string `json:"label,omitempty" jsonschema:"maxLength=512"`
}

// ParseSelector reads what follows a template's name: a number, a label, or "" for the latest.
func ParseSelector(text string) Selector {
	version, err := strconv.Atoi(text)
	if err != nil {
		return Selector{Label: text}
	}
	return Selector{Version: version}
}

// NamedQuery chooses a version of a template that the path does not name.
type NamedQuery struct {
	// The template's name or id.
	Name string `json:"prompt_name"`
	Selector
}

// RawQuery chooses a version as it was published.
type RawQuery struct {
	Selector
	// Whether to put snippets into their places.
	Resolve bool `json:"resolve_snippets,omitempty" jsonschema:"default=true"`
	// Whether to return the arguments of the model call, without variables.
	Kwargs bool `json:"include_llm_kwargs,omitempty"`
}

// RawTemplate answers GET /prompt-templates/{name}: one version of a template, and what a
// cache needs to know about it.
type RawTemplate struct {
	Success       bool            `json:"success"`
	ID            int64           `json:"id"` // the template's id
	Name          string          `json:"prompt_name"`
	Version       int             `json:"version"`
	VersionID     int64           `json:"prompt_version_id"`
	WorkspaceID   int64           `json:"workspace_id"`
	Tags          []string        `json:"tags"`           // the template's tags
	Labels        []string        `json:"release_labels"` // pointing to this version
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	Author        string          `json:"author,omitempty"`
	CreatedAt     time.Time       `json:"created_at"`
	Snippets      []UsedSnippet   `json:"snippets"` // put into the blueprint, in order of appearance
	Revision      uint64          `json:"revision"` // the project's registry revision when this was read

	// The number of the latest version, at this revision.
	Latest int `json:"latest_version"`
	// All labels of the template, at this revision. With `latest_version` they tell which
	// version any other selector means.
	AllLabels []Label `json:"labels"`

	// ProviderBaseURLs are configured by the server's operator.
	ProviderBaseURLs ProviderBaseURLs `json:"provider_base_urls,omitempty"`

	LLMKwargs json.RawMessage `json:"llm_kwargs,omitempty"` // if the caller asked for them
	Warned
}

// UsedSnippet is a template whose text is part of another one.
type UsedSnippet struct {
	Name    string  `json:"prompt_name"`
	Version int     `json:"version"`
	Label   *string `json:"label"` // null if it was not chosen by label
}

// Changes answers GET /sync/changes: the names of the templates that changed after the
// given revision, up to Revision. Reset means that the server cannot tell, because it
// does not have that many revisions; the caller must then refresh everything.
type Changes struct {
	Success  bool   `json:"success"`
	Revision uint64 `json:"revision"` // the revision of the last change that is named
	// Whether the caller must read everything again: the server cannot tell what changed.
	Reset bool     `json:"reset"`
	Names []string `json:"names"` // the names of the templates that changed

	// ProviderBaseURLs is the digest of the current URLs.
	ProviderBaseURLs string `json:"provider_base_urls,omitempty"`

	// Keys is another text once a key of the project was revoked; "" if that is not known yet.
	Keys string `json:"keys,omitempty"`
}

// ChangesQuery is the query of GET /sync/changes: what the caller knows, and how long it
// waits for news.
type ChangesQuery struct {
	// The revision up to which the caller knows all changes.
	Since uint64 `json:"since,omitempty" jsonschema:"minimum=0"`
	// How long to wait for a change, such as 30s; at most a minute.
	Wait time.Duration `json:"wait,omitempty"`
	// The digest of the provider URLs that the caller knows.
	ProviderBaseURLs string `json:"provider_base_urls,omitempty"`
	// The keys of the last answer.
	Keys string `json:"keys,omitempty"`
}

// TemplateEditor changes templates and their labels, and reads what an editor needs for
// that. by is who makes a change; "" is the identity's key. A sidecar passes all requests on
// to the server.
type TemplateEditor interface {
	Source(ctx context.Context, id Identity, ident string, s Selector) (RawTemplate, error)
	Patch(ctx context.Context, id Identity, ident string, p TemplatePatch) (Published, error)
	Labels(ctx context.Context, id Identity, ident string) (Labels, error)
	CreateLabel(ctx context.Context, id Identity, ident string, w LabelWrite, by string) (PlacedLabel, error)
	MoveLabel(ctx context.Context, id Identity, label int64, version int, by string) (PlacedLabel, error)
	DeleteLabel(ctx context.Context, id Identity, label int64, by string) error
	Archive(ctx context.Context, id Identity, ident, by string) error
	Restore(ctx context.Context, id Identity, ident, by string) error
}

// Label points to a version.
type Label struct {
	ID      int64  `json:"id,omitempty"` // unique in the project
	Name    string `json:"name"`         // the label's name
	Version int    `json:"version"`      // the version that the label points to
}

// labelIDBits are the low bits of a label's id, which hold the label's own number. The
// rest is the template's id.
const labelIDBits = 16

// LabelID makes the id of the n-th label that a template ever had, from 1 to 65,535.
func LabelID(template, n int64) int64 { return template<<labelIDBits | n }

// TemplateOfLabel returns the id of the template that a label belongs to.
func TemplateOfLabel(id int64) int64 { return id >> labelIDBits }

// Move is one step of a label's history; Version 0 means that the label was removed.
type Move struct {
	Label   string    `json:"label"`
	Version int       `json:"version"`      // the version that it points to since then; 0 if it was removed
	At      time.Time `json:"at"`           // when the label was moved
	By      string    `json:"by,omitempty"` // an email, or the id of a key
}

// TemplateMove is a move of a template's label from one version to another.
type TemplateMove struct {
	Move
	Template string // its name
	Was      int    // the version before
}

// Moved returns the moves of its labels from one version to another.
func (t *Template) Moved() (moved []TemplateMove) {
	was := map[string]int{}
	for _, m := range t.Moves {
		from := was[m.Label]
		was[m.Label] = m.Version
		if from > 0 && m.Version > 0 && from != m.Version {
			moved = append(moved, TemplateMove{Move: m, Template: t.Name, Was: from})
		}
	}

	return moved
}

// LabelWrite is the body of POST /prompts/{id}/label: a new label and the version to
// point it to.
type LabelWrite struct {
	// The label, such as prod.
	Name string `json:"name" jsonschema:"minLength=1,maxLength=512"`
	// The version.
	Version int `json:"prompt_version_number" jsonschema:"anyof_type=integer;string"`
}

// LabelMove is the body of PATCH /prompt-labels/{id}: the version to point the label to.
type LabelMove struct {
	// The version.
	Version int `json:"prompt_version_number" jsonschema:"anyof_type=integer;string"`
}

// PlacedLabel answers a request that creates or moves a label.
type PlacedLabel struct {
	Success   bool      `json:"success"`
	CreatedAt time.Time `json:"created_at"` // when the label was moved there
	ID        int64     `json:"id"`         // the label's id
	Name      string    `json:"name"`       // the label's name
	PromptID  int64     `json:"prompt_id"`
	VersionID int64     `json:"prompt_version_id"`
	Version   int       `json:"prompt_version_number"` // the version that the label points to

	// Was is the version that the label pointed to before; 0 if it is new. Only the server knows.
	Was int `json:"-"`
}

// Labels answers GET /prompt-templates/{name or id}/labels.
type Labels struct {
	Success bool           `json:"success"`
	Labels  []ReleaseLabel `json:"release_labels"` // sorted by name
	Moves   []Move         `json:"moves"`          // their history, oldest first
}

// ReleaseLabel is a label, with the names that this answer gives its fields.
type ReleaseLabel struct {
	VersionID int64  `json:"prompt_version_id"`
	Version   int    `json:"prompt_version_number"` // the version that the label points to
	Name      string `json:"release_label"`
	ID        int64  `json:"release_label_id"`
}

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

// BacktestDefault is how many requests a backtest takes unless told otherwise.
const BacktestDefault = 20

// BacktestQuery is the body of POST /rest/backtest. It selects the newest requests of a
// template, whose variables are rendered with another version of it.
type BacktestQuery struct {
	// The template's name or id.
	Name string `json:"prompt_name" jsonschema:"anyof_type=string;integer,maxLength=512"`
	Selector
	// Only requests that were sent with this version.
	Sent int `json:"sent_version,omitempty" jsonschema:"anyof_type=integer;string"`
	// How many requests; 20 if it is left out.
	Last int `json:"last,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// The provider that llm_kwargs are made for.
	Provider string `json:"provider,omitempty" jsonschema:"maxLength=512"`
	// Only requests that this filter finds.
	Filter *Filter `json:"filter_group,omitempty"`
	FilterLine
}

// Backtest is one line of the answer: the original call, and what would be sent now.
type Backtest struct {
	RequestID      string          `json:"request_id"`
	AcceptedAt     time.Time       `json:"accepted_at"`
	InputVariables json.RawMessage `json:"input_variables"` // an object
	Sent           BacktestSent    `json:"sent"`            // the messages sent then
	Rendered       *BacktestRender `json:"rendered"`        // null if it could not be rendered
	Error          string          `json:"error,omitempty"` // why it could not
}

// BacktestSent is the original call.
type BacktestSent struct {
	Version   *int            `json:"version"` // the version that was sent; null if unknown
	Provider  string          `json:"provider"`
	Model     string          `json:"model"`
	Request   json.RawMessage `json:"request"` // the call as it was logged, with its response
	Price     *float64        `json:"price"`
	LatencyMS *float64        `json:"latency_ms"`
	Scores    []Score         `json:"scores"` // the scores of the request
}

// BacktestRender is what would be sent now.
type BacktestRender struct {
	Version   int             `json:"version"`
	Blueprint json.RawMessage `json:"prompt_template"`
	LLMKwargs json.RawMessage `json:"llm_kwargs"` // the arguments that the model call would have now
	Warning   *string         `json:"warning"`
}
