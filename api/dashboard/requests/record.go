package requests

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/markup"
	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// recordView is what the page of a request shows.
type recordView struct {
	conversation.Shown
	outcome
	Record     wire.Record
	Metadata   []wire.MetadataRow
	Dropped    []wire.Dropped // of the tags and metadata, because it exceeds a limit
	Parameters []conversation.Parameter
	Tools      []conversation.Tool
	MoreSent   int                // parameters and tools that the page has no section for
	Variables  *conversation.Text // of the template; nil if there are none
	Alike      *failuresAlike     // nil unless the call failed
	Erase      string             // the address of the question before it is deleted
	Scoring    frame.Scoring
	Trail      filter.Trail

	AsSent bool   // texts are not laid out
	Toggle string // the address of the page with the texts the other way

	Talk string // the address of the calls of the same conversation; "" if it is unknown

	Answer string // the address of the response, to be copied; "" if there is none
	Copy   string // the beginning of the addresses of programs that make the call again
	Again  replay // where its provider was called, if that is known; without the body
}

// Unfolded returns how many tags and how many values of metadata are shown without being opened.
func (recordView) Unfolded() int { return 20 }

func (p *pages) recordPage(c *frame.Exchange) error {
	r, err := p.records.Request(c.Context(), c.Identity(), c.PathValue("id"))
	if err != nil {
		return err
	}

	f := c.Filter(c.URL.Query())
	read := conversation.Read(r.Content())
	t := recordTexts(c, f, r)
	query := keepPlace(f.Values(), c.URL.Query())
	at := filter.ReadPlace(r.RequestID, query)
	v := recordView{
		outcome: outcome(r.Status),
		Record:  r,
		Trail:   f.Walk("Requests", "/requests", at, address.Some(c.URL.Query(), "view")),
		Scoring: c.Scoring("POST /requests/{id}/score", "/requests/"+r.RequestID+"/score", r.Scores,
			frame.Field{Name: "view", Value: query.Encode()}),
		AsSent: t.AsSent,
		Toggle: toggled(c.URL),
		Talk:   talkAddress(&r),
		Copy:   t.Address(""),
	}
	v.Again, _ = atProvider(r)
	if len(read.Output) > 0 {
		v.Answer = t.Address("answer")
	}
	query.Set("id", r.RequestID)
	v.Erase = address.Of("/requests/delete", query)

	t.Fold = conversation.Middle
	v.Shown = t.Call(read)
	v.Parameters, v.Tools = t.Sent(read)
	v.MoreSent = len(read.Sent.Parameters) + len(read.Sent.Tools) - len(v.Parameters) - len(v.Tools)
	if r.Prompt != nil && len(r.Prompt.InputVariables) > 0 {
		v.Variables = new(t.Show("variables", string(r.Prompt.InputVariables), false))
	}
	// No list shows spans.
	if v.Failure != nil && !r.IsSpan() {
		v.Alike = p.failedAlike(c, r)
	}

	// Sorted, so that the same request always looks the same.
	facts := map[string]bool{
		"session_id":       r.SessionID != "",
		"user_id":          r.UserID != "",
		"environment":      r.Environment != "",
		wire.FirstTokenKey: r.FirstTokenMS != nil,
	}
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		if facts[key] {
			// The page has a line for it.
			continue
		}
		v.Metadata = append(v.Metadata, wire.MetadataRow{Key: key, Value: r.Metadata[key]})
	}

	if object, err := wire.ParseObject(r.Content()); err == nil && !r.IsSpan() {
		call, _ := wire.DecodeRequest(object, false, r.AcceptedAt)
		v.Dropped = call.Dropped
	}

	return c.Show(http.StatusOK, "record", frame.Title(append([]string{v.Ended()}, v.Subjects()...)...), "requests", v)
}

// Heading returns what the page is about: a model, or the name of a span.
func (v recordView) Heading() string {
	if v.Record.IsSpan() {
		return cmp.Or(v.Record.SpanName, "Span")
	}

	return cmp.Or(v.Record.Model, "Request")
}

