package openapi

import "promptspool/api/wire"

// DefineScore defines the scores of a name.
type DefineScore struct {
	// The name in the path, once more.
	Name string `json:"name,omitempty" jsonschema:"maxLength=512"`
	// The kind of the values. A number may also be sent as score.
	Kind string `json:"kind" jsonschema:"enum=number,enum=boolean,enum=category"`
	// The least number that fits.
	Min *float64 `json:"min,omitempty"`
	// The greatest number that fits.
	Max *float64 `json:"max,omitempty"`
	// The categories that fit; all do if there are none.
	Categories []string `json:"categories,omitempty" jsonschema:"maxItems=50"`
	// The direction that comparisons call better; without it, neither.
	Better string `json:"better,omitempty" jsonschema:"enum=higher,enum=lower"`
	// A text for reviewers.
	Description string `json:"description,omitempty" jsonschema:"maxLength=1000"`
}

var scoreOperations = []operation{
	{
		id: "listScoreDefinitions", tag: tagWrites, name: "list-score-definitions",
		route:   "GET /api/public/v2/score-definitions",
		summary: "List the definitions of scores",
		answers: success("All definitions.", wire.ScoreDefinitionList{
			Success: true,
			Items: []wire.ScoreDefinition{
				{Name: "faithful", Kind: "number", Min: new(0.0), Max: new(1.0), Better: "higher"},
				{Name: "tone", Kind: "category", Categories: []string{"polite", "curt", "rude"}},
			},
		}),
	},
	{
		id: "defineScore", tag: tagWrites, name: "define-score",
		route:   "PUT /api/public/v2/score-definitions/{score}",
		summary: "Define the scores of a name",
		detail: "Replaces the definition of this name. From then on a server refuses a score that does not fit, " +
			"if it is sent to the server itself. Scores that are stored, or come from a sidecar or over " +
			"OpenTelemetry, are kept, and counted apart.",
		body:    DefineScore{Kind: "category", Categories: []string{"polite", "curt", "rude"}},
		answers: success("It is defined.", wire.Done{Success: true, Message: "The score is defined."}),
		errors:  []wire.Code{wire.CodeConflict},
	},
	{
		id: "undefineScore", tag: tagWrites, name: "undefine-score",
		route:   "DELETE /api/public/v2/score-definitions/{score}",
		summary: "Remove the definition of a score",
		answers: success("It is removed.", wire.Done{
			Success: true, Message: "The definition is removed. Its scores stay.",
		}),
	},
}
