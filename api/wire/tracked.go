package wire

import "encoding/json"

// Done answers what has nothing to show.
type Done struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// Tracked answers a write.
type Tracked struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	// The call's id: scores, metadata and links name it.
	RequestID string `json:"request_id" jsonschema:"format=uuid"`
}

// TrackedRequest answers the logging of a call.
type TrackedRequest struct {
	Tracked
	// The call as a blueprint, if it was asked for.
	Blueprint json.RawMessage `json:"prompt_blueprint"`
}

// Logged answers the logging of a call as blueprints.
type Logged struct {
	Tracked
	// The same as request_id.
	ID string `json:"id" jsonschema:"format=uuid"`
	// Always null, where the hosted service has the linked version: a write does not wait
	// for a template. The record has the link.
	PromptVersion *map[string]any `json:"prompt_version"`
	// What was logged.
	Status string `json:"status"`
	// What was logged.
	ErrorType *string `json:"error_type"`
	// What was logged.
	ErrorMessage *string `json:"error_message"`
}

// GroupCreated answers with the id of a new group.
type GroupCreated struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	// The group's id.
	ID string `json:"id" jsonschema:"format=uuid"`
}
