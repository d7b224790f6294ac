package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
)

var csvHead = []string{"request_id", "accepted_at", "function_name", "provider", "model", "status", "error_type", "finish_reason", "latency_seconds",
	"input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd", "template", "version", "label", "scores", "tags", "metadata", "group_ids", "sidecar"}

// exportCSV writes a line for each record that the search finds. It holds one page at a time. The heading is left out when an
// export goes on.
func exportCSV(c *cli.Context, cl *client.Client, id wire.Identity, search wire.Search, out io.Writer) error {
	w := csv.NewWriter(out)
	if search.Cursor == "" {
		_ = w.Write(csvHead) // Flush tells
	}
	search.PerPage = wire.PageItemsMax
	lines, live := 0, isTerminal(c.App.ErrWriter)
	for {
		page, err := cl.Search(c.Context, id, search)
		if err != nil {
			w.Flush()
			if search.Cursor == "" {
				return err
			}
			return fmt.Errorf("the export broke off: %w\nGo on with the same command and --cursor %s", message(err), printable(search.Cursor))
		}
		for i := range page.Items {
			_ = w.Write(csvLine(&page.Items[i]))
		}
		if w.Flush(); w.Error() != nil {
			return w.Error()
		}
		lines += len(page.Items)
		if live {
			fmt.Fprintf(c.App.ErrWriter, "\r%s records ", humanize.Comma(int64(lines)))
		}
		if page.NextCursor == nil {
			break
		}
		search.Cursor = *page.NextCursor
	}
	if live {
		fmt.Fprint(c.App.ErrWriter, "\r")
	}
	fmt.Fprintf(c.App.ErrWriter, "%s records were exported.\n", humanize.Comma(int64(lines)))
	return nil
}

func csvLine(r *wire.Row) []string {
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	or := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	latency, cost, version := "", "", ""
	if r.Latency != nil {
		latency = strconv.FormatFloat(*r.Latency, 'f', -1, 64)
	}
	if r.Price != nil {
		cost = strings.TrimPrefix(money(r.Price), "$")
	}
	if r.PromptVersion != nil {
		version = strconv.Itoa(*r.PromptVersion)
	}
	var metadata []string
	for _, m := range r.Metadata {
		metadata = append(metadata, m.Key+"="+m.Value)
	}
	line := []string{r.RequestID, r.AcceptedAt.UTC().Format(time.RFC3339Nano), r.FunctionName, r.Provider, r.Engine, r.Status, r.ErrorType, r.FinishReason, latency,
		number(r.InputTokens), number(r.OutputTokens), number(r.CachedTokens), number(r.ReasoningTokens), cost, or(r.PromptName), version, or(r.PromptLabel),
		scores(r.Scores), strings.Join(r.Tags, ","), strings.Join(metadata, "; "), strings.Join(r.GroupIDs, ","), r.Sidecar}
	for i := range line {
		line[i] = unarmed(line[i])
	}
	return line
}

// unarmed keeps a spreadsheet from taking a cell for a formula (https://owasp.org/www-community/attacks/CSV_Injection): one that
// begins like a formula gets an apostrophe before it, which spreadsheets do not show. No number here is negative.
func unarmed(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n|", rune(s[0])) {
		return "'" + s
	}
	return s
}
