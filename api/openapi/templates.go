package openapi

import (
	"encoding/json"
	"time"

	"promptspool/api/wire"
)

// exampleTime is when everything happens in examples.
var exampleTime = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const (
	rawGreeting = `{"type":"chat","messages":[{"role":"user",` +
		`"content":[{"type":"text","text":"Say hello to {name}."}],` +
		`"input_variables":["name"]}],"input_variables":["name"]}`
	rawModel     = `{"model":{"provider":"openai","name":"gpt-4o-mini","parameters":{"temperature":0.2}}}`
	rawVariables = `{"name":"Ann"}`
	rawKwargs    = `{"model":"gpt-4o-mini",` +
		`"messages":[{"role":"user","content":"Say hello to Ann."}],"temperature":0.2}`
)

var exampleModel = object{
	"model": object{"provider": "openai", "name": "gpt-4o-mini", "parameters": object{"temperature": 0.2}},
}

var rendered = wire.RenderedTemplate{
	Success:       true,
	ID:            1,
	Name:          "greet",
	Version:       1,
	WorkspaceID:   1,
	Tags:          []string{"demo"},
	CommitMessage: new("first version"),
	Metadata:      json.RawMessage(rawModel),
	Blueprint:     json.RawMessage(rawGreeting),
	LLMKwargs:     json.RawMessage(rawKwargs),
}

var published = wire.Published{
	Success:       true,
	ID:            1,
	Name:          "greet",
	VersionID:     1,
	VersionNumber: 1,
	Labels:        []string{"prod"},
	Blueprint:     json.RawMessage(rawGreeting),
	Metadata:      json.RawMessage(rawModel),
	CommitMessage: new("first version"),
}

