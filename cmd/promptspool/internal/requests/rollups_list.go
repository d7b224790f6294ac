package requests

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

// TracesCommand is `promptspool traces`: read what agents did.
func TracesCommand() *cli.Command {
	return &cli.Command{
		Name:        "traces",
		Usage:       "find and read traces of agents",
		Subcommands: []*cli.Command{listCommand("traces"), getTraceCommand()},
	}
}

// SessionsCommand is `promptspool sessions`: read conversations.
func SessionsCommand() *cli.Command {
	return &cli.Command{
		Name:        "sessions",
		Usage:       "find and read sessions, which are conversations of several calls",
		Subcommands: []*cli.Command{listCommand("sessions"), getSessionCommand()},
	}
}

// UsersCommand is `promptspool users`: what was done for whom.
func UsersCommand() *cli.Command {
	return &cli.Command{
		Name:        "users",
		Usage:       "find the users that calls were made for",
		Subcommands: []*cli.Command{listCommand("users")},
	}
}

// listCommand lists sessions, traces or users.
func listCommand(of string) *cli.Command {
	fields := wire.RollupSortFields
	return &cli.Command{
		Name:  "list",
		Usage: "list " + of + ", the last seen first",
		Flags: listFlags(of+" list", of, strings.Join(fields[:len(fields)-1], ", ")+" or "+fields[len(fields)-1]),
		Action: func(c *cli.Context) error {
			return listRollups(c, of)
		},
	}
}

func listRollups(c *cli.Context, of string) error {
	v := config.Read(c)
	line, selected := filter.ReadRollup(v)
	search := wire.RollupSearch{
		Of:          of,
		FilterGroup: selected.Calls.Filter,
		Q:           selected.Calls.Words,
		Having:      selected.Having,
		SortBy:      v.OneOf("sort", wire.RollupSortFields...),
		PerPage:     v.Count("limit", wire.PageItemsMax),
		Cursor:      v.Text("cursor"),
	}
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	page, err := cl.Rollups(c.Context, id, search)
	if err != nil {
		return err
	}
	if v.AsJSON() {
		return print.JSON(c.App.Writer, page)
	}
	if len(page.Items) == 0 && page.NextCursor == nil {
		printUnmatched(c, cl, id, line, of)
		return nil
	}

	p := print.NewPainter(c)
	g := rollupGrid(p, of)
	for _, r := range page.Items {
		g.Row(rollupCells(g, &r)...)
	}
	if err := g.Flush(); err != nil {
		return err
	}

	if !page.Complete {
		fmt.Fprintln(p.Out, "\nThese are those of the newest calls that match: looking at all takes too long.")
	} else if page.Total > len(page.Items) {
		tellPart(p, len(page.Items), humanize.Comma(int64(page.Total)))
	}
	tellNext(p, page.NextCursor)

	return nil
}

func rollupGrid(p print.Painter, of string) *print.Grid {
	name := "NAME"
	if of != "traces" {
		name = ""
	}

	return print.NewGrid(p, strings.ToUpper(strings.TrimSuffix(of, "s"))+"_ID", "LAST_SEEN", ">DURATION", ">TURNS",
		">SPANS", ">ERRORS", ">TOKENS", ">COST", ">SCORE", name)
}

func rollupCells(g *print.Grid, r *wire.Rollup) []any {
	errors, score := print.Unstyled, "-"
	if r.Errors > 0 {
		errors = print.Red
	}
	if r.MeanScore != nil {
		score = strconv.FormatFloat(*r.MeanScore, 'f', 1, 64)
	}

	return []any{
		print.Styled(r.ID, print.Cyan), g.Moment(r.LastSeen), brief(r.LastSeen.Sub(r.FirstSeen)), r.Turns, r.Spans,
		print.Styled(strconv.FormatInt(r.Errors, 10), errors),
		tokens(wire.Row{InputTokens: &r.InputTokens, OutputTokens: &r.OutputTokens}), money(&r.Cost), score,
		r.Name,
	}
}
