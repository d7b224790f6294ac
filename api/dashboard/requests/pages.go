// Package requests has the dashboard's pages of what was logged: the list of requests, one request with
// the others of its trace, and what is done with them: exporting, scoring, deleting.
//
// # Files
//
//	pages.go                         the table of pages
//	list.go, row.go                  the list, its rows, and a request's place in it
//	suggest.go, export.go            completing its filter; saving it as a file
//	record.go, text.go               one request, with others that failed like it, and its texts
//	replay.go                        programs that make the call again
//	trace.go, erase.go               the spans of a trace; deleting requests
package requests

import (
	"context"
	"embed"

	"promptspool/api/dashboard/frame"
	"promptspool/api/tracetree"
	"promptspool/api/wire"
)

// Records reads what was logged, and deletes it.
type Records interface {
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Suggest(ctx context.Context, id wire.Identity, s wire.SuggestQuery) (wire.Suggestions, error)
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
	Trace(ctx context.Context, id wire.Identity, trace string) (wire.Trace, error)
	Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error)
	Export(ctx context.Context, id wire.Identity, e wire.ExportQuery, fn func(wire.Exported) error) error
	ExportEvents(
		ctx context.Context, id wire.Identity, s wire.Search,
		fn func([]wire.Event) error, mark func(cursor string) error,
	) error
}

// Templates knows the versions and labels that a filter may name.
type Templates interface {
	Head(ctx context.Context, id wire.Identity, ident string) (wire.Template, error)
}

// pages are the pages of requests.
type pages struct {
	records   Records
	recorder  frame.Recorder
	templates Templates
	trees     tracetree.Shared
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of requests.
func Pages(records Records, recorder frame.Recorder, templates Templates) frame.Section {
	p := &pages{records: records, recorder: recorder, templates: templates}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /requests", Page: p.requestsPage},
			{Pattern: "POST /requests/view", Page: rememberView},
			{Pattern: "GET /suggestions", Page: p.suggest},
			{Pattern: "GET /requests/export", Page: p.exportRequests},

			{Pattern: "GET /requests/{id}", Page: p.recordPage},
			{Pattern: "GET /requests/{id}/raw", Page: p.rawRecord},
			{Pattern: "GET /requests/{id}/text", Page: p.recordText},
			{Pattern: "POST /requests/{id}/score", Page: p.setScore,
				Review: frame.Review("Set this score?", "Set", "name", "score", "set")},
			{Pattern: "GET /traces/{id}", Page: p.tracePage},
			{Pattern: "POST /traces/{id}/score", Page: p.scoreTrace,
				Review: frame.Review("Set this score?", "Set", "name", "score", "set")},

			{Pattern: "GET /requests/delete", Page: p.erasePage},
			{Pattern: "POST /requests/delete", Page: p.erase},
		},
		Notices: map[string]string{
			"scored": "The score is set.",
			"erased": "The requests were deleted.",
		},
		Undos: map[string]frame.Undoing{
			"request_id": frame.UndoScore(recorder, p.scored),
			"trace_id":   frame.UndoScore(recorder, p.scored),

			"erased": {Text: func(u frame.Undo) string { return "Deleted: " + u.Now + "." }},
		},
	}
}
