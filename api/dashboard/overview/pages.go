// Package overview has the dashboard's pages of what there is as a whole: the numbers of all requests, and
// the sidecars that send them.
package overview

import (
	"context"
	"embed"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// Records adds up what was logged.
type Records interface {
	Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error)
	Kept(ctx context.Context, id wire.Identity) (wire.Kept, error)
}

// pages are the pages of what there is as a whole.
type pages struct {
	records   Records
	retention Retention
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of what there is as a whole.
func Pages(records Records, retention Retention) frame.Section {
	p := &pages{records, retention}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /{$}", Page: p.overviewPage},
			{Pattern: "GET /projects", Page: p.projectsPage},
			{Pattern: "GET /sidecars", Page: p.sidecarsPage},
		},
	}
}
