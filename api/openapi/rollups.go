package openapi

import (
	"encoding/json"
	"time"

	"promptspool/api/wire"
)

const exampleSession = "s-4711"

var exampleRollup = wire.Rollup{
	ID:           exampleSession,
	FirstSeen:    exampleTime,
	LastSeen:     exampleTime.Add(750 * time.Millisecond),
	Turns:        1,
	Spans:        1,
	Cost:         0.0000042,
	InputTokens:  12,
	OutputTokens: 4,
	Scores:       1,
	MeanScore:    new(100.0),
}

var exampleSpan = wire.TraceSpan{
	ID:        exampleRequest,
	Name:      "chat gpt-4o",
	SpanID:    "eee19b7ec3c1b174",
	StartTime: &exampleTime,
	EndTime:   &exampleTime,
}

var severalTurns = &wire.Filter{Filters: []wire.Filter{
	{Field: "turns", Operator: "gte", Value: json.RawMessage(`2`)},
	{Field: "last_seen", Operator: "gte", Value: json.RawMessage(`"2026-11-21T00:00:00Z"`)},
}}

// searchRollups returns the operation of a search for sessions, traces or users.
func searchRollups(id, of, detail string) operation {
	return operation{
		id: id, tag: tagRequests, name: "search-sessions",
		route:   "POST /api/public/v2/" + of + "/search",
		summary: "Find " + of,
		detail: detail + " `filter_group` and `q` find those with a call that matches, `having` those " +
			"that match themselves, and `filter` says both in a line, as in `turns:>3 status:error`. " +
			"No time range is needed.",
		optional: true,
		body:     RollupSearch{RollupSearch: wire.RollupSearch{Having: severalTurns, SortBy: "cost", PerPage: 20}},
		answers: success("A page of them.", wire.RollupPage{
			Success:  true,
			Items:    []wire.Rollup{exampleRollup},
			Total:    1,
			Complete: true,
		}),
	}
}

// RollupSearch chooses sessions, traces or users.
type RollupSearch struct {
	open
	wire.RollupSearch
}

// SpanSearch chooses spans.
type SpanSearch struct {
	open
	wire.SpanSearch
}

const deletedText = "They can no longer be found. What was accepted before and arrives later is dropped."

var rollupOperations = []operation{
	searchRollups("searchSessions", "sessions",
		"A session is what has one `session_id`: the field of a call, or its metadata of that name."),
	searchRollups("searchTraces", "traces", "A trace is what has one `trace_id`."),
	searchRollups("searchUsers", "users",
		"A user is what has one `user_id`: the field of a call, or its metadata of that name."),
	{
		id: "searchSpans", tag: tagRequests, name: "search-spans",
		route:   "POST /api/public/v2/spans/search",
		summary: "Find spans",
		detail: "Spans of the trace that was seen last come first. A page takes two seconds at most; if `complete` " +
			"is false, continue with its cursor.",
		optional: true,
		body:     SpanSearch{SpanSearch: wire.SpanSearch{Name: "chat", Status: "ERROR", Having: severalTurns}},
		answers: success("A page of them.", wire.SpanPage{
			Success:  true,
			Items:    []wire.FoundSpan{{TraceID: exampleTrace, TraceSpan: exampleSpan}},
			Complete: true,
		}),
	},
	{
		id: "getSession", tag: tagRequests, name: "get-session",
		route:   "GET /api/public/v2/sessions/{session_id}",
		summary: "Read what a session adds up to",
		detail:  "A search for requests with the filter `session:ID` has its calls.",
		answers: success("The session.", wire.RollupFound{
			Success:   true,
			Rollup:    exampleRollup,
			OwnScores: []wire.Score{},
		}),
	},
	{
		id: "deleteSession", tag: tagRequests, name: "delete-session",
		route:   "DELETE /api/public/v2/sessions/{session_id}",
		summary: "Delete a session for good",
		detail: "Its calls and scores until now, and all of each trace that no other session is in. Later calls " +
			"of it are kept.",
		answers: success(deletedText, deleted),
	},
	{
		id: "deleteTrace", tag: tagRequests, name: "delete-trace",
		route:   "DELETE /api/public/v2/traces/{trace_id}",
		summary: "Delete a trace for good",
		detail:  "Its spans, calls and scores until now, and requests that log calls of it.",
		answers: success(deletedText, deleted),
		errors:  []wire.Code{wire.CodeNotFound},
	},
}
