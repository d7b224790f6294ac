// Package review has the dashboard's page on which people score calls one after another: a call, the
// scores to give beside it, and the next call.
//
// # Files
//
//	pages.go    the table of pages
//	queue.go    which calls, and which of them is next; the scores to give, and the keys for them
//	screen.go   the page: a call with its form, and what that does: saving, skipping, undoing
package review

import (
	"context"
	"embed"

	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// Records finds and reads calls.
type Records interface {
	filter.Searcher
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
}

// Queues knows what the project has said about reviews.
type Queues interface {
	ScoreDefinitions(ctx context.Context, id wire.Identity) (wire.ScoreDefinitions, error)
	ReviewQueues(ctx context.Context, id wire.Identity) ([]wire.ReviewQueue, error)

	// Claim returns the first of some calls that no other reviewer looks at; "" if there is none. It is
	// the reviewer's for two minutes.
	Claim(ctx context.Context, account, reviewer string, calls []string) (call string, err error)
}

// pages are the pages of reviews.
type pages struct {
	records  Records
	recorder frame.Recorder
	queues   Queues
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of reviews.
func Pages(records Records, recorder frame.Recorder, queues Queues) frame.Section {
	p := &pages{records, recorder, queues}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /review", Page: p.next},
			{Pattern: "POST /review", Page: p.judge, Review: p.again},
			{Pattern: "GET /review/{name}", Page: openQueue},
		},
	}
}
