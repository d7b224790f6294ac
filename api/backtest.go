package api

import (
	"bytes"
	"encoding/json"
	"strconv"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// backtestBytesMax ends an answer early, even if more requests were asked for.
const backtestBytesMax = 32 << 20

// backtest renders the variables of a template's newest requests with another version of it.
// The answer has one line for each request, newest first. Only the other capabilities are used,
// so that a sidecar answers it like a server.
func (a *API) backtest(c *exchange, q wire.BacktestQuery) error {
	if a.c.Templates == nil {
		return wire.Errorf(wire.CodeNotImplemented, "Templates are not served here. Call a sidecar or a server.")
	}
	rows, err := a.backtestRows(c, &q)
	if err != nil {
		return err
	}

	var answer bytes.Buffer
	lines := json.NewEncoder(&answer)
	lines.SetEscapeHTML(false)
	for _, row := range rows {
		line, err := a.backtestLine(c, &q, row.RequestID)
		if wire.IsCode(err, wire.CodeNotFound) {
			// It was deleted after the search.
			continue
		}
		if err != nil {
			return err
		}

		if err := lines.Encode(line); err != nil {
			return err
		}
		if answer.Len() > backtestBytesMax {
			break
		}
	}

	c.ctx.SetStatusCode(200)
	c.ctx.SetContentType("application/x-ndjson")
	c.ctx.SetBody(answer.Bytes())

	return nil
}

// backtestRows finds the requests to render, and resolves the template in q.
func (a *API) backtestRows(c *exchange, q *wire.BacktestQuery) ([]wire.Row, error) {
	// This comes before the search, so that an unknown template is a 404 and not an empty answer.
	// The version is fixed here for all lines, because a label may move meanwhile.
	raw, err := a.c.Templates.Raw(c.context, c.id, q.Name, q.Selector)
	if err != nil {
		return nil, err
	}
	q.Name = raw.Name
	q.Selector = wire.Selector{Version: raw.Version}

	sent := filterline.Line{Terms: []filterline.Term{filterline.Where("template", "", raw.Name)}}
	if q.Sent > 0 {
		sent.Terms = append(sent.Terms, filterline.Where("version", "", strconv.Itoa(q.Sent)))
	}
	selected, err := sent.Compile(filterline.Clock{})
	if err != nil {
		return nil, err
	}
	if q.Last == 0 {
		q.Last = wire.BacktestDefault
	}

	page, err := a.recorded.Search(c.context, c.id, wire.Search{
		FilterGroup: filterline.Both(selected, q.Filter),
		PerPage:     q.Last,
	})

	return page.Items, err
}

// backtestLine renders the variables of one request. Faults of these variables are part
// of the line, so that the other requests are still rendered.
func (a *API) backtestLine(c *exchange, q *wire.BacktestQuery, requestID string) (wire.Backtest, error) {
	r, err := a.recorded.Request(c.context, c.id, requestID)
	if err != nil {
		return wire.Backtest{}, err
	}

	line := wire.Backtest{
		RequestID:      r.RequestID,
		AcceptedAt:     r.AcceptedAt,
		InputVariables: json.RawMessage("{}"),
		Sent: wire.BacktestSent{
			Provider:  r.Provider,
			Model:     r.Model,
			Request:   r.Request,
			Price:     r.Price,
			LatencyMS: r.LatencyMS,
			Scores:    r.Scores,
		},
	}
	if r.Prompt != nil {
		line.Sent.Version = r.Prompt.Version
		if len(r.Prompt.InputVariables) > 0 && string(r.Prompt.InputVariables) != "null" {
			line.InputVariables = r.Prompt.InputVariables
		}
	}

	fetch := wire.TemplateFetch{Selector: q.Selector, Provider: q.Provider}
	if err := json.Unmarshal(line.InputVariables, &fetch.Variables); err != nil {
		line.Error = "its input variables are not an object"
		return line, nil
	}

	t, err := a.c.Templates.Fetch(c.context, c.id, q.Name, fetch)
	switch {
	case wire.IsCode(err, wire.CodeInvalid):
		line.Error = wire.AsError(err).Message
	case err != nil:
		return wire.Backtest{}, err
	default:
		line.Rendered = &wire.BacktestRender{
			Version:   t.Version,
			Blueprint: t.Blueprint,
			LLMKwargs: t.LLMKwargs,
			Warning:   t.Warning,
		}
	}

	return line, nil
}