// Subjects returns what the page is about: a template's version, and what Heading names.
func (v recordView) Subjects() (parts []string) {
	if p := v.Record.Prompt; p != nil && p.Name != "" {
		template := p.Name
		if p.Version != nil {
			template += " v" + strconv.Itoa(*p.Version)
		}
		parts = append(parts, template)
	}

	return append(parts, v.Heading())
}

// talkKeys are other metadata keys whose value names a conversation.
var talkKeys = []string{"conversation_id", "thread_id", "chat_id"}

// talkAddress returns the address of a record's session, otherwise of the calls of its conversation in
// the order of their time, or "".
func talkAddress(r *wire.Record) string {
	if r.SessionID != "" {
		return address.Session(r.SessionID)
	}
	for _, key := range talkKeys {
		if id := r.Metadata[key]; id != "" {
			byTime := filter.Order{By: filter.ByTime, Ascending: true}
			return filter.Filter{Order: byTime}.With(filterline.Where("metadata", key, id)).Requests()
		}
	}

	return ""
}

// rawRecord answers with the whole record as JSON.
func (p *pages) rawRecord(c *frame.Exchange) error {
	r, err := p.records.Request(c.Context(), c.Identity(), c.PathValue("id"))
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}

	return c.Send("application/json; charset=utf-8", string(raw))
}

// setScore scores a request.
func (p *pages) setScore(c *frame.Exchange) error {
	// Back to the same page of the request, in the list from which it was opened.
	id := c.PathValue("id")
	q, _ := url.ParseQuery(c.PostForm.Get("view"))
	to := address.Of("/requests/"+id, keepPlace(c.Filter(q).Values(), q))

	return c.SetScore(p.recorder, p.scored, "request_id", id, to)
}

// scored reads the scores of a request, a span or a trace.
func (p *pages) scored(c *frame.Exchange, of, id string) ([]wire.Score, error) {
	if of == "trace_id" {
		trace, err := p.records.Trace(c.Context(), c.Identity(), id)
		return trace.OwnScores, err
	}
	r, err := p.records.Request(c.Context(), c.Identity(), id)

	return r.Scores, err
}

// failuresAlike are the other calls that failed as one did.
type failuresAlike struct {
	Count string // such as "12 other calls"; "" if there are none
	Day   string // "today" or "that day"
	Href  string // the list of all of them
}

// failedAlike counts the other calls of a failed call's day, which is the reader's, that failed with the
// same type of error, if this one has any. It returns nil for a call that did not fail, and if they cannot
// be counted now: the page is worth more than its count.
func (p *pages) failedAlike(c *frame.Exchange, r wire.Record) *failuresAlike {
	if r.Status != "ERROR" {
		return nil
	}
	all := c.Filter(nil).With(filterline.Where("status", "", r.Status))
	if r.ErrorType != "" {
		all = all.With(filterline.Where("error", "", r.ErrorType))
	}
	v := &failuresAlike{Day: "that day"}
	day := r.ListTime.In(all.Zone()).Format(time.DateOnly)
	if day == c.Now().In(all.Zone()).Format(time.DateOnly) {
		v.Day, all = "today", all.During("since:today")
	} else {
		all = all.During("time:" + day)
	}

	others := all.With(filterline.Where("id", "", r.RequestID).Negated())
	page, err := others.List(c.Context(), p.records, c.Identity(), wire.Search{PerPage: 1})
	if err != nil {
		return nil
	}

	v.Href = all.Requests()
	if page.Total > 0 {
		v.Count = number.Quantity(int64(page.Total), "other call")
	}
	if page.TotalIsLowerBound {
		v.Count = "at least " + v.Count
	}

	return v
}

// argumentBytesMax bounds what a command can be given as an argument; Linux takes 128 KiB.
const argumentBytesMax = 100 << 10

// replay is a call over HTTP that a reader copies as a program, which needs no library.
type replay struct {
	URL, Header, Scheme string // Header takes the key, after the scheme
	Variable            string // of the environment, which has the key
	Version             string // of Anthropic's API
	Body                string // the arguments, in JSON
}

