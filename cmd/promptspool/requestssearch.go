package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/registry/prices"
)

func searchCommand() *cli.Command {
	return &cli.Command{
		Name: "search", Usage: "list records, newest first",
		Flags: append(own("requests search", append(filterFlags(),
			stringFlag("sort", "", "by what instead of the newest: `field` cost, latency_ms, input_tokens, output_tokens, status or request_start_time, the highest first"),
			stringFlag("limit", "20", "the `number` of records, at most 1000"),
			stringFlag("cursor", "", "go on where an earlier list ended, at the `cursor` that it told"))...,
		), remoteFlags()...),
		Action: searchRequests,
	}
}

func searchRequests(c *cli.Context) error {
	v := values{c: c}
	where, words := v.filter()
	limit, asJSON := v.count("limit", wire.PageItemsMax), v.asJSON()
	cl, id := v.remote()
	if err := v.err(); err != nil {
		return err
	}
	defer cl.Close()

	search := wire.Search{FilterGroup: where, Q: words, SortBy: text(c, "sort"), PerPage: limit, Cursor: text(c, "cursor")}
	if search.SortBy != "" {
		search.SortOrder = "desc"
	}
	page, err := cl.Search(c.Context, id, search)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c.App.Writer, page)
	}
	if len(page.Items) == 0 && page.NextCursor == nil {
		printUnmatched(c, cl, id, where)
		return nil
	}

	g := rowGrid(newPainter(c))
	for _, r := range page.Items {
		listRow(g, r)
	}
	if err := g.flush(); err != nil {
		return err
	}
	tellTotal(c, page)
	return nil
}

// tellTotal says how much there is beyond the page, and how to get it.
func tellTotal(c *cli.Context, page wire.SearchPage) {
	p := newPainter(c)
	if page.Total > len(page.Items) {
		of := humanize.Comma(int64(page.Total))
		if page.TotalIsLowerBound {
			of = "more than " + of
		}
		fmt.Fprintln(p.w, "\n"+p.paint(faint, fmt.Sprintf("%d of %s", len(page.Items), of)))
	}
	if page.BudgetMS > 0 && !page.Complete {
		fmt.Fprintf(p.w, "\nThe time for looking into texts ran out; older records were not looked at.\n")
	}
	if page.NextCursor != nil {
		fmt.Fprintf(p.w, "\nMore: --cursor %s\n", printable(*page.NextCursor))
	}
}

func rowGrid(p painter) *grid {
	return newGrid(p, "REQUEST_ID", "ACCEPTED", "MODEL", "TEMPLATE", ">LATENCY", ">TOKENS", ">COST", "SCORES", "STATUS", "TAGS")
}

func listRow(g *grid, r wire.Row) {
	g.row(cell{r.RequestID, cyan}, moment(r.AcceptedAt), r.Engine, templateOf(r), milliseconds(r.Latency), tokens(r), money(r.Price),
		scores(r.Scores), statusCell(r.Status), strings.Join(r.Tags, ","))
}

func statusCell(status string) cell {
	switch status {
	case "SUCCESS":
		return cell{status, green}
	case "WARNING":
		return cell{status, yellow}
	}
	return cell{status, red}
}

func templateOf(r wire.Row) string {
	switch {
	case r.PromptName == nil:
		return ""
	case r.PromptVersion == nil:
		return *r.PromptName
	}
	return *r.PromptName + "@" + strconv.Itoa(*r.PromptVersion)
}

// money is an amount of dollars, as exactly as it is known; a dash if it is not.
func money(dollars *float64) string {
	if dollars == nil {
		return "-"
	}
	return "$" + prices.Dollars(math.Round(*dollars*1e9)).String()
}

func milliseconds(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return brief(time.Duration(*seconds * 1e9))
}

// brief is a duration in as many figures as people look at.
func brief(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return d.Round(100 * time.Millisecond).String()
}

func tokens(r wire.Row) string {
	if r.InputTokens == nil || r.OutputTokens == nil {
		return "-"
	}
	return fmt.Sprintf("%d+%d", *r.InputTokens, *r.OutputTokens)
}

func scores(list []wire.Score) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = fmt.Sprintf("%s=%d", s.Name, s.Score)
	}
	return strings.Join(texts, " ")
}
