package templates

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/markup"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/wire"
)

const backtestsPerPage = 6

// backtestView is what a backtest shows: past requests of a template, and what another
// version would have sent for them.
type backtestView struct {
	templateHead
	With   int // the version to test
	Sent   int // the version that the requests were sent with; 0 for any
	Select []int
	Rows   []backtestRow
	Older  string // the addresses of pages
	First  string
}

type backtestRow struct {
	RequestID  string
	AcceptedAt time.Time
	Version    *int
	Variables  string
	Response   string // the beginning of the original response
	Scores     []wire.Score
	Price      *float64
	LatencyMS  *float64
	Diff       []textdiff.Row // nil if the same would be sent
	History    int            // messages that the app added to the template's own; they are not compared
	Fault      string         // why the version could not be rendered
	Warning    string
}

func (p *pages) backtestPage(c *frame.Exchange, head templateHead) (err error) {
	v := backtestView{templateHead: head, Select: head.latestVersions(comparedMax)}
	v.With, err = versionParam(c, "v", head.Latest())
	if err != nil {
		return err
	}
	v.Sent, err = versionParam(c, "sent", 0)
	if err != nil {
		return err
	}

	page, err := requestsOf(c, head.Name, v.Sent).List(c.Context(), p.records, c.Identity(),
		wire.Search{PerPage: backtestsPerPage, Cursor: c.FormValue("cursor")})
	if err != nil {
		return err
	}
	for _, found := range page.Items {
		row, err := p.backtest(c, &v, found.RequestID)
		if wire.IsCode(err, wire.CodeNotFound) && len(v.Rows) > 0 {
			// The request was deleted since the search.
			continue
		}
		if err != nil {
			return err
		}
		v.Rows = append(v.Rows, row)
	}

	params := []string{"v", strconv.Itoa(v.With)}
	if v.Sent > 0 {
		params = append(params, "sent", strconv.Itoa(v.Sent))
	}
	if c.FormValue("cursor") != "" {
		v.First = address.Template("/template/backtest", head.Name, params...)
	}
	if page.NextCursor != nil {
		params = append(params, "cursor", *page.NextCursor)
		v.Older = address.Template("/template/backtest", head.Name, params...)
	}

	return c.Show(http.StatusOK, "backtest", head.Name+" · Backtest", "templates", v)
}

// backtest renders version v.With with the variables of one request, and compares the
// messages with those that were sent.
func (p *pages) backtest(c *frame.Exchange, v *backtestView, id string) (backtestRow, error) {
	r, err := p.records.Request(c.Context(), c.Identity(), id)
	if err != nil {
		return backtestRow{}, err
	}

	sent := calls.Read(r.Request)
	row := backtestRow{
		RequestID:  r.RequestID,
		AcceptedAt: r.AcceptedAt,
		Response:   truncate(transcript(sent.Output)),
		Scores:     r.Scores,
		Price:      r.Price,
		LatencyMS:  r.LatencyMS,
	}

	variables := map[string]json.RawMessage{}
	if r.Prompt != nil {
		row.Version = r.Prompt.Version
		if raw := string(r.Prompt.InputVariables); raw != "" && raw != "null" {
			row.Variables = shownVariables(raw)
			if json.Unmarshal(r.Prompt.InputVariables, &variables) != nil {
				row.Fault = "Its variables are not an object."
				return row, nil
			}
		}
	}

	// For any model: only the messages are compared.
	rendered, err := p.templates.Fetch(c.Context(), c.Identity(), v.Name, wire.TemplateFetch{
		Selector:  wire.Selector{Version: v.With},
		Provider:  plainProvider,
		Model:     "any",
		Variables: variables,
	})
	if wire.IsCode(err, wire.CodeInvalid) {
		row.Fault = wire.AsError(err).Message
		return row, nil
	}
	if err != nil {
		return row, err
	}

	row.Warning = warning(rendered)
	now := calls.Read(encoded(map[string]any{"kwargs": rendered.LLMKwargs}))
	own := ownMessages(sent.Input, now.Input)
	row.History = len(sent.Input) - len(own)
	row.Diff = textdiff.Lines(truncate(transcript(own)), truncate(transcript(now.Input)))

	return row, nil
}

// alignedMax bounds the comparisons of messages with each other.
const alignedMax = 100_000

// ownMessages returns those of the sent messages that stand for the template's own: apps add what was
// said before, and the answers of tools. If none stands for any, all do.
func ownMessages(sent, template []calls.Message) []calls.Message {
	if len(sent) <= len(template) || len(sent)*len(template) > alignedMax {
		return sent
	}
	says := make([]string, len(sent))
	for i := range sent {
		says[i] = conversation.MessageText(&sent[i])
	}

	// From the end, for the newest messages are what the template was filled in with. Each of its
	// messages is the last one that says the same, or else the last one in its role.
	var own []calls.Message
	end := len(sent)
	for i := len(template) - 1; i >= 0; i-- {
		wanted, at := conversation.MessageText(&template[i]), -1
		for j := end - 1; j >= i; j-- {
			if sent[j].Role != template[i].Role {
				continue
			}
			if says[j] == wanted {
				at = j
				break
			}
			// Of instructions, the first counts.
			if at < 0 || isInstruction(sent[j].Role) {
				at = j
			}
		}
		if at >= 0 {
			end = at
			own = append(own, sent[at])
		}
	}
	slices.Reverse(own)
	if len(own) == 0 {
		return sent
	}

	return own
}

func isInstruction(role string) bool { return role == "system" || role == "developer" }

// listedBytesMax bounds a text that is shown among many.
const listedBytesMax = 4 << 10

func truncate(s string) string {
	if len(s) <= listedBytesMax {
		return s
	}

	return strings.ToValidUTF8(s[:listedBytesMax], "") + "\n… (cut)"
}

// shownVariables indents variables, unless they are long.
func shownVariables(raw string) string {
	if laid := markup.Indent(raw); len(raw) < listedBytesMax && laid != "" {
		return laid
	}

	return truncate(raw)
}
