package dashboard

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/calls"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

func (d *Dashboard) recordRoutes() {
	d.handle("GET /requests/{id}", wire.RoleViewer, d.recordPage)
	d.handle("GET /requests/{id}/raw", wire.RoleViewer, d.rawRecord)
	d.handle("GET /requests/{id}/text", wire.RoleViewer, d.recordText)
	d.resumable("POST /requests/{id}/score", wire.RoleEditor, d.setScore,
		d.reviewShort("Set this score?", "Set", "name", "score"))
}

// recordView is what the page of a request shows.
type recordView struct {
	shownRequest
	outcome
	Record     wire.Record
	Metadata   []wire.MetadataRow
	Parameters []shownParameter
	Tools      []shownTool
	MoreSent   int            // parameters and tools that the page has no room for
	Variables  *shownText     // of the template; nil if there are none
	FirstToken *float64       // milliseconds until it came; nil if unknown
	Alike      *failuresAlike // nil unless the call failed
	Others     []otherRequest // logged under the same id
	MoreOthers int            // how many more of them the page has no room for
	Back       string         // the address of the list with its filter
	Erase      string         // the address of the question before it is deleted
	Query      string         // that filter, and the page's place, for forms

	Previous, Next neighbour // in that list

	AsSent bool   // texts are not laid out
	Toggle string // the address of the page with the texts the other way

	Earlier, Later string // the addresses of the pages with the messages before and behind these; or ""

	Talk string // the address of the calls of the same conversation; "" if it is unknown

	Answer, Curl, Python string // the addresses of what can be copied; "" if there is no answer
}

// shownParameter is an argument of a call as a page shows it.
type shownParameter struct {
	Name, Short string // Short is a value that fits into a line
	shownText
}

// shownTool is a tool that was sent with a call as a page shows it.
type shownTool struct {
	calls.Tool
	shownText
}

// othersMax bounds the other requests that a page shows.
const othersMax = 20

// otherRequest is another request that was logged under a record's id.
type otherRequest struct {
	shownRequest
	wire.RecordEvent
	TooLarge bool // it is stored, but too large for any page
}

// others reads the other requests that were logged under a record's id. They share the
// room that one page has for texts.
func (d *Dashboard) others(r wire.Record, like *texts) (shown []otherRequest, more int) {
	t := newTexts(nil)
	t.asSent, t.prose = like.asSent, like.prose
	for i, conflict := range r.Conflicts {
		if i == othersMax {
			return shown, len(r.Conflicts) - i
		}

		var o otherRequest
		sameEvent := func(e wire.RecordEvent) bool { return e.ID == conflict.EventID }
		if at := slices.IndexFunc(r.Events, sameEvent); at >= 0 {
			o.RecordEvent = r.Events[at]
		}

		o.TooLarge = len(conflict.Request) == 0 || string(conflict.Request) == "null"
		if !o.TooLarge {
			t.at = like.at + "&event=" + url.QueryEscape(conflict.EventID)
			o.shownRequest = t.call(d.read(conflict.Request))
		}
		shown = append(shown, o)
	}

	return shown, 0
}

// shownRequest is a model call as a page shows it.
type shownRequest struct {
	Input   []shownMessage
	Output  []shownMessage
	Hidden  int           // messages and parts that the page has no room for
	Failure *shownFailure // nil if nothing went wrong
	Raw     *shownText    // the raw response, if nothing else shows all of it
	TooLong bool          // Raw has too many pieces to be taken apart
}

// call prepares a model call for a page.
func (t *texts) call(c Conversation) shownRequest {
	before := t.hidden
	var v shownRequest

	// The response takes its room first: people look for it before they read the prompt.
	v.Output = t.messages("output", c.Output)
	v.Input = t.messages("input", c.Input)
	v.Hidden = t.hidden - before
	v.TooLong = c.TooLong

	if c.Failure != nil {
		v.Failure = &shownFailure{c.Failure.Type, t.show("error", c.Failure.Message, false)}
	}
	if c.Raw != nil {
		raw := t.show("raw", c.RawText(), false)
		v.Raw = &raw
	}

	return v
}

// shownFailure is the error of a model call as a page shows it.
type shownFailure struct {
	Type    string
	Message shownText
}

func (d *Dashboard) recordPage(c *call) error {
	r, err := d.Records.Request(c.Context(), c.identity(), c.PathValue("id"))
	if err != nil {
		return err
	}

	f := c.filter(c.URL.Query())
	read := d.read(r.Content())
	t := c.recordTexts(f, r)
	query := keepPlace(f.values(), c.URL.Query())
	v := recordView{
		outcome: outcome(r.Status),
		Record:  r,
		Back:    f.requests(),
		Query:   query.Encode(),
		AsSent:  t.asSent,
		Toggle:  toggled(c.URL),
		Talk:    talkAddress(r.Metadata),
		Curl:    t.address("curl"),
		Python:  t.address("python"),
	}
	if len(read.Output) > 0 {
		v.Answer = t.address("answer")
	}
	query.Set("id", r.RequestID)
	v.Erase = address("/requests/delete", query)

	t.from = fromPiece(c.URL)
	v.shownRequest = t.call(read)
	if t.from > 0 {
		v.Earlier = withPiece(c.URL, t.from-piecesMax)
	}
	if v.Hidden > 0 {
		v.Later = withPiece(c.URL, t.from+piecesMax)
	}
	if t.from == 0 {
		v.Others, v.MoreOthers = d.others(r, t)
	}
	v.Parameters, v.Tools = t.sent(read)
	v.MoreSent = len(read.Sent.Parameters) + len(read.Sent.Tools) - len(v.Parameters) - len(v.Tools)
	if r.Prompt != nil && len(r.Prompt.InputVariables) > 0 {
		variables := t.show("variables", string(r.Prompt.InputVariables), false)
		v.Variables = &variables
	}
	v.FirstToken = firstToken(r)
	if v.Failure != nil && !r.IsSpan() { // no list shows spans
		v.Alike = d.failedAlike(c, r)
	}

	// Sorted, so that the same request always looks the same.
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		v.Metadata = append(v.Metadata, wire.MetadataRow{Key: key, Value: r.Metadata[key]})
	}

	if v.Previous.Href, v.Next.Href, err = d.neighbours(c, f, r.RequestID); err != nil {
		return err
	}
	v.Previous.Text, v.Next.Text = f.Order.steps()

	return d.show(c, http.StatusOK, "record", v.Title(), "requests", v)
}

