// Package scores has the dashboard's pages of what scores mean: their definitions, and the queues in
// which people give them.
package scores

import (
	"context"
	"embed"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// Records adds up what was logged.
type Records interface {
	Agreement(
		ctx context.Context, id wire.Identity, s wire.ScoreSum, f *wire.Filter,
	) (wire.ScoreAgreement, error)
	Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error)
}

// Scoring keeps the definitions of scores and the queues of a project.
type Scoring interface {
	ScoreDefinitions(ctx context.Context, id wire.Identity) (wire.ScoreDefinitions, error)
	DefineScore(ctx context.Context, id wire.Identity, d wire.ScoreDefinition) error
	UndefineScore(ctx context.Context, id wire.Identity, name string) error
	ReviewQueues(ctx context.Context, id wire.Identity) ([]wire.ReviewQueue, error)
	PutReviewQueue(ctx context.Context, id wire.Identity, q wire.ReviewQueue) error
	RemoveReviewQueue(ctx context.Context, id wire.Identity, name string) error
}

// pages are the pages of scores.
type pages struct {
	records Records
	scoring Scoring
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of scores.
func Pages(records Records, scoring Scoring) frame.Section {
	p := &pages{records, scoring}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /scores", Page: p.list},
			{Pattern: "GET /scores/{id}", Page: p.scorePage},
			{Pattern: "POST /scores", Page: p.define},
			{Pattern: "POST /scores/{id}/remove", Page: p.undefine},
			{Pattern: "POST /queues", Page: p.putQueue},
			{Pattern: "POST /queues/{id}/remove", Page: p.removeQueue},
		},
		Notices: map[string]string{
			"defined":   "The score is defined. From now on, a value that does not fit is refused or counted apart.",
			"undefined": "The definition is removed. Its scores stay.",
			"queued":    "The queue is saved.",
			"unqueued":  "The queue is removed. The scores that were given in it stay.",
		},
	}
}
