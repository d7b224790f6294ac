package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Template is the head of a template: everything but its versions' texts.
type Template struct {
	ID        int64      `json:"id"`
	Name      string     `json:"prompt_name"`
	Tags      []string   `json:"tags"`
	Labels    []Label    `json:"labels"` // sorted by name
	Moves     []Move     `json:"moves"`  // the labels' history, oldest first
	Versions  []Stamp    `json:"versions"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	DeletedAt *time.Time `json:"deleted_at,omitempty"`
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
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// Move is one step of a label's history; Version 0 means that the label was removed.
type Move struct {
	Label   string    `json:"label"`
	Version int       `json:"version"`
	At      time.Time `json:"at"`
}

// Stamp is what the head keeps of a version, version n at index n-1.
type Stamp struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Message string    `json:"commit_message,omitempty"`
}

// Version is one version of a template. It never changes.
type Version struct {
	ID            int64           `json:"id"`
	TemplateID    int64           `json:"template_id"`
	Number        int             `json:"number"`
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"` // an object, or null
	CommitMessage string          `json:"commit_message"`
	CreatedAt     time.Time       `json:"created_at"`
}

// Selector chooses a version: by label, else by number, else the latest.
type Selector struct {
	Version int
	Label   string
}

// TemplateFetch is the body of a template fetch.
type TemplateFetch struct {
	Selector
	Provider  string
	Model     string
	Variables map[string]json.RawMessage // nil if input_variables was absent: placeholders stay as written
	Overrides map[string]json.RawMessage // model_parameter_overrides
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
	CreatedAt     time.Time       `json:"created_at"`
	Snippets      []any           `json:"snippets"`
	Revision      uint64          `json:"revision"` // the account's registry revision when this was read
}

// RenderedTemplate answers a template fetch.
type RenderedTemplate struct {
	ID              int64           `json:"id"`
	Name            string          `json:"prompt_name"`
	Version         int             `json:"version"`
	WorkspaceID     int64           `json:"workspace_id"`
	Tags            []string        `json:"tags"`
	CommitMessage   *string         `json:"commit_message"`
	Metadata        json.RawMessage `json:"metadata"`
	Blueprint       json.RawMessage `json:"prompt_template"`
	LLMKwargs       json.RawMessage `json:"llm_kwargs"`
	ProviderBaseURL *string         `json:"provider_base_url"`
	Snippets        []any           `json:"snippets"`
	Warning         *string         `json:"warning"`

	Cache string        `json:"-"` // how it was found: "hit", "stale" or "miss"; "" at the server. Sent as X-Cache.
	Age   time.Duration `json:"-"` // since the copy was known to be current; sent as Age, in seconds
}

// Publish is the body of POST /rest/prompt-templates.
type Publish struct {
	Name          string
	Tags          []string // nil: leave them as they are
	Blueprint     json.RawMessage
	Metadata      json.RawMessage // nil if absent
	CommitMessage string
	Labels        []string
}

// Published answers a publish.
type Published struct {
	Success       bool            `json:"success"`
	ID            int64           `json:"id"`
	Name          string          `json:"prompt_name"`
	VersionID     int64           `json:"prompt_version_id"`
	VersionNumber int             `json:"version_number"`
	Tags          []string        `json:"tags"`
	Labels        []string        `json:"release_labels"`
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	ExternalIDs   []any           `json:"external_ids"`
}

// TemplateListQuery is the query of GET /prompt-templates. Page counts from 1.
type TemplateListQuery struct {
	Page, PerPage int
	Name          string // a part of the name, in any case
	Label         string
}

// TemplateList answers GET /prompt-templates.
type TemplateList struct {
	Success bool               `json:"success"`
	Items   []TemplateListItem `json:"items"`
	Paging
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
}

// DecodeFetch reads the body of a template fetch. An absent body, an empty one and null mean the latest version.
func DecodeFetch(body []byte) (TemplateFetch, error) {
	if s := strings.TrimSpace(string(body)); s == "" || s == "null" {
		return TemplateFetch{}, nil
	}
	object, err := ParseObject(body)
	if err != nil {
		return TemplateFetch{}, err
	}
	f := fields{object: object}
	w := TemplateFetch{
		Selector: Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		Provider: f.text("provider", false, NameRunesMax),
		Model:    f.text("model", false, NameRunesMax),
	}
	w.Variables = f.values("input_variables")
	w.Overrides = f.values("model_parameter_overrides")
	return w, f.err()
}

// values reads an object into a map; nil if it is absent.
func (f *fields) values(name string) map[string]json.RawMessage {
	v := f.json(name, false)
	if v == nil {
		return nil
	}
	m := make(map[string]json.RawMessage)
	for e := range members(v) {
		if len(m) == ObjectMembersMax {
			f.fault(name, "has more than %d members", ObjectMembersMax)
			break
		}
		m[e.Name] = e.Value
	}
	return m
}

// DecodePublish reads POST /rest/prompt-templates. Its prompt_template and prompt_version may each hold more than the schema
// says: SDKs put one object into both. The blueprint's own rules are the registry's to check.
func DecodePublish(object Object) (Publish, error) {
	f := fields{object: object}
	base, version := f.json("prompt_template", true), f.json("prompt_version", true)
	labels := f.tags("release_labels")
	if f.errs != nil {
		return Publish{}, f.err()
	}
	bf, vf := subfields(base), subfields(version)
	p := Publish{
		Name:          bf.text("prompt_name", true, NameRunesMax),
		Tags:          bf.tags("tags"),
		Blueprint:     vf.json("prompt_template", true),
		Metadata:      vf.json("metadata", false),
		CommitMessage: vf.text("commit_message", false, CommitMessageRunesMax),
		Labels:        labels,
	}
	for _, e := range bf.errs {
		f.fault("prompt_template."+e.Field, "%s", e.Reason)
	}
	for _, e := range vf.errs {
		f.fault("prompt_version."+e.Field, "%s", e.Reason)
	}
	if strings.TrimSpace(p.Name) != p.Name || strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		f.fault("prompt_template.prompt_name", "must not begin or end with a blank, nor hold control characters")
	}
	for _, l := range labels {
		if l == "" || utf8.RuneCountInString(l) > NameRunesMax {
			f.fault("release_labels", "must be 1 to %d characters each", NameRunesMax)
		}
	}
	return p, f.err()
}

func subfields(raw json.RawMessage) *fields {
	f := &fields{}
	for m := range members(raw) {
		if len(f.object) == ObjectMembersMax {
			f.fault(m.Name, "is one member too many; at most %d are accepted", ObjectMembersMax)
			break
		}
		f.object = append(f.object, m)
	}
	return f
}
