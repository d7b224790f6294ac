// Package sessions has the dashboard's pages of what calls add up to: the lists of traces, sessions and
// users, and a session as one conversation. The page of a trace is one of package requests.
package sessions

import (
	"context"
	"embed"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// Records reads what was logged.
type Records interface {
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
	Rollups(ctx context.Context, id wire.Identity, s wire.RollupSearch) (wire.RollupPage, error)
	Session(ctx context.Context, id wire.Identity, session string) (wire.RollupFound, error)
}

// pages are the pages of sessions.
type pages struct {
	records  Records
	recorder frame.Recorder
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of sessions.
func Pages(records Records, recorder frame.Recorder) frame.Section {
	p := &pages{records, recorder}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /traces", Page: p.list},
			{Pattern: "GET /sessions", Page: p.list},
			{Pattern: "GET /sessions/{id}", Page: p.sessionPage},
			{Pattern: scoreRoute, Page: p.setScore,
				Review: frame.Review("Set this score?", "Set", "name", "score", "set")},
			{Pattern: "GET /users", Page: p.list},
		},
		Notices: map[string]string{
			"no-next":     "There is no later session.",
			"no-previous": "There is no earlier session.",
		},
		Undos: map[string]frame.Undoing{"session_id": frame.UndoScore(recorder, p.scored)},
	}
}
