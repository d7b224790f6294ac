package api

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// exportCSV answers with a line for each record that the search finds, without its texts: what a spreadsheet takes. It asks for a page
// of rows at a time and holds no more. An answer that cannot be finished is cut, so that nobody takes a part for the whole.
func (a *API) exportCSV(c *call, s wire.Search, done func()) error {
	s.Page, s.PerPage = 0, wire.PageItemsMax
	page, err := a.c.Querier.Search(c.life, c.id, s) // what is wrong with the search must be told before the first line
	if err != nil {
		done()
		return err
	}
	id := c.id
	out, in := io.Pipe() // fasthttp closes out when the answer is written, or cannot be
	c.ctx.SetContentType("text/csv; charset=utf-8")
	streamBody(c.ctx, out)
	go func() {
		defer done()
		defer func() {
			if p := recover(); p != nil { // here it would end the process
				a.c.Metrics.Panics.Inc()
				a.c.Logger.Error("an export panicked", "panic", p, "stack", string(debug.Stack()))
				_ = in.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()
		_ = in.CloseWithError(a.writeCSV(id, s, page, in))
	}()
	return nil
}

// writeCSV writes page and those behind it.
func (a *API) writeCSV(id wire.Identity, s wire.Search, page wire.SearchPage, out io.Writer) error {
	ctx, done := context.WithTimeout(a.life, callTimeMax)
	defer done()
	begun := time.Now()
	w := csv.NewWriter(out)
	if s.Cursor == "" {
		_ = w.Write(wire.CSVColumns) // Flush tells
	}
	for {
		for i := range page.Items {
			cursor := ""
			if i == len(page.Items)-1 && page.NextCursor != nil {
				cursor = *page.NextCursor
			}
			_ = w.Write(csvLine(&page.Items[i], cursor))
		}
		if w.Flush(); w.Error() != nil || page.NextCursor == nil {
			return w.Error()
		}
		if time.Since(begun) > exportTimeMax {
			return errEnough
		}
		s.Cursor = *page.NextCursor
		var err error
		if page, err = a.c.Querier.Search(ctx, id, s); err != nil {
			a.c.Logger.Warn("an export broke off", "error", err)
			return fmt.Errorf("export: %w", err)
		}
	}
}

// csvLine is a row as wire.CSVColumns has it.
func csvLine(r *wire.Row, cursor string) []string {
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
		cost = strconv.FormatFloat(*r.Price, 'f', -1, 64)
	}
	if r.PromptVersion != nil {
		version = strconv.Itoa(*r.PromptVersion)
	}
	var metadata, scores []string
	for _, s := range r.Scores {
		scores = append(scores, s.Name+"="+strconv.Itoa(s.Score))
	}
	for _, m := range r.Metadata {
		metadata = append(metadata, m.Key+"="+m.Value)
	}
	line := []string{r.RequestID, r.AcceptedAt.UTC().Format(time.RFC3339Nano), r.FunctionName, r.Provider, r.Engine, r.Status, r.ErrorType, r.FinishReason, latency,
		number(r.InputTokens), number(r.OutputTokens), number(r.CachedTokens), number(r.ReasoningTokens), cost, or(r.PromptName), version, or(r.PromptLabel),
		strings.Join(scores, " "), strings.Join(r.Tags, ","), strings.Join(metadata, "; "), strings.Join(r.GroupIDs, ","), r.Sidecar, cursor}
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
