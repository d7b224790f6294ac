package templates

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/calls"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/experiment"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

const (
	experimentsMax = 50
	rowsPerPage    = 10
)

// comparedRows is what two versions of a template did in an experiment.
type comparedRows struct {
	Experiment string
	Names      []string // of the template's experiments, newest first
	Versions   []int
	A, B       int // A is 0 if there is one version only
	Calls      *comparison
	pairs      []experiment.Pair // the worst regressions first
}

// experimentView is what two versions answered to the rows of an experiment.
type experimentView struct {
	templateHead
	*comparedRows
	Rows    []experimentRow
	Newer   string // the addresses of pages
	Older   string
	Command string // begins another one
}

type experimentRow struct {
	Row        string
	Regression float64
	A, B       wire.Record    // without an id if there is none
	Diff       []textdiff.Row // of the answers; nil if they are equal
	Text       string         // the answer, if it is alone or both are equal
}

func (p *pages) experimentPage(c *frame.Exchange, head templateHead) (err error) {
	v := experimentView{templateHead: head, Command: experimentCommand(head, head.Latest(), "since:7d")}
	v.comparedRows, err = p.compareRows(c, head.Name)
	if err == nil {
		err = p.showRows(c, &v)
	}
	if err != nil {
		return err
	}

	return c.Show(http.StatusOK, "experiment", frame.Title(v.Experiment, head.Name, "Experiments"), "templates", v)
}

// compareRows compares two versions by all rows of the experiment that the call names, or else of the
// template's newest one.
func (p *pages) compareRows(c *frame.Exchange, template string) (*comparedRows, error) {
	r := &comparedRows{Experiment: c.FormValue("experiment")}
	ofAny := filterline.Where("metadata", experiment.NameKey, "").With(filterline.Exists)
	selected, err := requestsOf(c, template, 0).With(ofAny).Group()
	if err != nil {
		return nil, err
	}
	found, err := p.records.Suggest(c.Context(), c.Identity(), wire.SuggestQuery{
		Field: "metadata", Key: experiment.NameKey, Limit: experimentsMax, FilterGroup: selected,
	})
	if err != nil {
		return nil, err
	}
	r.Names = found.Values
	if r.Experiment == "" && len(r.Names) > 0 {
		r.Experiment = r.Names[0]
	}
	if r.Experiment == "" {
		return r, nil
	}

	search := func(ctx context.Context, s wire.Search) (wire.SearchPage, error) {
		s.Quick = true
		return p.records.Search(ctx, c.Identity(), s)
	}
	all, err := experiment.Load(c.Context(), search, r.Experiment, template)
	if err == nil && len(all) > 0 {
		err = r.compare(c, all)
	}

	return r, err
}

// compare compares the versions that the call names, or else the first with the last.
func (r *comparedRows) compare(c *frame.Exchange, all map[int]experiment.Calls) (err error) {
	r.Versions = slices.Sorted(maps.Keys(all))
	if len(r.Versions) > 1 {
		r.A = r.Versions[0]
	}
	r.A, err = versionParam(c, "a", r.A)
	if err == nil {
		r.B, err = versionParam(c, "b", r.Versions[len(r.Versions)-1])
	}
	if err != nil {
		return err
	}
	defined, err := c.ScoreDefinitions()
	if err != nil || len(all[r.B]) == 0 {
		return err
	}

	found := experiment.Compare(all[r.A], all[r.B], defined)
	r.Calls = new(comparison)
	r.Calls.A = wire.ComparedCalls{Version: r.A, Requests: int64(len(all[r.A]))}
	r.Calls.B = wire.ComparedCalls{Version: r.B, Requests: int64(len(all[r.B]))}
	for _, m := range found.Metrics {
		if m.CountB > 0 {
			r.Calls.Rows = append(r.Calls.Rows, newComparedRow(m))
		}
	}
	r.pairs = found.Pairs

	return nil
}

// showRows fills in one page of rows with their answers.
func (p *pages) showRows(c *frame.Exchange, v *experimentView) error {
	from, _ := strconv.Atoi(c.FormValue("from"))
	from = min(max(from, 0), len(v.pairs))
	to := min(from+rowsPerPage, len(v.pairs))
	for _, pair := range v.pairs[from:to] {
		row := experimentRow{Row: pair.Row, Regression: pair.Regression}
		var before string
		var err error
		row.A, before, err = p.answerOf(c, wire.OrZero(pair.A).RequestID)
		if err == nil {
			row.B, row.Text, err = p.answerOf(c, wire.OrZero(pair.B).RequestID)
		}
		if err != nil {
			return err
		}
		if row.A.RequestID != "" {
			row.Diff = textdiff.Lines(before, row.Text)
		}
		v.Rows = append(v.Rows, row)
	}

	page := func(from int) string {
		return address.Template("/template/experiment", v.Name, "experiment", v.Experiment,
			"a", strconv.Itoa(v.A), "b", strconv.Itoa(v.B), "from", strconv.Itoa(from))
	}
	if from > 0 {
		v.Newer = page(max(0, from-rowsPerPage))
	}
	if to < len(v.pairs) {
		v.Older = page(to)
	}

	return nil
}

// answerOf returns a call, and the beginning of what it answered, or of its error.
func (p *pages) answerOf(c *frame.Exchange, id string) (call wire.Record, text string, err error) {
	if id == "" {
		return call, "", nil
	}
	call, err = p.records.Request(c.Context(), c.Identity(), id)
	if wire.IsCode(err, wire.CodeNotFound) {
		return call, "", nil
	}
	read := calls.Read(call.Request)
	_, text = read.Searched()

	return call, truncate(text), err
}

// experimentCommand returns the command that tries a version on the calls that a line finds, against the
// version in production.
func experimentCommand(head templateHead, version int, line string) string {
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	base := max(1, version-1)
	if at, labelled := head.Resolve(wire.Selector{Label: "prod"}); labelled && at != version {
		base = at
	}
	reference := func(version int) string { return quoted(fmt.Sprintf("%s@%d", head.Name, version)) }

	return "promptspool experiments run --filter " + quoted(cmp.Or(line, "since:7d")) + " \\\n  --template " +
		reference(version) + " --against " + reference(base) + " -- python3 answer.py"
}

// Search returns the address of the list of the experiment's calls.
func (r *comparedRows) Search() string {
	return filter.RequestsWith("metadata", experiment.NameKey, r.Experiment)
}