var placed = wire.PlacedLabel{
	Success:   true,
	CreatedAt: exampleTime,
	ID:        65537,
	Name:      "prod",
	PromptID:  1,
	VersionID: 1,
	Version:   1,
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

var templateOperations = []operation{
	{
		id: "fetchTemplate", tag: tagTemplates, name: "fetch-template",
		route:   "POST /prompt-templates/{template}",
		summary: "Fetch a template",
		detail: "`llm_kwargs` are the arguments of the model call, filled with `input_variables`. " +
			"A sidecar answers from its cache.",
		optional: true,
		body:     FetchTemplate{Label: "prod", InputVariables: object{"name": "Ann"}},
		answers:  []answer{{status: 200, text: "The version.", example: rendered, cached: true}},
	},
	{
		id: "readTemplate", tag: tagTemplates, name: "raw-template",
		route:   "GET /prompt-templates/{template}",
		summary: "Read a template as it was published",
		query:   RawQuery{VersionQuery: VersionQuery{Label: "prod"}},
		answers: success("The version.", wire.RawTemplate{
			Success:     true,
			ID:          1,
			Name:        "greet",
			Version:     1,
			VersionID:   1,
			WorkspaceID: 1,
			Labels:      []string{"prod"},
			Blueprint:   json.RawMessage(rawGreeting),
			Metadata:    json.RawMessage(rawModel),
			CreatedAt:   exampleTime,
			Revision:    2,
			Latest:      1,
			AllLabels:   []wire.Label{{ID: 65537, Name: "prod", Version: 1}},
		}),
	},
	{
		id: "getTemplate", tag: tagTemplates, name: "get-template",
		route:   "GET /rest/get-prompt-template",
		older:   "/library-get-prompt-template",
		summary: "Fetch a template by a query",
		detail:  "For older clients. New ones use `POST /prompt-templates/{template}`.",
		query:   NamedQuery{Name: "greet"},
		answers: []answer{{status: 200, text: "The version.", example: rendered, cached: true}},
		errors:  []wire.Code{wire.CodeNotFound},
	},
	{
		id: "listTemplates", tag: tagTemplates, name: "list-templates",
		route:   "GET /prompt-templates",
		older:   "/rest/prompts",
		summary: "List templates",
		query:   ListQuery{Label: "prod", PerPage: 30},
		answers: []answer{{
			status: 200,
			text:   "A page of templates, each with its latest version.",
			cached: true,
			example: wire.TemplateList{
				Success: true,
				Paging:  wire.NewPaging(1, 30, 1),
				Items: []wire.TemplateListItem{{
					ID:        1,
					Name:      "greet",
					Version:   1,
					Labels:    []wire.Label{{ID: 65537, Name: "prod", Version: 1}},
					Blueprint: json.RawMessage(rawGreeting),
					Metadata:  json.RawMessage(rawModel),
					LLMKwargs: json.RawMessage(rawKwargs),
					CreatedAt: exampleTime,
					UpdatedAt: exampleTime,
				}},
			},
		}},
	},
	{
		id: "publishTemplate", tag: tagTemplates, name: "publish-template",
		route:   "POST /rest/prompt-templates",
		summary: "Publish a version of a template",
		detail: "A template that does not exist is made. " +
			"If the latest version has the same text and metadata, no version is made; " +
			"labels and tags are still set.",
		body: PublishTemplate{
			Template: PublishedName{Name: "greet"},
			Version: PublishedVersion{
				Blueprint:     greeting("user", "Say hello to {name}."),
				Metadata:      exampleModel,
				CommitMessage: "first version",
			},
			Labels: []string{"prod"},
		},
		answers: []answer{{status: 201, text: "The version.", example: published}},
		errors:  []wire.Code{wire.CodeConflict},
	},
	{
		id: "publishTemplateOld", tag: tagTemplates, name: "publish-template",
		route:   "POST /rest/publish-prompt-template",
		older:   "/library-publish-prompt-template",
		summary: "Publish a version, as older clients do",
		detail:  "New clients use `POST /rest/prompt-templates`.",
		body: PublishTemplateOld{
			Name: "greet",
			Blueprint: object{
				"_type": "prompt", "template": "Say hello to {name}.", "input_variables": []string{"name"},
			},
			Metadata: exampleModel,
		},
		answers: success("The version.", published),
		errors:  []wire.Code{wire.CodeConflict},
	},
	{
		id: "patchTemplate", tag: tagTemplates, name: "patch-template",
		route:   "PATCH /rest/prompt-templates/{template}",
		summary: "Publish a version with some parts changed",
		body:    PatchTemplate{ModelParameters: object{"temperature": 0.7}, CommitMessage: "warmer"},
		answers: []answer{{status: 201, text: "The version.", example: published}},
		errors:  []wire.Code{wire.CodeConflict},
	},
	{
		id: "archiveTemplate", tag: tagTemplates, name: "archive-template",
		route:   "DELETE /rest/prompt-templates/{template}",
		summary: "Archive a template",
		detail: "Apps that fetch it get a 404. Its versions are kept; " +
			"publishing or restoring it brings it back.",
		answers: success("It is archived.", wire.Done{
			Success: true, Message: "The template is archived. Publishing or restoring it brings it back.",
		}),
		errors: []wire.Code{wire.CodeConflict},
	},
	{
		id: "restoreTemplate", tag: tagTemplates, name: "restore-template",
		route:    "POST /rest/prompt-templates/{template}/restore",
		summary:  "Restore an archived template",
		optional: true,
		body:     Empty{},
		answers:  success("It is restored.", wire.Done{Success: true, Message: "The template is restored."}),
		errors:   []wire.Code{wire.CodeConflict},
	},
	{
		id: "listLabels", tag: tagTemplates, name: "template-labels",
		route:   "GET /prompt-templates/{template}/labels",
		summary: "List labels and their history",
		answers: success("The labels.", wire.Labels{
			Success: true,
			Labels:  []wire.ReleaseLabel{{VersionID: 1, Version: 1, Name: "prod", ID: 65537}},
			Moves:   []wire.Move{{Label: "prod", Version: 1, At: exampleTime, By: "ann@example.com"}},
		}),
	},
	{
		id: "createLabel", tag: tagTemplates, name: "create-label",
		route:   "POST /prompts/{template}/label",
		summary: "Make a label, or move it",
		body:    CreateLabel{Name: "prod", MoveLabel: MoveLabel{Version: 1}},
		answers: success("Where the label points.", placed),
		errors:  []wire.Code{wire.CodeConflict},
	},
	{
		id: "moveLabel", tag: tagTemplates, name: "move-label",
		route:   "PATCH /prompt-labels/{label_id}",
		summary: "Move a label to another version",
		body:    MoveLabel{Version: 1},
		answers: success("Where the label points.", placed),
		errors:  []wire.Code{wire.CodeConflict},
	},
	{
		id: "deleteLabel", tag: tagTemplates, name: "delete-label",
		route:   "DELETE /prompt-labels/{label_id}",
		summary: "Delete a label",
		answers: []answer{{status: 204, text: "It is deleted. The answer has no body."}},
		errors:  []wire.Code{wire.CodeConflict},
	},
}
