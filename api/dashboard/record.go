package dashboard

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

func (d *Dashboard) recordRoutes() {
	d.handle("GET /requests/{id}", wire.RoleViewer, d.recordPage)
	d.handle("GET /requests/{id}/raw", wire.RoleViewer, d.rawRecord)
	d.resumable("POST /requests/{id}/score", wire.RoleEditor, d.setScore,
		d.reviewShort("Set this score?", "Set", "name", "score"))
}

// recordView is what the page of a request shows.
type recordView struct {
	shownRequest
	Record       wire.Record
	Metadata     []wire.MetadataRow
	Others       []otherRequest // that came under the same id
	MoreOthers   int            // of those, that the page has no room for
	Curl         string         // logs the same again; "" if it is too long to paste
	Back         string         // the list in whose filter this stands
	Newer, Older string         // the addresses of the neighbours in that list
	Query        string         // that filter, for forms
}

// othersMax is how many other requests under a record's id its page shows.
const othersMax = 20

// otherRequest is another request under a record's id, as its page shows it.
type otherRequest struct {
	shownRequest
	wire.RecordEvent
	TooLarge bool // it is kept, and no page has it
}

// others reads the other requests that came under a record's id. They share the room for texts of one page.
func (d *Dashboard) others(r wire.Record) (shown []otherRequest, more int) {
	t := newTexts(nil)
	for i, c := range r.Conflicts {
		if i == othersMax {
			return shown, len(r.Conflicts) - i
		}

		var o otherRequest
		if at := slices.IndexFunc(r.Events, func(e wire.RecordEvent) bool { return e.ID == c.EventID }); at >= 0 {
			o.RecordEvent = r.Events[at]
		}
		if o.TooLarge = len(c.Request) == 0 || string(c.Request) == "null"; !o.TooLarge {
			o.shownRequest = t.call(d.Read(c.Request))
		}
		shown = append(shown, o)
	}

	return shown, 0
}

// shownRequest is a model call, as a page shows it.
type shownRequest struct {
	Input   []shownMessage
	Output  []shownMessage
	Hidden  int           // messages and parts of them that the page has no room for
	Failure *shownFailure // nil if nothing went wrong
	Raw     *shownRaw     // the response, where nothing else shows all of it; else nil
}

// call cuts what a page shows of a call.
func (t *texts) call(c Conversation) shownRequest {
	before := t.hidden
	var v shownRequest
	v.Output = t.messages(c.Output) // first: what came out is shown whole sooner
	v.Input = t.messages(c.Input)
	v.Hidden = t.hidden - before
	if c.Failure != nil {
		v.Failure = &shownFailure{c.Failure.Type, t.show(c.Failure.Message)}
	}
	if c.Raw != "" {
		v.Raw = &shownRaw{t.show(c.Raw), int64(len(c.Raw))}
	}

	return v
}

// shownFailure is what went wrong, as a page shows it.
type shownFailure struct {
	Type    string
	Message shownText
}

// shownRaw is a response as it came.
type shownRaw struct {
	shownText
	Size int64 // in bytes
}

// Folded reports whether the response is so long that it is opened only on demand.
func (r shownRaw) Folded() bool { return r.Size > scrolledBytesMin }

func (d *Dashboard) recordPage(c *call) error {
	r, err := d.Records.Request(c.Context(), c.identity(), c.PathValue("id"))
	if err != nil {
		return err
	}
	f := readFilter(c.URL.Query())
	v := recordView{Record: r, Back: address("/requests", f.values()), Query: f.values().Encode()}
	var variables json.RawMessage
	if r.Prompt != nil {
		variables = r.Prompt.InputVariables
	}
	v.shownRequest = newTexts(variables).call(d.Read(r.Request))
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		v.Metadata = append(v.Metadata, wire.MetadataRow{Key: key, Value: r.Metadata[key]})
	}
	v.Others, v.MoreOthers = d.others(r)
	v.Curl = curlOf(c.Request, r.Request)
	if v.Newer, err = d.newer(c, f, r); err != nil {
		return err
	}
	if v.Older, err = d.neighbour(c, f, wire.Search{}, bound{"before", r.AcceptedAt}); err != nil {
		return err
	}
	return d.show(c, http.StatusOK, "record", "Request", "requests", v)
}

// bound bounds when a record was accepted.
type bound struct {
	operator string
	at       time.Time
}

