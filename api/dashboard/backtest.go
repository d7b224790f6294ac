package dashboard

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

const backtestsPerPage = 6

// backtestView is what a backtest shows: past requests of a template, and what another version would have sent.
type backtestView struct {
	templateHead
	With   int // the version that is rendered
	Sent   int // only requests that were sent with this one; 0: any
	Select []int
	Rows   []backtestRow
	Older  string
	First  string
}

type backtestRow struct {
	RequestID  string
	AcceptedAt time.Time
	Version    *int
	Variables  string
	Response   string // what came back then, its beginning
	Scores     []wire.Score
	Price      *float64
	LatencyMS  *float64
	Diff       []diffRow // nil: the same would be sent
	Fault      string    // why it could not be rendered
	Warning    string
}

func (d *Dashboard) backtestPage(c *call) error {
	head, err := d.head(c, "backtest")
	if err != nil {
		return err
	}
	v := backtestView{templateHead: head}
	if v.With, err = version(c, "v", head.Latest()); err != nil {
		return err
	}
	if v.Sent, err = version(c, "sent", 0); err != nil {
		return err
	}
	for n := head.Latest(); n > max(0, head.Latest()-comparedMax); n-- {
		v.Select = append(v.Select, n)
	}
	page, err := d.Records.Search(c.Context(), c.identity(), wire.Search{
		FilterGroup: filterOf(head.Name, v.Sent), PerPage: backtestsPerPage, Cursor: c.FormValue("cursor"),
	})
	if err != nil {
		return err
	}
	for _, found := range page.Items {
		row, err := d.backtest(c, &v, found.RequestID)
		if wire.IsCode(err, wire.CodeNotFound) && len(v.Rows) > 0 {
			continue // deleted since
		}
		if err != nil {
			return err
		}
		v.Rows = append(v.Rows, row)
	}
	more := []string{"v", strconv.Itoa(v.With)}
	if v.Sent > 0 {
		more = append(more, "sent", strconv.Itoa(v.Sent))
	}
	if c.FormValue("cursor") != "" {
		v.First = templateAddress("/template/backtest", head.Name, more...)
	}
	if page.NextCursor != nil {
		v.Older = templateAddress("/template/backtest", head.Name, append(more, "cursor", *page.NextCursor)...)
	}
	return d.show(c, http.StatusOK, "backtest", head.Name, "templates", v)
}

// backtest renders the variables of one request with the version asked for.
func (d *Dashboard) backtest(c *call, v *backtestView, id string) (backtestRow, error) {
	r, err := d.Records.Request(c.Context(), c.identity(), id)
	if err != nil {
		return backtestRow{}, err
	}
	row := backtestRow{RequestID: r.RequestID, AcceptedAt: r.AcceptedAt, Scores: r.Scores, Price: r.Price, LatencyMS: r.LatencyMS}
	variables := map[string]json.RawMessage{}
	if r.Prompt != nil {
		row.Version = r.Prompt.Version
		if raw := string(r.Prompt.InputVariables); raw != "" && raw != "null" {
			row.Variables = variablesCut(raw)
			if json.Unmarshal(r.Prompt.InputVariables, &variables) != nil {
				row.Fault = "Its variables are no object."
			}
		}
	}
	read := d.Read(r.Request)
	row.Response = cut(talk(read.Output))
	if row.Fault != "" {
		return row, nil
	}
	t, err := d.Templates.Fetch(c.Context(), c.identity(), v.Name, wire.TemplateFetch{
		Selector: wire.Selector{Version: v.With}, Provider: plainProvider, Model: "any", Variables: variables,
	})
	if wire.IsCode(err, wire.CodeInvalid) {
		row.Fault = wire.AsError(err).Message
		return row, nil
	}
	if err != nil {
		return row, err
	}
	row.Warning = warning(t)
	now := d.Read(encoded(map[string]any{"kwargs": t.LLMKwargs}))
	row.Diff = diff(cut(talk(read.Input)), cut(talk(now.Input)))
	return row, nil
}

// cut bounds a text that is shown among many.
func cut(s string) string {
	const most = 4 << 10
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "\n… (cut)"
}

// variablesCut lays variables out, unless they are long.
func variablesCut(raw string) string {
	if laid := layOut(raw); len(raw) < 4<<10 && laid != "" {
		return laid
	}
	return cut(raw)
}
