package overview

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// projectsTime is the time that the page of all projects sums up.
const projectsTime = "since:7d"

// projectsView is what the page of all projects shows.
type projectsView struct {
	Rows    []projectRow
	Counted frame.Counted // of a project that is not counted to the end, if there is one
}

type projectRow struct {
	wire.Membership
	Href    string // the first page there, with the requests of the same time
	Totals  wire.Totals
	Counted frame.Counted
	Scores  string
}

// projectsPage shows all projects of the reader side by side.
func (p *pages) projectsPage(c *frame.Exchange) error {
	var v projectsView
	f := c.Filter(url.Values{"filter": {projectsTime}})
	page := c.CountedPage("/projects", url.Values{})
	mine := c.Projects()
	s, err := f.Search()
	if err != nil {
		return err
	}

	query := page.Bounded(wire.StatisticsQuery{
		FilterGroup: s.FilterGroup,
		FilterLine:  wire.FilterLine{Zone: f.Zone().String()},
		PointsMax:   1,
	})
	// A reader of many projects waits no longer than one of a single one; the script asks again.
	query.Budget = max(query.Budget/time.Duration(len(mine)), 10*time.Millisecond)

	for _, m := range mine {
		a, err := p.records.Analyze(c.Context(), c.IdentityIn(m), query)
		if err != nil {
			return err
		}

		row := projectRow{
			Membership: m,
			Href:       address.With(address.Of("/", f.Values()), "project", m.AccountName),
			Totals:     a.Overall,
			Counted:    page.Counted(a.Progress),
			Scores:     scoresText(a.Overall.Scores),
		}
		if row.Counted.Incomplete {
			v.Counted = row.Counted
		}
		v.Rows = append(v.Rows, row)
	}

	return c.Show(http.StatusOK, "projects", "All projects", "projects", v)
}

// scoresText prints the most frequent scores.
func scoresText(all []wire.ScoreSum) string {
	names := wire.ScoreNames(all)
	var texts []string
	for _, name := range names[:min(len(names), chart.LinesMax)] {
		texts = append(texts, name+" "+wire.SumOf(all, name).String())
	}

	return strings.Join(texts, ", ")
}