// neighbour is the address of the first record that a search finds among those of a filter within bounds; "" if there is none. A
// filter that cannot be has no neighbours: the list says why.
func (d *Dashboard) neighbour(c *call, f filter, s wire.Search, within ...bound) (string, error) {
	s.FilterGroup, s.Q, s.PerPage = &wire.Filter{Logic: "AND"}, f.Q, 1
	for _, b := range within {
		at, _ := json.Marshal(b.at)
		s.FilterGroup.Filters = append(s.FilterGroup.Filters, wire.Filter{Field: "accepted_at", Operator: b.operator, Value: at})
	}
	if of := f.group(d.Now()); of != nil {
		s.FilterGroup.Filters = append(s.FilterGroup.Filters, *of)
	}
	page, err := d.Records.Search(c.Context(), c.identity(), s)
	switch {
	case wire.IsCode(err, wire.CodeInvalid):
		return "", nil
	case err != nil || len(page.Items) == 0:
		return "", err
	}
	return f.Record(page.Items[0].RequestID), nil
}

// newerStretchMax bounds a stretch of time that newer looks into. What is left after it is the last one.
const newerStretchMax = 365 * 24 * time.Hour

// newer is the address of the neighbour that came after r. A search for it reads all that is newer, for lists begin with the newest;
// so it looks into longer and longer stretches of time behind r.
func (d *Dashboard) newer(c *call, f filter, r wire.Record) (string, error) {
	now := d.Now()
	from, stretch := r.AcceptedAt, time.Minute
	for from.Before(now) {
		if err := c.Context().Err(); err != nil {
			return "", err
		}

		// The caller chose the record's time, which may be of any year: a time.Duration does not reach that far.
		to := now
		if stretch <= newerStretchMax {
			to = r.AcceptedAt.Add(stretch)
			stretch *= 16
		}
		found, err := d.neighbour(c, f, wire.Search{SortBy: "accepted_at", SortOrder: "asc"}, bound{"after", from}, bound{"lte", to})
		if found != "" || err != nil {
			return found, err
		}
		from = to
	}
	return "", nil
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

// setScore scores a request as a program would: by an event.
func (d *Dashboard) setScore(c *call) error {
	id := c.PathValue("id")
	if _, err := d.Records.Request(c.Context(), c.identity(), id); err != nil {
		return err // also of an account that is not theirs
	}
	score, err := strconv.Atoi(c.PostForm.Get("score"))
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "score", Reason: "must be an integer from 0 to 100"})
	}
	body, err := json.Marshal(map[string]any{"request_id": id, "score": score, "name": strings.TrimSpace(c.PostForm.Get("name"))})
	if err != nil {
		return err
	}
	if err := d.record(c, wire.KindScore, id, body); err != nil {
		return err
	}
	q, _ := url.ParseQuery(c.PostForm.Get("view"))
	to := readFilter(q).values()
	to.Set("done", "scored")
	http.Redirect(c.w, c.Request, address("/requests/"+id, to), http.StatusSeeOther)
	return nil
}

// record hands an event in, after the checks that a program's write meets.
func (d *Dashboard) record(c *call, kind wire.Kind, id string, body json.RawMessage) error {
	object, err := wire.ParseObject(body)
	if err == nil && kind == wire.KindScore {
		_, err = wire.DecodeScore(object)
	}
	if err != nil {
		return err
	}
	results, err := d.Recorder.Record(c.Context(), c.identity(), []wire.Event{{
		ID: wire.NewID(), Kind: kind, RequestID: id, AcceptedAt: d.Now().UTC(), Sidecar: "dashboard", Body: body,
	}})
	if err == nil && results[0].Reason != "" {
		err = wire.Errorf(wire.CodeInvalid, "It was not taken: %s.", results[0].Reason)
	}
	return err
}

// curlBytesMax bounds what is offered for pasting.
const curlBytesMax = 16 << 10

// curlOf is a line that logs a request again. The key is left to a variable of the shell.
func curlOf(r *http.Request, body json.RawMessage) string {
	if len(body) > curlBytesMax {
		return ""
	}
	return "curl " + base(r) + `/rest/track-request -H "X-API-KEY: $PROMPTSPOOL_KEY" -H 'Content-Type: application/json' -d ` + quote(string(body))
}

// quote makes a text one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
