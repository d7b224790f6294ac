package openapi

import "promptspool/api/wire"

const (
	exampleRequest = "0198c5a0-7a3c-7b62-9d0e-5f8a4c2b1e90"
	exampleEvent   = "0198c5a0-7a3d-7c11-8a44-0d9e6b7f2a15"
)

type object = map[string]any

// exampleCall names the call that examples are about.
var exampleCall = OfRequest{RequestID: exampleRequest}

// success is the usual answer.
func success(text string, example any) []answer {
	return []answer{{status: 200, text: text, example: example}}
}

// tracked is the answer to a write that belongs to a call.
func tracked(message string) []answer {
	return success("It is on disk.", wire.Tracked{Success: true, Message: message, RequestID: exampleRequest})
}

// greeting is a chat with one message.
func greeting(role messageRole, text string) Blueprint {
	content := Contents{{Type: "text", Text: text}}
	return Blueprint{Type: "chat", Messages: []Message{{Role: role, Content: content}}}
}

var exampleTracked = wire.Tracked{Success: true, Message: "Request logged.", RequestID: exampleRequest}

var exampleMessages = []object{{"role": "user", "content": "Say hello to Ann."}}

var trackedCall = TrackRequest{
	FunctionName: "openai.ChatCompletion.create",
	Kwargs:       object{"model": "gpt-4o-mini", "messages": exampleMessages},
	Response: object{
		"model": "gpt-4o-mini-2024-07-18",
		"choices": []object{{
			"index":         0,
			"finish_reason": "stop",
			"message":       object{"role": "assistant", "content": "Hello, Ann!"},
		}},
		"usage": object{"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16},
	},
	Start:    1795224000.10,
	End:      1795224000.85,
	Tags:     []string{"demo"},
	Metadata: map[string]any{"user_id": "ann"},
}

// exampleChunks are the chunks of a stream, in their order.
var exampleChunks = []any{
	map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": "Hello, "}}}},
	map[string]any{"choices": []any{
		map[string]any{"index": 0, "delta": map[string]any{"content": "Ann!"}, "finish_reason": "stop"},
	}},
}

var writeOperations = []operation{
	{
		id: "trackRequest", tag: tagWrites, name: "track-request",
		route:   "POST /rest/track-request",
		summary: "Log a call",
		detail: "Call the model yourself, then send what went in and what came out. " +
			"A 200 means that it is on disk. " +
			"Scores, metadata and links to templates follow with the `request_id` of the answer.",
		retries: true,
		body:    trackedCall,
		answers: success("It is on disk.", wire.TrackedRequest{Tracked: exampleTracked}),
	},
	{
		id: "trackAnyRequest", tag: tagWrites, name: "track-request",
		route:   "POST /track-request",
		summary: "Log a call with any response",
		detail: "As `POST /rest/track-request`, but `request_response` may be any JSON, such as the list of " +
			"a stream's chunks. SDKs use it.",
		retries: true,
		body:    TrackAnyRequest{trackedCall, exampleChunks},
		answers: success("It is on disk.", wire.TrackedRequest{Tracked: exampleTracked}),
	},
	{
		id: "logRequest", tag: tagWrites, name: "log-request",
		route:   "POST /log-request",
		summary: "Log a call of any provider",
		detail: "For providers whose responses are of no known form: what went in and what came out, " +
			"as blueprints.",
		retries: true,
		body: LogRequest{
			Provider: "acme",
			Model:    "acme-large",
			Input:    greeting("user", "Say hello to Ann."),
			Output:   greeting("assistant", "Hello, Ann!"),
			Start:    "2026-11-21T10:00:00.100Z",
			End:      "2026-11-21T10:00:00.850Z",
			Score:    new(100),
		},
		answers: []answer{{status: 201, text: "It is on disk.", example: wire.Logged{
			Tracked: exampleTracked,
			ID:      exampleRequest,
			Status:  "SUCCESS",
		}}},
	},
	{
		id: "trackScore", tag: tagWrites, name: "track-score",
		route:   "POST /rest/track-score",
		older:   "/library-track-score",
		summary: "Score a call, a span, a trace or a session",
		detail: "Each has one score for each name and author; the last one counts. What is scored may arrive later. " +
			"The answer's `request_id` is the record that keeps the score.",
		body: TrackScore{
			RequestID: exampleRequest,
			Name:      "faithful",
			Value:     0.83,
			Reason:    "All but the date is in the sources.",
			Author:    "judge",
			Source:    "model",
		},
		answers: tracked("Score recorded."),
	},
	{
		id: "trackMetadata", tag: tagWrites, name: "track-metadata",
		route:   "POST /rest/track-metadata",
		older:   "/library-track-metadata",
		summary: "Attach metadata to a call",
		body: TrackMetadata{
			OfRequest: exampleCall,
			Metadata:  map[string]any{"user_id": "ann", "session_id": "s-17"},
		},
		answers: tracked("Metadata recorded."),
	},
	{
		id: "trackPrompt", tag: tagWrites, name: "track-prompt",
		route:   "POST /rest/track-prompt",
		older:   "/library-track-prompt",
		summary: "Link a call to a template",
		body: TrackPrompt{
			OfRequest:            exampleCall,
			PromptName:           "greet",
			PromptInputVariables: object{"name": "Ann"},
			Label:                "prod",
		},
		answers: tracked("Prompt template linked."),
	},
	{
		id: "createGroup", tag: tagWrites, name: "create-group",
		route:   "POST /rest/create-group",
		older:   "/create-group",
		summary: "Make a group",
		detail:  "A group is only an id that calls share. You may use an id of your own instead.",
		body:    CreateGroup{},
		answers: success("The id of a group.", wire.GroupCreated{
			Success: true, Message: "Group created.", ID: exampleEvent,
		}),
	},
	{
		id: "trackGroup", tag: tagWrites, name: "track-group",
		route:   "POST /rest/track-group",
		older:   "/track-group",
		summary: "Put a call into a group",
		body:    TrackGroup{OfRequest: exampleCall, GroupID: exampleEvent},
		answers: tracked("Group recorded."),
	},
}
