// Package scores has the dashboard's pages of what scores mean: their definitions, and the queues in
// which people give them.
package scores

import (
	"cmp"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// scoresView is what the pages of scores show.
type scoresView struct {
	Rows    []row
	Of      *row // the score that the page is about; nil for all
	Authors wire.ScoreAgreement
	Queues  []wire.ReviewQueue
	Counted frame.Counted
	Bars    []bar
	Worst   worst

	Typed wire.ScoreDefinition // what the form of a definition shows
	Error *wire.Error          // of that form
	Queue wire.ReviewQueue     // what the form of a queue shows
	Line  filter.Form          // its filter, with the form's error
}

// row is what is known of the scores of one name.
type row struct {
	wire.ScoreSum
	Defined    *wire.ScoreDefinition
	Expects    wire.ScoreDefinition // the one that is defined, or else the kind alone
	Shares     []frame.Share        // of categories or booleans
	Found      string               // the address of the recent requests that have the score
	FoundUnfit string               // that of those with a value that does not fit
}

// Kappa prints how far two authors agree.
func (row) Kappa(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// Number prints a value of the score.
func (row) Number(x float64) string { return number.Count(x) }

// Asks reports whether the form of a queue asks for a score.
func (v scoresView) Asks(name string) bool { return slices.Contains(v.Queue.Scores, name) }

func scorePath(name string) string { return "/scores/" + url.PathEscape(name) }

func (p *pages) list(c *frame.Exchange) error {
	return p.show(c, http.StatusOK, scoresView{})
}

// show shows the page of all scores.
func (p *pages) show(c *frame.Exchange, status int, v scoresView) (err error) {
	if _, err := p.read(c, "/scores", &v); err != nil {
		return err
	}
	v.Queues, err = p.scoring.ReviewQueues(c.Context(), c.Identity())
	if err != nil {
		return err
	}
	if v.Line.Error == nil {
		v.Queue.Filter = c.URL.Query().Get("filter")
	}
	edited := c.URL.Query().Get("queue")
	if i := slices.IndexFunc(v.Queues, func(q wire.ReviewQueue) bool { return q.Name == edited }); i >= 0 {
		v.Queue = v.Queues[i]
	}

	return c.Show(status, "scores", "Scores", "scores", v)
}

func (p *pages) scorePage(c *frame.Exchange) error {
	v, name := scoresView{}, c.PathValue("id")
	found, err := p.read(c, scorePath(name), &v)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Rows, func(r row) bool { return r.Name == name })
	if i < 0 {
		return wire.Errorf(wire.CodeNotFound, "This project has no score of this name in the last 30 days.")
	}

	v.Of = &v.Rows[i]
	v.Typed = v.Of.Expects
	recent, err := found.Group()
	if err != nil {
		return err
	}
	v.Authors, err = p.records.Agreement(c.Context(), c.Identity(), v.Of.ScoreSum, recent)
	if err != nil {
		return err
	}
	v.Bars = bars(found, v.Of.ScoreSum)
	v.Worst, err = p.readWorst(c, found, v.Of)
	if err != nil {
		return err
	}

	return c.Show(http.StatusOK, "scores", frame.Title(name, "Scores"), "scores", v)
}

// read reads the scores that have a definition or recent values, and returns what finds recent calls.
func (p *pages) read(c *frame.Exchange, path string, v *scoresView) (found filter.Filter, err error) {
	defined, err := p.scoring.ScoreDefinitions(c.Context(), c.Identity())
	if err != nil {
		return found, err
	}
	found = c.Filter(url.Values{"filter": {"since:30d"}})
	recent, err := found.Group()
	if err != nil {
		return found, err
	}
	a, err := p.records.Analyze(c.Context(), c.Identity(), c.Bounded(wire.StatisticsQuery{
		FilterGroup: recent,
		FilterLine:  wire.FilterLine{Zone: "UTC"},
	}))
	if err != nil {
		return found, err
	}

	v.Counted = c.Counted(path, a.Progress)
	sums := slices.Clone(a.Scores)
	for _, d := range defined {
		if !slices.ContainsFunc(sums, func(s wire.ScoreSum) bool { return s.Name == d.Name }) {
			sums = append(sums, wire.ScoreSum{Name: d.Name, Kind: d.Kind})
		}
	}
	slices.SortFunc(sums, func(a, b wire.ScoreSum) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range sums {
		r := row{ScoreSum: s, Defined: defined.Of(s.Name), Expects: defined.OfSum(s), Shares: frame.Shares(s)}
		r.Found = found.With(filterline.Where("score_name", "", s.Name)).Requests()
		r.FoundUnfit = found.With(unfit(r.Expects)...).Requests()
		v.Rows = append(v.Rows, r)
	}

	return found, nil
}

func (p *pages) define(c *frame.Exchange) error {
	d, err := readDefinition(c.PostForm)
	if err == nil {
		err = p.scoring.DefineScore(c.Context(), c.Identity(), d)
	}
	if err != nil {
		return p.refuse(c, scoresView{Typed: d, Error: wire.AsError(err)}, err)
	}

	return c.Done("define score", d.Name, d.Expected(), scorePath(d.Name), "defined")
}

// refuse shows a form again with what is wrong with it.
func (p *pages) refuse(c *frame.Exchange, v scoresView, err error) error {
	e := frame.Correctable(err)
	if e == nil {
		return err
	}
	return p.show(c, e.Status(), v)
}

// readDefinition reads the form of a definition. Fields that its kind does not have are ignored.
func readDefinition(form url.Values) (wire.ScoreDefinition, error) {
	if form.Get("kind") == "category" {
		form.Del("better")
		form["categories"] = slices.Collect(strings.Lines(form.Get("categories")))
	} else {
		form.Del("categories")
	}
	if form.Get("kind") != "number" {
		form.Del("min")
		form.Del("max")
	}
	return wire.DecodeForm[wire.ScoreDefinition](form)
}

// unfit returns what finds the calls with a score that does not fit. Of booleans and of listed categories,
// it finds those without any that does.
func unfit(d wire.ScoreDefinition) []filterline.Term {
	t := filterline.Where("score", d.Name, "")
	t.Values = nil
	or := func(o filterline.Operator, text string) {
		t.Values = append(t.Values, filterline.Value{Operator: o, Text: text, Quoted: o == filterline.Is})
	}
	fitting := d.Categories
	if d.Kind == "boolean" {
		fitting = []string{"true", "false"}
	}

	switch {
	case d.Kind == "number":
		if d.Min != nil {
			or(filterline.Below, wire.NumberScore(*d.Min).String())
		}
		if d.Max != nil {
			or(filterline.Above, wire.NumberScore(*d.Max).String())
		}
		or(filterline.Contains, "") // any text, true and false
	case len(fitting) == 0: // any text fits, and no number
		or(filterline.AtMost, strconv.Itoa(wire.ScoreNumberMax))
	default:
		for _, text := range fitting {
			or(filterline.Is, text)
		}
		return []filterline.Term{filterline.Where("score_name", "", d.Name), t.Negated()}
	}

	return []filterline.Term{t}
}

func (p *pages) undefine(c *frame.Exchange) error {
	return c.Remove(p.scoring.UndefineScore, "remove score definition", "/scores", "undefined")
}

func (p *pages) removeQueue(c *frame.Exchange) error {
	return c.Remove(p.scoring.RemoveReviewQueue, "remove review queue", "/scores", "unqueued")
}

func (p *pages) putQueue(c *frame.Exchange) error {
	q, err := wire.DecodeForm[wire.ReviewQueue](c.PostForm)
	line := filter.NewForm("/scores", c.Filter(url.Values{"filter": {q.Filter}}))
	if err == nil {
		_, err = line.Filter.Search()
	}
	if err == nil {
		err = p.scoring.PutReviewQueue(c.Context(), c.Identity(), q)
	}
	if err != nil {
		line.Reject(wire.AsError(err))
		return p.refuse(c, scoresView{Queue: q, Line: line}, line.Error)
	}

	return c.Done("save review queue", q.Name, wire.AuditFilter(q.Filter), "/scores", "queued")
}

// pages are the pages of scores.
type pages struct {
	records wire.Archive
	scoring wire.Reviews
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of scores.
func Pages(records wire.Archive, scoring wire.Reviews) frame.Section {
	p := &pages{records, scoring}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /scores", Page: p.list},
			{Pattern: "GET /scores/{id}", Page: p.scorePage},
			{Pattern: "POST /scores", Page: p.define},
			{Pattern: "POST /scores/{id}/remove", Page: p.undefine},
			{Pattern: "POST /queues", Page: p.putQueue},
			{Pattern: "POST /queues/{id}/remove", Page: p.removeQueue},
		},
		Notices: map[string]string{
			"defined":   "The score is defined. From now on, a value that does not fit is refused or counted apart.",
			"undefined": "The definition is removed. Its scores stay.",
			"queued":    "The queue is saved.",
			"unqueued":  "The queue is removed. The scores that were given in it stay.",
		},
	}
}
