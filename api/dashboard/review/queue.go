// Package review has the dashboard's page on which people score calls one after another: a call, the
// scores to give beside it, and the next call.
package review

import (
	"embed"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// queue is the calls that a filter finds, in its order, with the scores to give to each of them.
type queue struct {
	Name      string // "" if it was opened from a list
	Filter    filter.Filter
	Scores    []score
	Reason    string // why the reviewer gives them
	reviewers int    // how many have to score a call; less than one is one
	values    url.Values

	// The last calls that the reviewer saved or skipped, and how many they saved in all.
	// The address has it.
	trail []string
	saved int
}

// trailMax bounds how many steps can be taken back, and how many skipped calls do not come again.
const trailMax = 50

// openQueue leads to a queue by its name.
func openQueue(c *frame.Exchange) error {
	return c.Redirect(address.Of("/review", url.Values{"queue": {c.PathValue("name")}}), "")
}

// queue reads the queue in an address or a form: that of a name, or a list with the names of scores.
func (p *pages) queue(c *frame.Exchange, q url.Values) (*queue, error) {
	v := &queue{Name: q.Get("queue"), Filter: c.Filter(q), trail: strings.Fields(q.Get("trail")), values: url.Values{}}
	for _, name := range []string{"queue", "filter", "sort", "order", "scores"} {
		if value := q.Get(name); value != "" {
			v.values.Set(name, value)
		}
	}
	v.saved, _ = strconv.Atoi(q.Get("saved"))

	names := strings.FieldsFunc(q.Get("scores"), func(r rune) bool { return r == ',' })
	if v.Name != "" {
		queues, err := p.queues.ReviewQueues(c.Context(), c.Identity())
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(queues, func(q wire.ReviewQueue) bool { return q.Name == v.Name })
		if i < 0 {
			return nil, wire.Errorf(wire.CodeNotFound, "There is no queue %.200q.", v.Name)
		}
		v.Filter = c.Filter(url.Values{"filter": {queues[i].Filter}})
		names, v.reviewers = queues[i].Scores, queues[i].Reviewers
	}

	defined, err := p.queues.ScoreDefinitions(c.Context(), c.Identity())
	v.Scores = scoresOf(names, defined)
	v.Reason = strings.TrimSpace(q.Get("reason"))
	for i := range v.Scores {
		v.Scores[i].Given = q.Get("score:" + v.Scores[i].Name)
	}

	return v, err
}

// at returns the queue as an address has it.
func (q *queue) at() url.Values {
	q.values.Set("trail", strings.Join(q.trail[max(len(q.trail)-trailMax, 0):], " "))
	q.values.Set("saved", strconv.Itoa(q.saved))

	return q.values
}

// asked returns the score of a name; nil if it is not one to give.
func (q *queue) asked(name string) *score {
	for i := range q.Scores {
		if q.Scores[i].Name == name {
			return &q.Scores[i]
		}
	}

	return nil
}

// takeFrom reads what a reviewer gave a call before, and reports whether they gave anything.
func (q *queue) takeFrom(r *wire.Record, reviewer string) (given bool) {
	for _, s := range r.Scores {
		if asked := q.asked(s.Name); asked != nil && s.Author == reviewer {
			asked.Given, q.Reason, given = s.ScoreValue.String(), s.Reason(), true
		}
	}

	return given
}

// done reports whether a call needs no more scores from a reviewer: because of theirs, or of enough others'.
func (q *queue) done(r *wire.Row, reviewer string) bool {
	given, whole := map[string]int{}, 0
	for _, s := range r.Scores {
		// Only scores by a person count.
		if strings.Contains(s.Author, "@") && q.asked(s.Name) != nil {
			given[s.Author]++
			if given[s.Author] == len(q.Scores) {
				whole++
			}
		}
	}

	return given[reviewer] == len(q.Scores) || whole >= max(q.reviewers, 1)
}

// Bounds of a search for the next call.
const (
	pageRows = 1000
	pagesMax = 20
)

// progress is how far a queue has come, with its next call.
type progress struct {
	call        string // "" if there is none
	Done, Total int
	More        bool // there may be more than Total
}

// Left returns how many calls are not done.
func (f progress) Left() int { return f.Total - f.Done }

// find returns the first call that the reviewer has to score and nobody else looks at. It is theirs for two
// minutes.
func (p *pages) find(c *frame.Exchange, q *queue) (f progress, err error) {
	s := wire.Search{PerPage: pageRows}
	for n := range pagesMax {
		s.Quick = n > 0
		page, err := q.Filter.List(c.Context(), p.records, c.Identity(), s)
		if err != nil {
			return f, err
		}
		if n == 0 {
			f.Total, f.More = page.Total, page.TotalIsLowerBound
		}

		var open []string
		for i := range page.Items {
			id := page.Items[i].RequestID
			if q.done(&page.Items[i], c.User.Email) {
				f.Done++
			} else if !slices.Contains(q.trail, id) {
				open = append(open, id)
			}
		}
		last := page.NextCursor == nil || n == pagesMax-1
		// At the end, the call that they had is free.
		if len(open) > 0 || last {
			f.call, err = p.queues.Claim(c.Context(), c.User.AccountID, c.User.Email, open)
		}
		if f.call != "" || last || err != nil {
			return f, err
		}
		s.Cursor = *page.NextCursor
	}

	return f, nil
}

// score is a score to give.
type score struct {
	wire.ScoreDefinition
	Choices []choice // nil if a value is typed
	Given   string   // the reviewer's value; "" if there is none yet
	First   bool     // on the screen

	whole bool // without a definition: an integer from 0 to 100
}

// choice is a value that is given by one key or one click.
type choice struct{ Value, Text, Key string }

// Hints reports whether a value does not say its key.
func (s score) Hints() bool {
	return slices.ContainsFunc(s.Choices, func(c choice) bool { return c.Key != c.Text })
}

// scoresOf returns the scores of some names. Without names they are those that are defined, or else one
// called default.
func scoresOf(names []string, defined wire.ScoreDefinitions) (all []score) {
	if len(names) == 0 {
		for _, d := range defined {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		names = []string{wire.DefaultScoreName}
	}

	for i, name := range names {
		s := score{First: i == 0, whole: true, ScoreDefinition: wire.ScoreDefinition{
			Name: name, Kind: "number", Min: new(0.0), Max: new(100.0),
		}}
		if d := defined.Of(name); d != nil {
			s.ScoreDefinition, s.whole = *d, false
		}
		s.Choices = choicesOf(s.ScoreDefinition)
		all = append(all, s)
	}

	return all
}

// choicesOf returns what a score is chosen from; nil if a value is typed.
func choicesOf(d wire.ScoreDefinition) []choice {
	switch {
	case d.Kind == "boolean":
		return []choice{{"true", "yes", "y"}, {"false", "no", "n"}}
	case d.Kind == "category":
		return categories(d.Categories)
	case d.Min != nil && d.Max != nil && *d.Min < *d.Max:
		return scale(*d.Min, *d.Max)
	}

	return nil
}

// taken are the keys that do something else on the page.
const taken = "xzre"

// categories gives each text its first letter that no other one has, or else a digit.
func categories(texts []string) (all []choice) {
	used := taken
	for _, text := range texts {
		c := choice{Value: text, Text: text}
		for _, r := range strings.ToLower(text) + "123456789" {
			if (unicode.IsLetter(r) || unicode.IsDigit(r)) && !strings.ContainsRune(used, r) {
				c.Key = string(r)
				used += c.Key
				break
			}
		}
		all = append(all, c)
	}

	return all
}

// scale returns each integer of a range of at most ten, or eleven values of another one.
func scale(low, high float64) (all []choice) {
	steps := 10
	if span := high - low; span <= 10 && low == math.Trunc(low) && span == math.Trunc(span) {
		steps = int(span)
	}
	for i := range steps + 1 {
		value := low + (high-low)*float64(i)/float64(steps)
		text := strconv.FormatFloat(math.Round(value*1e6)/1e6, 'f', -1, 64)
		key := i
		if steps < 10 {
			key++
		}
		if steps < 10 && low >= 0 && high <= 9 {
			key = int(value)
		}
		all = append(all, choice{text, text, "0123456789t"[key : key+1]})
	}

	return all
}

// screenView is what a screen shows.
type screenView struct {
	conversation.Shown
	*queue
	progress
	Record wire.Record   // without an id at the end of the queue
	Fields []frame.Field // that the form sends along
	Undo   bool          // there is a call before
	Back   string        // the address of the list, or of the queues
	Here   string        // that of this screen, which keeps the call the reviewer's
	Start  string        // the beginning of the queue
}

// next shows the next call of a queue, or the one that the address names.
func (p *pages) next(c *frame.Exchange) error {
	q, err := p.queue(c, c.URL.Query())
	if err != nil {
		return err
	}

	return p.screen(c, q, c.URL.Query().Get("call"), false)
}

// again shows a form again that came after the end of its session.
func (p *pages) again(c *frame.Exchange) error {
	q, err := p.queue(c, c.PostForm)
	if err != nil {
		return err
	}

	return p.screen(c, q, c.PostForm.Get("call"), true)
}

// screen shows a call; "" is the next one. If it was answered, the queue has what is in its form.
func (p *pages) screen(c *frame.Exchange, q *queue, call string, answered bool) error {
	v := screenView{queue: q, Undo: len(q.trail) > 0, Back: "/scores", Start: address.Of("/review", q.values)}
	nav := "scores"
	if q.Name == "" {
		nav, v.Back = "requests", q.Filter.Requests()
	}
	var err error
	v.progress, err = p.find(c, q)
	if err != nil {
		return err
	}
	left := v.Left()
	// A score may take its call from the list.
	v.Done = max(v.Done, q.saved)
	v.Total = left + v.Done

	at := q.at()
	if call != "" {
		_, err = p.queues.Claim(c.Context(), c.User.AccountID, c.User.Email, []string{call})
	} else {
		call = v.call
	}
	if call != "" && err == nil {
		v.Record, err = p.records.Request(c.Context(), c.Identity(), call)
	}
	if err != nil {
		return err
	}

	if call != "" {
		if !answered {
			q.takeFrom(&v.Record, c.User.Email)
		}
		t := conversation.NewTexts(nil)
		t.Prose, t.Fold = true, conversation.Earlier
		t.Mark(q.Filter.Sought())
		t.At = "/requests/" + call + "/text?" + url.Values{"filter": {q.Filter.Text}}.Encode()
		v.Shown = t.Call(conversation.Read(v.Record.Content()))
		at.Set("call", call)
		v.Here = address.Of("/review", at)
	}
	at.Set("session", c.FormSession())
	for name := range at {
		v.Fields = append(v.Fields, frame.Field{Name: name, Value: at.Get(name)})
	}

	return c.Show(http.StatusOK, "screen", frame.Title(q.Name, "Review"), nav, v)
}

// judge does what the form of a screen asks for, and shows the next screen.
func (p *pages) judge(c *frame.Exchange) error {
	q, err := p.queue(c, c.PostForm)
	if err != nil {
		return err
	}

	call := c.PostForm.Get("call")
	switch c.PostForm.Get("do") {
	case "undo":
		return p.undo(c, q)
	case "skip":
	default:
		// An event for a request that does not exist, or is another project's, would be accepted
		// and wait for that request.
		r, err := p.records.Request(c.Context(), c.Identity(), call)
		if err != nil {
			return err
		}
		if err := p.save(c, q, &r, false); err != nil {
			return err
		}
		q.saved++
	}
	q.trail = append(q.trail, call)

	return c.Redirect(address.Of("/review", q.at()), "")
}

// undo takes back the scores of the call before, and shows that call with them.
func (p *pages) undo(c *frame.Exchange, q *queue) error {
	last := len(q.trail) - 1
	if last < 0 {
		return wire.Errorf(wire.CodeInvalid, "There is no call before this one.")
	}
	call := q.trail[last]
	q.trail = q.trail[:last]
	r, err := p.records.Request(c.Context(), c.Identity(), call)
	if err != nil {
		return err
	}

	if q.takeFrom(&r, c.User.Email) {
		q.saved--
		if err := p.save(c, q, &r, true); err != nil {
			return err
		}
	}

	return p.screen(c, q, call, true)
}

// save gives a call that exists the scores of the queue in the reviewer's name, or takes them back.
func (p *pages) save(c *frame.Exchange, q *queue, r *wire.Record, back bool) error {
	var bodies []map[string]any
	for _, s := range q.Scores {
		body := map[string]any{
			"request_id": r.RequestID, "name": s.Name, "author": c.User.Email, "source": "human", "value": nil,
		}
		member := "value"
		if s.whole {
			member = "score"
		}
		if !back {
			if s.Given == "" {
				return wire.Invalid(wire.FieldError{Field: s.Name, Reason: "must be " + s.Expected()})
			}
			body["reason"], body[member] = q.Reason, frame.Typed(s.Given, &s.ScoreDefinition)
		}
		bodies = append(bodies, body)
	}

	return c.RecordScores(p.recorder, r.Scores, bodies...)
}

// pages are the pages of reviews.
type pages struct {
	records  wire.Archive
	recorder wire.Recorder
	queues   wire.Reviews
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of reviews.
func Pages(records wire.Archive, recorder wire.Recorder, queues wire.Reviews) frame.Section {
	p := &pages{records, recorder, queues}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /review", Page: p.next},
			{Pattern: "POST /review", Page: p.judge, Review: p.again},
			{Pattern: "GET /review/{name}", Page: openQueue},
		},
	}
}
