package scores

import (
	"math"
	"slices"
	"strconv"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// bar is a part of a histogram.
type bar struct {
	From, To string
	Count    int64
	Width    float64 // in percent of the longest
	Found    string  // the address of its requests
}

// bars returns the histogram of a score that is a number, with the requests that a filter finds.
func bars(found filter.Filter, s wire.ScoreSum) (all []bar) {
	if s.Kind != "number" || s.Count == 0 {
		return nil
	}
	from, to := wire.OrZero(s.From), 100.0
	if s.To != nil {
		to = *s.To
	}
	most := max(slices.Max(s.Histogram[:]), 1)
	end := func(i int) string {
		x := from + (to-from)*float64(i)/float64(len(s.Histogram))
		return strconv.FormatFloat(math.Round(x*1e9)/1e9, 'f', -1, 64)
	}
	bound := func(o filterline.Operator, x string) filterline.Term {
		t := filterline.Where("score", s.Name, "")
		t.Values = []filterline.Value{{Operator: o, Text: x}}
		return t
	}

	for i, n := range s.Histogram {
		// Only the last part has its upper end.
		upper := filterline.Below
		if i == len(s.Histogram)-1 {
			upper = filterline.AtMost
		}
		b := bar{From: end(i), To: end(i + 1), Count: n, Width: 100 * float64(n) / float64(most)}
		b.Found = found.With(bound(filterline.AtLeast, b.From), bound(upper, b.To)).Requests()
		all = append(all, b)
	}

	return all
}

// worstMax is how many calls the page of a score lists.
const worstMax = 20

// worst are the calls with the worst values of a score, the worst first.
type worst struct {
	Rows   []judged
	All    string // the address of the list that they are the first of
	Review string // the address where that list is scored, one request after another
}

// judged is a call with a score.
type judged struct {
	wire.Row
	Href string
}

// Values returns the values of a score of the call, one by each author.
func (j judged) Values(name string) (values []string) {
	for _, s := range j.Scores {
		if s.Name == name {
			values = append(values, s.Short())
		}
	}

	return values
}

// readWorst reads the calls with the worst values of a score. Categories have no order.
func (p *pages) readWorst(c *frame.Exchange, found filter.Filter, r *row) (w worst, err error) {
	if r.Kind == "category" || r.Count == 0 {
		return w, nil
	}
	f := found.With(filterline.Where("score_name", "", r.Name))
	f.Order = filter.Order{By: wire.ScoreSort + r.Name, Ascending: r.Expects.Better != "lower"}
	page, err := f.List(c.Context(), p.records, c.Identity(), wire.Search{PerPage: worstMax})
	if err != nil {
		return w, err
	}

	for i, item := range page.Items {
		at := f.At(filter.Place{ID: item.RequestID, Cursor: page.Start, Row: i,
			Number: filter.Number{At: i + 1, Of: page.Total}})
		w.Rows = append(w.Rows, judged{item, address.Of("/requests/"+item.RequestID, at)})
	}
	q := f.Values()
	q.Set("scores", r.Name)
	w.All, w.Review = f.Requests(), address.Of("/review", q)

	return w, nil
}
