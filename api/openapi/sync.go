package openapi

import (
	"encoding/json"

	"promptspool/api/wire"
)

// ChangesQuery says what a sidecar knows.
type ChangesQuery struct {
	// The revision up to which the caller knows all changes.
	Since uint64 `json:"since,omitempty" jsonschema:"minimum=0"`
	// How long to wait for a change, such as 30s; at most a minute.
	Wait string `json:"wait,omitempty"`
	// The digest of the provider URLs that the caller knows.
	ProviderBaseURLs string `json:"provider_base_urls,omitempty"`
}

// Heartbeat is what a sidecar reports about itself.
type Heartbeat struct {
	open
	wire.Heartbeat
}

var heartbeat = wire.Heartbeat{
	ID: exampleEvent, Name: "pod-1", Version: "1.0.0", StartedAt: exampleTime,
	BacklogEvents: 3, BacklogBytes: 2048, OldestSeconds: 0.4,
	DroppedToday: []wire.Drop{{Count: 1204, What: "log record", Why: "not about model calls"}},
}

var syncOperations = []operation{
	{
		id: "syncEvents", tag: tagSync, name: "sync-events",
		route:   "POST /sync/events",
		summary: "Deliver events",
		detail: "One event a line: at most 1,000, or 4 MiB before compression; a larger one travels alone. " +
			"`accepted`, `duplicate` and the length of `refused` add up to the events sent. An event that the " +
			"key may not log, or that was accepted after the key's end, is refused as `forbidden`. A key that " +
			"has ended delivers for 30 days more.",
		bodyType: MediaLines,
		body: wire.Event{
			ID:         exampleEvent,
			Kind:       wire.KindScore,
			RequestID:  exampleRequest,
			AcceptedAt: exampleTime,
			Sidecar:    "pod-1",
			Body:       json.RawMessage(`{"request_id":"` + exampleRequest + `","score":100}`),
		},
		answers: success("The outcome for each.", wire.BatchAnswer{
			Success: true, Accepted: 1, Refused: []wire.Result{},
		}),
	},
	{
		id: "syncKey", tag: tagSync, name: "sync-key",
		route:   "GET /sync/key",
		summary: "Ask what a key is good for",
		detail: "A key that has ended is answered for 30 days more, in which a sidecar delivers what it " +
			"accepted before.",
		answers: success("What the key may do.", wire.KeyVerdict{
			Success: true, Account: exampleEvent, KeyID: exampleRequest, Scope: wire.ScopeApp,
			Prefix: "support/", ExpiresAt: exampleTime,
		}),
	},
	{
		id: "syncChanges", tag: tagSync, name: "sync-changes",
		route:   "GET /sync/changes",
		summary: "Wait for changes of templates",
		query:   ChangesQuery{Since: 2, Wait: "30s"},
		answers: success("The changes.", wire.Changes{Success: true, Revision: 3, Names: []string{"greet"}}),
	},
	{
		id: "syncHeartbeat", tag: tagSync, name: "sync-heartbeat",
		route:   "POST /sync/heartbeat",
		summary: "Report how a sidecar does",
		body:    Heartbeat{Heartbeat: heartbeat},
		answers: success("It is noted.", OK{true}),
	},
	{
		id: "listSidecars", tag: tagSync, name: "sync-fleet",
		route:   "GET /sync/fleet",
		summary: "List the sidecars of the project",
		answers: success("The sidecars, by name.", wire.Fleet{Success: true, Items: []wire.FleetSidecar{{
			Heartbeat: heartbeat,
			LastSeen:  exampleTime,
			Alive:     true,
		}}}),
	},
}
