package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool/archive"
)

// withNodeAway is a database of several nodes, one of which does not answer.
type withNodeAway struct {
	database
	remoteDatabase
}

func (withNodeAway) NodesAway(ctx context.Context) ([]string, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return []string{"db1:5432"}, nil
}

func (withNodeAway) Size(ctx context.Context) (archive.Size, error) {
	<-ctx.Done() // all nodes are asked, again and again
	return archive.Size{}, ctx.Err()
}

func (withNodeAway) FleetOfAll(context.Context) (known, alive int, err error) { return 3, 2, nil }

func TestTheStatusNamesNodesThatAreAway(t *testing.T) {
	var db withNodeAway

	s := statusOfServer("s", time.Now(), opened{db: db, remote: db}, new(dbHealth), new(api.DropCounter))
	if !slices.Equal(s.NodesAway, []string{"db1:5432"}) || s.Alive != 2 {
		t.Errorf("%+v", s)
	}

	// What nobody could count is not shown as 0.
	var shown strings.Builder
	app := cli.App{Writer: &shown, Flags: config.OutputFlags(), Action: func(c *cli.Context) error {
		return print.Output(c, s, s.describe)
	}}
	err := app.Run([]string{"status"})
	text := shown.String()
	if err != nil || !strings.Contains(text, "db1:5432") || !strings.Contains(text, "2 online, 1 offline") ||
		strings.Contains(text, "requests") || strings.Contains(text, "orphans") {
		t.Errorf("%v:\n%s", err, text)
	}
}