// Heading returns what the page is about: a model, or the name of a span.
func (v recordView) Heading() string {
	if v.Record.IsSpan() {
		return cmp.Or(v.Record.SpanName, "Span")
	}

	return cmp.Or(v.Record.Model, "Request")
}

// Title returns what tells the page's tab from those of others: how the call ended, of which template,
// and by which model.
func (v recordView) Title() string {
	var parts []string
	if ended := v.Ended(); ended != "" {
		parts = append(parts, ended)
	}
	if p := v.Record.Prompt; p != nil && p.Name != "" {
		template := p.Name
		if p.Version != nil {
			template += " v" + strconv.Itoa(*p.Version)
		}
		parts = append(parts, template)
	}

	return strings.Join(append(parts, v.Heading()), " · ")
}

// talkKeys are the metadata keys whose value names a conversation.
var talkKeys = []string{"session_id", "conversation_id", "thread_id", "chat_id"}

// talkAddress returns the address of the calls of a record's conversation in the order of their
// time, or "".
func talkAddress(metadata map[string]string) string {
	for _, key := range talkKeys {
		if id := metadata[key]; id != "" {
			f := filter{Order: order{byTime, true}}.with(filterline.Where("metadata", key, id))
			return f.requests()
		}
	}

	return ""
}

// sent prepares what a call was sent with beside its messages, as much as the page has room for.
func (t *texts) sent(c Conversation) (parameters []shownParameter, tools []shownTool) {
	for i, p := range c.Sent.Parameters {
		if !t.takePiece() {
			return parameters, tools
		}
		shown := shownParameter{Name: p.Name}
		if len(p.Value) <= shortBytes && !strings.Contains(p.Value, "\n") {
			shown.Short = p.Value
		} else {
			shown.shownText = t.show(place("parameter", i), p.Value, false)
		}
		parameters = append(parameters, shown)
	}

	for i, tool := range c.Sent.Tools {
		if !t.takePiece() {
			break
		}
		tools = append(tools, shownTool{tool, t.show(place("tool", i), tool.Definition, false)})
	}

	return parameters, tools
}

// shortBytes bounds a value that stands in a line.
const shortBytes = 80

// firstToken returns the milliseconds until the first token came, which SDKs log as metadata;
// nil if they did not.
func firstToken(r wire.Record) *float64 {
	ms, err := strconv.ParseFloat(r.Metadata["time_to_first_token_ms"], 64)
	if err != nil || !(ms >= 0 && ms < 1e12) {
		return nil
	}

	return &ms
}

// rawRecord answers with the whole record as JSON.
func (d *Dashboard) rawRecord(c *call) error {
	r, err := d.Records.Request(c.Context(), c.identity(), c.PathValue("id"))
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}

	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, err = c.w.Write(raw)

	return err
}

// setScore scores a request the way a program would: by an event.
func (d *Dashboard) setScore(c *call) error {
	// An event for a request that does not exist, or is another account's, would be
	// accepted and wait for that request.
	id := c.PathValue("id")
	if _, err := d.Records.Request(c.Context(), c.identity(), id); err != nil {
		return err
	}

	score, err := strconv.Atoi(c.PostForm.Get("score"))
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "score", Reason: "must be an integer from 0 to 100"})
	}

	// The event has the body that a program would send, so the same checks apply to it.
	body, err := json.Marshal(map[string]any{
		"request_id": id,
		"score":      score,
		"name":       strings.TrimSpace(c.PostForm.Get("name")),
	})
	if err != nil {
		return err
	}
	if err := d.recordScore(c, id, body); err != nil {
		return err
	}

	// Back to the same page of the request, in the list from which it was opened.
	q, _ := url.ParseQuery(c.PostForm.Get("view"))
	to := keepPlace(readFilter(q).values(), q)
	to.Set("done", "scored")

	return c.redirect(address("/requests/"+id, to), "")
}

// recordScore writes the event of a score, after the checks that a program's score passes.
func (d *Dashboard) recordScore(c *call, id string, body json.RawMessage) error {
	object, err := wire.ParseObject(body)
	if err != nil {
		return err
	}
	// As the API checks it: the archive keeps whatever it is given.
	if _, err := wire.DecodeScore(object); err != nil {
		return err
	}

	results, err := d.Recorder.Record(c.Context(), c.identity(), []wire.Event{{
		ID:         wire.NewID(),
		Kind:       wire.KindScore,
		RequestID:  id,
		AcceptedAt: d.Now().UTC(),
		Sidecar:    "dashboard",
		Body:       body,
	}})
	if err != nil {
		return err
	}
	if reason := results[0].Reason; reason != "" {
		return wire.Errorf(wire.CodeInvalid, "The score was rejected: %s.", reason)
	}

	return nil
}
