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
	"time"

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

	// A comparison of thousands of rows is kept, as long as its scores may be old.
	comparedKept = time.Minute
)

// comparedKey names a comparison of two versions; "" are those that the page chooses. With a newer call, the
// experiment is compared again.
type comparedKey struct{ account, template, newest, from, to string }

// rowsCompared is what is known of two versions of an experiment.
type rowsCompared struct {
	comparedKey
	name     string
	names    []string // of the template's experiments, the newest first
	at       time.Time
	versions []int
	a, b     int
	counts   [2]int // calls of each version
	experiment.Comparison
}

// experimentView is what two versions answered to the rows of an experiment, the worst regressions first.
type experimentView struct {
	templateHead
	Experiment string
	Names      []string // of the template's experiments, newest first
	A, B       int      // A is 0 if there is one version only
	Select     []int
	Calls      *comparison
	Rows       []experimentRow
	Newer      string // the addresses of pages
	Older      string
	Command    string // begins another one
}

type experimentRow struct {
	experiment.Pair
	Diff []textdiff.Row // of the answers; nil if they are equal
	Text string         // the answer, if it is alone or both are equal
}

func (p *pages) experimentPage(c *frame.Exchange, head templateHead) error {
	v := experimentView{templateHead: head, Command: experimentCommand(head, head.Latest(), "since:7d")}
	compared, err := p.compareRows(c, head.Name)
	if err == nil && compared.name != "" {
		v.Experiment, v.Names = compared.name, compared.names
	}
	if err == nil && compared.counts[1] > 0 {
		err = p.showRows(c, &v, compared)
	}
	if err != nil {
		return err
	}

	return c.Show(http.StatusOK, "experiment", frame.Title(v.Experiment, head.Name, "Experiments"), "templates", v)
}

// compareRows compares two versions by all rows of the experiment that the call names, or else of the
// template's newest one. It may be what was found a moment ago.
func (p *pages) compareRows(c *frame.Exchange, template string) (*rowsCompared, error) {
	search := func(ctx context.Context, s wire.Search) (wire.SearchPage, error) {
		s.Quick = true
		return p.records.Search(ctx, c.Identity(), s)
	}
	of := []filterline.Term{
		filterline.Where("template", "", template),
		filterline.Where("metadata", experiment.NameKey, c.FormValue("experiment")),
	}
	if c.FormValue("experiment") == "" {
		of[1].Values[0].Operator = filterline.Exists
	}
	selected, err := filterline.Line{Terms: of}.Compile(filterline.Clock{})
	if err != nil {
		return nil, err
	}
	newest, err := search(c.Context(), wire.Search{FilterGroup: selected, PerPage: 1})
	if err != nil || len(newest.Items) == 0 {
		return &rowsCompared{name: c.FormValue("experiment")}, err
	}
	key := comparedKey{c.Identity().Account, template, newest.Items[0].RequestID, c.FormValue("a"), c.FormValue("b")}
	if last := p.compared.Load(); last != nil && last.comparedKey == key && time.Since(last.at) < comparedKept {
		return last, nil
	}

	r := &rowsCompared{comparedKey: key, at: time.Now()}
	for _, m := range newest.Items[0].Metadata {
		if m.Key == experiment.NameKey {
			r.name = m.Value
		}
	}
	named, err := filterline.Line{Terms: of[:1]}.Compile(filterline.Clock{})
	if err != nil {
		return nil, err
	}
	found, err := p.records.Suggest(c.Context(), c.Identity(), wire.SuggestQuery{
		Field: "metadata", Key: experiment.NameKey, Limit: experimentsMax, FilterGroup: named,
	})
	if err != nil {
		return nil, err
	}
	r.names = found.Values
	all, err := experiment.Load(c.Context(), search, r.name, template)
	r.versions = slices.Sorted(maps.Keys(all))
	if err != nil || len(all) == 0 {
		return r, err
	}
	if len(r.versions) > 1 {
		r.a = r.versions[0]
	}
	r.a, err = versionParam(c, "a", r.a)
	if err == nil {
		r.b, err = versionParam(c, "b", r.versions[len(r.versions)-1])
	}
	if err != nil {
		return nil, err
	}
	defined, err := c.ScoreDefinitions()
	if err != nil {
		return nil, err
	}
	r.counts = [2]int{len(all[r.a]), len(all[r.b])}
	r.Comparison = experiment.Compare(all[r.a], all[r.b], defined)
	for i := range r.Pairs {
		r.Pairs[i].A, r.Pairs[i].B = shownCall(r.Pairs[i].A), shownCall(r.Pairs[i].B)
	}
	p.compared.Store(r)

	return r, nil
}

// shownCall returns what of a call is shown. Nothing else is kept.
func shownCall(call *wire.Row) *wire.Row {
	if call == nil {
		return nil
	}
	return &wire.Row{
		RequestID: call.RequestID, PromptVersion: call.PromptVersion, Status: call.Status,
		Scores: call.Scores, Latency: call.Latency, Price: call.Price,
	}
}

// showRows fills in the comparison, and one page of rows with their answers.
func (p *pages) showRows(c *frame.Exchange, v *experimentView, compared *rowsCompared) error {
	v.A, v.B, v.Select = compared.a, compared.b, compared.versions
	v.Calls = new(comparison)
	v.Calls.A = wire.ComparedCalls{Version: v.A, Requests: int64(compared.counts[0])}
	v.Calls.B = wire.ComparedCalls{Version: v.B, Requests: int64(compared.counts[1])}
	for _, m := range compared.Metrics {
		if m.CountB > 0 {
			v.Calls.Rows = append(v.Calls.Rows, newComparedRow(m))
		}
	}

	from, _ := strconv.Atoi(c.FormValue("from"))
	from = min(max(from, 0), len(compared.Pairs))
	to := min(from+rowsPerPage, len(compared.Pairs))
	for _, pair := range compared.Pairs[from:to] {
		row := experimentRow{Pair: pair}
		before, err := p.answerOf(c, pair.A)
		if err != nil {
			return err
		}
		row.Text, err = p.answerOf(c, pair.B)
		if err != nil {
			return err
		}
		if pair.A != nil {
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
	if to < len(compared.Pairs) {
		v.Older = page(to)
	}

	return nil
}

// answerOf returns the beginning of what a call answered, or of its error.
func (p *pages) answerOf(c *frame.Exchange, call *wire.Row) (string, error) {
	if call == nil {
		return "", nil
	}
	record, err := p.records.Request(c.Context(), c.Identity(), call.RequestID)
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		return "", err
	}
	read := calls.Read(record.Request)
	_, text := read.Searched()

	return truncate(text), nil
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
func (v experimentView) Search() string {
	return filter.RequestsWith("metadata", experiment.NameKey, v.Experiment)
}