// logReplay logs a request again at base.
func logReplay(base string, body json.RawMessage) replay {
	path := "/rest/track-request"
	if object, err := wire.ParseObject(body); err == nil && wire.IsLog(object) {
		path = "/log-request"
	}

	return replay{URL: base + path, Header: "X-API-KEY", Variable: "PROMPTSPOOL_KEY", Body: string(body)}
}

// endpoint is an address at which a provider takes the arguments of its client as they are.
type endpoint struct {
	provider string
	function string // part of the function's name; "" for any
	argument string // which such a call has
	replay
}

var endpoints = []endpoint{
	{"openai", "", "messages", bearer("https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY")},
	{"openai", "responses", "input", bearer("https://api.openai.com/v1/responses", "OPENAI_API_KEY")},
	{"openai", "embeddings", "input", bearer("https://api.openai.com/v1/embeddings", "OPENAI_API_KEY")},
	{"mistral", "", "messages", bearer("https://api.mistral.ai/v1/chat/completions", "MISTRAL_API_KEY")},
	{"anthropic", "", "messages", replay{URL: "https://api.anthropic.com/v1/messages",
		Header: "x-api-key", Variable: "ANTHROPIC_API_KEY", Version: "2023-06-01"}},
}

// bearer returns the call of an address that takes its key as a bearer token.
func bearer(url, variable string) replay {
	return replay{URL: url, Header: "Authorization", Scheme: "Bearer ", Variable: variable}
}

// ofClients are the arguments that a provider's client keeps to itself.
var ofClients = []string{"timeout", "extra_headers", "extra_query", "api_key"}

// atProvider returns where the app called the provider, and with which arguments. Without a URL, it is
// not known.
func atProvider(r wire.Record) (to replay, kwargs wire.Object) {
	request, _ := wire.ParseObject(r.Content())
	raw, _ := request.Get("kwargs")
	kwargs, err := wire.ParseObject(raw)
	at := slices.IndexFunc(endpoints, func(e endpoint) bool {
		isCalled := e.provider == r.Provider && strings.Contains(r.FunctionName, e.function)
		return isCalled && kwargs.Has("model") && kwargs.Has(e.argument)
	})
	if err != nil || at < 0 {
		return replay{}, nil
	}

	return endpoints[at].replay, kwargs
}

// providerReplay calls the provider as the app did.
func providerReplay(r wire.Record) replay {
	again, kwargs := atProvider(r)
	var members []string
	for _, m := range kwargs {
		if !slices.Contains(ofClients, m.Name) {
			members = append(members, quoted(m.Name)+":"+string(m.Value))
		}
	}
	again.Body = "{" + strings.Join(members, ",") + "}"

	return again
}

//go:embed replay.tmpl
var replayText string

// programs are the programs, by the language in lower case. JavaScript has all JSON as a part of itself.
var programs = template.Must(template.New("").Funcs(template.FuncMap{
	"argument": shellArgument, "laid": laidOut, "python": pythonText, "quoted": quoted, "shell": shellQuote,
}).Parse(replayText))

// program returns the call in a language, if it is known how.
func (r replay) program(language string) (text string, ok bool) {
	var b strings.Builder
	ok = r.URL != "" && programs.ExecuteTemplate(&b, language, r) == nil

	return b.String(), ok
}

// shellArgument gives a command its data.
func shellArgument(body string) string {
	if quoted := shellQuote(body); len(quoted) <= argumentBytesMax {
		return "-d " + quoted
	}

	// No line of JSON is a word of this kind.
	return "--data-binary @- <<'END_OF_CALL'\n" + body + "\nEND_OF_CALL"
}

// shellQuote turns a text into one word of a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoted returns a text in quotes, as JSON, Python and JavaScript write it.
func quoted(text string) string {
	raw, _ := json.Marshal(text)

	return string(raw)
}

// pythonText returns JSON as a raw string of Python with three quotes, in which nothing is escaped. JSON
// may have a quote in a string only, and there as its code.
func pythonText(body string) string {
	return "r'''" + strings.ReplaceAll(laidOut(body), "'", `\u0027`) + "'''"
}

// laidOut returns JSON with each value on its line.
func laidOut(body string) string {
	if laid, ok := markup.LayOut(body); ok {
		return laid
	}

	return body
}
