package wire

import (
	"encoding/json"
	"slices"
	"time"
)

// Template is the head of a template: everything but its versions' texts.
type Template struct {
	ID         int64      `json:"id"`
	Name       string     `json:"prompt_name"`
	Tags       []string   `json:"tags"`
	Labels     []Label    `json:"labels"`                // sorted by name
	LabelsMade int64      `json:"labels_made,omitempty"` // how many labels it ever had: the last part of their ids
	Moves      []Move     `json:"moves"`                 // the labels' history, oldest first
	Versions   []Stamp    `json:"versions"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	DeletedAt  *time.Time `json:"deleted_at,omitempty"`
	// Revision is the account's registry revision that last changed this template; see Changes.
	Revision uint64 `json:"revision"`
}

// Latest is the newest version's number; 0 when there is none.
func (t *Template) Latest() int { return len(t.Versions) }

// Resolve returns the version that a selector means now, and whether there is one. The label wins over the version.
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

// ResolveAt is Resolve as it was at a moment: the version that was latest, or that the label pointed to, then.
func (t *Template) ResolveAt(s Selector, at time.Time) (version int, ok bool) {
	switch {
	case s.Label != "":
		for _, m := range t.Moves {
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

// Label points to a version.
type Label struct {
	ID      int64  `json:"id,omitempty"` // unique in the account
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// labelIDBits are what an id of a label keeps for the label's own number; the rest is the template's id.
const labelIDBits = 16

// LabelID makes the id of the n-th label that a template ever had, from 1 to 65,535.
func LabelID(template, n int64) int64 { return template<<labelIDBits | n }

// TemplateOfLabel is the id of the template that a label belongs to.
func TemplateOfLabel(id int64) int64 { return id >> labelIDBits }

// Move is one step of a label's history; Version 0 means that the label was removed.
type Move struct {
	Label   string    `json:"label"`
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"` // who moved it: an email, or the id of a key
}

// Stamp is what the head keeps of a version, version n at index n-1.
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
	Version int
	Label   string
}

// RawTemplate is one version of a template with what a cache must know of it; GET /prompt-templates/{name} answers with it.
type RawTemplate struct {
	Success       bool            `json:"success"`
	ID            int64           `json:"id"`
	Name          string          `json:"prompt_name"`
	Version       int             `json:"version"`
	VersionID     int64           `json:"prompt_version_id"`
	WorkspaceID   int64           `json:"workspace_id"`
	Tags          []string        `json:"tags"`
	Labels        []string        `json:"release_labels"` // that point to this version
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	Author        string          `json:"author,omitempty"`
	CreatedAt     time.Time       `json:"created_at"`
	Snippets      []UsedSnippet   `json:"snippets"` // that were put into the blueprint, in order of appearance
	Revision      uint64          `json:"revision"` // the account's registry revision when this was read
	// Latest and AllLabels are the template's at Revision: they tell which version any other selector means.
	Latest    int     `json:"latest_version"`
	AllLabels []Label `json:"labels"`
	// ProviderBaseURLs are what the server's operator configured.
	ProviderBaseURLs ProviderBaseURLs `json:"provider_base_urls,omitempty"`

	LLMKwargs json.RawMessage `json:"llm_kwargs,omitempty"` // if they were asked for
}

// UsedSnippet is a template whose text stands in another one's.
type UsedSnippet struct {
	Name    string  `json:"prompt_name"`
	Version int     `json:"version"`
	Label   *string `json:"label"` // null if it was not by label
}

// RenderedTemplate answers a template fetch.
type RenderedTemplate struct {
	Success         bool             `json:"success"`
	ID              int64            `json:"id"`
	Name            string           `json:"prompt_name"`
	Version         int              `json:"version"`
	WorkspaceID     int64            `json:"workspace_id"`
	Tags            []string         `json:"tags"`
	CommitMessage   *string          `json:"commit_message"`
	Metadata        json.RawMessage  `json:"metadata"`
	Blueprint       json.RawMessage  `json:"prompt_template"`
	LLMKwargs       json.RawMessage  `json:"llm_kwargs"`
	ProviderBaseURL *ProviderBaseURL `json:"provider_base_url"`
	Snippets        []UsedSnippet    `json:"snippets"`
	Warning         *string          `json:"warning"`

	Cache string        `json:"-"` // how it was found: "hit", "stale" or "miss"; "" at the server. Sent as X-Cache.
	Age   time.Duration `json:"-"` // since the copy was known to be current; sent as Age, in seconds
}

// TemplateList answers GET /prompt-templates.
type TemplateList struct {
	Success bool               `json:"success"`
	Items   []TemplateListItem `json:"items"`
	Paging

	Cache string        `json:"-"` // "stale" if it tells what a sidecar holds, without the server; else "". Sent as X-Cache.
	Age   time.Duration `json:"-"` // since all of it was known to be current; sent as Age, in seconds
}

// TemplateListItem is a template with its latest version.
type TemplateListItem struct {
	ID            int64           `json:"id"`
	Name          string          `json:"prompt_name"`
	Version       int             `json:"version"`
	Tags          []string        `json:"tags"`
	Labels        []Label         `json:"labels"`
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	LLMKwargs     json.RawMessage `json:"llm_kwargs"`
	ExternalIDs   []any           `json:"external_ids"`
	IsSnippet     bool            `json:"is_snippet"`
	CreatedAt     time.Time       `json:"created_at"`
	UpdatedAt     time.Time       `json:"updated_at"`
}

// Changes answers GET /sync/changes: the names of the templates that changed after the revision asked for, up to Revision.
// Reset says that the server cannot tell (it knows fewer revisions than were asked for): all is to be looked at anew.
type Changes struct {
	Success  bool     `json:"success"`
	Revision uint64   `json:"revision"`
	Reset    bool     `json:"reset"`
	Names    []string `json:"names"`
	// ProviderBaseURLs is the ProviderBaseURLs.Digest in force; "" from a server that does not tell it.
	ProviderBaseURLs string `json:"provider_base_urls,omitempty"`
}

// ChangesQuery is the query of GET /sync/changes: what the caller knows, and how long it would wait to hear more.
type ChangesQuery struct {
	Since            uint64 // the revision up to which it knows all changes
	Wait             time.Duration
	ProviderBaseURLs string // the digest that it knows; "" if it knows none, or does not care
}
