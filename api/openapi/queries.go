package openapi

import (
	"time"

	"promptspool/api/wire"
)

// The types below are queries. The comments on their fields are the texts of the description.

// CloseQuery is the query of requests that bring spans.
type CloseQuery struct {
	// Close the traces of the spans after them.
	CloseAfter bool `json:"close_after,omitempty"`
}

// TraceQuery chooses the form of a trace.
type TraceQuery struct {
	// As one list, or as a tree.
	Form string `json:"form,omitempty" jsonschema:"enum=flat,enum=tree,default=flat"`
}

// VersionQuery chooses a version.
type VersionQuery struct {
	// The version; without it and a label, the latest.
	Version int `json:"version,omitempty" jsonschema:"minimum=1"`
	// The label whose version to return; it wins over the version.
	Label string `json:"label,omitempty"`
}

// RawQuery chooses a version as it was published.
type RawQuery struct {
	VersionQuery
	// Whether to put snippets into their places.
	Resolve bool `json:"resolve_snippets,omitempty" jsonschema:"default=true"`
	// Whether to return the arguments of the model call, without variables.
	Kwargs bool `json:"include_llm_kwargs,omitempty"`
}

// NamedQuery chooses a version of a template that the path does not name.
type NamedQuery struct {
	// The template's name or id.
	Name string `json:"prompt_name"`
	VersionQuery
}

// ListQuery chooses templates.
type ListQuery struct {
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
	IsSnippet bool `json:"is_snippet,omitempty"`
	// The field to sort by.
	SortBy templateOrder `json:"sort_by,omitempty" jsonschema:"default=name"`
	// Ascending by name, else descending, if it is left out.
	SortOrder string `json:"sort_order,omitempty" jsonschema:"enum=asc,enum=desc"`
}

// templateOrder has its values in specialSchema.
type templateOrder string

// SuggestQuery chooses values of a field.
type SuggestQuery struct {
	// A field of a filter.
	Field string `json:"field"`
	// The beginning of the values, in any case.
	Prefix string `json:"prefix,omitempty"`
	// Which metadata, of a field that has keys.
	Key string `json:"metadata_key,omitempty"`
	// Only names of the template with this id; with the field prompt.
	ID int64 `json:"prompt_id,omitempty" jsonschema:"minimum=1"`
	// Only values of the records that this filter finds: JSON, as in a search.
	Filter string `json:"filter_group,omitempty"`
	wire.FilterLine
	// How many values to list.
	Limit int `json:"limit,omitempty" jsonschema:"minimum=1,maximum=1000,default=50"`
}

// OrphanQuery chooses a page of orphans.
type OrphanQuery struct {
	// How many requests a page has at most.
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=1000,default=100"`
	// The next_cursor of an earlier page.
	Cursor string `json:"cursor,omitempty"`
}

// DeletionQuery chooses records by their metadata.
type DeletionQuery struct {
	// The key of the metadata.
	Key string `json:"metadata_key" jsonschema:"minLength=1"`
	// The value, as a whole.
	Value string `json:"metadata_value" jsonschema:"minLength=1"`
	// Only what came up to this time; up to now, if it is left out.
	Before time.Time `json:"before,omitzero"`
}

// ChangesQuery says what a sidecar knows.
type ChangesQuery struct {
	// The revision up to which the caller knows all changes.
	Since uint64 `json:"since,omitempty" jsonschema:"minimum=0"`
	// How long to wait for a change, such as 30s; at most a minute.
	Wait string `json:"wait,omitempty"`
	// The digest of the provider URLs that the caller knows.
	ProviderBaseURLs string `json:"provider_base_urls,omitempty"`
	// The keys of the last answer.
	Keys string `json:"keys,omitempty"`
}
