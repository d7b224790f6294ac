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
	least, upper := filterline.Where("score", s.Name, ""), filterline.Where("score", s.Name, "")
	for i, n := range s.Histogram {
		b := bar{From: end(i), To: end(i + 1), Count: n, Width: 100 * float64(n) / float64(most)}
		least.Values = []filterline.Value{{Operator: filterline.AtLeast, Text: b.From}}
		upper.Values = []filterline.Value{{Operator: filterline.Below, Text: b.To}}
		// Only the last part has its upper end.
		if i == len(s.Histogram)-1 {
			upper.Values[0].Operator = filterline.AtMost
		}
		b.Found = found.With(least, upper).Requests()
		all = append(all, b)
	}

	return all
}

// worstMax is how many calls the page of a score lists.
const worstMax = 20

// worst are the calls with the worst values of a score, the worst first.
type worst struct {
	wire.SearchPage
	Filter filter.Filter // with their order
}

// Open returns the address of call i.
func (w worst) Open(i int) string {
	id := w.Items[i].RequestID
	at := filter.Place{ID: id, Cursor: w.Start, Row: i, Number: filter.Number{At: i + 1, Of: w.Total}}

	return address.Of("/requests/"+id, w.Filter.At(at))
}

// Review returns the address where the calls are given a score, one after another.
func (w worst) Review(name string) string {
	return address.With(address.Of("/review", w.Filter.Values()), "scores", name)
}

// readWorst reads the calls with the worst values of a score. Categories have no order.
func (p *pages) readWorst(c *frame.Exchange, found filter.Filter, r *row) (w worst, err error) {
	if r.Kind == "category" || r.Count == 0 {
		return w, nil
	}
	w.Filter = found.With(filterline.Where("score_name", "", r.Name))
	w.Filter.Order = filter.Order{By: wire.ScoreSort + r.Name, Ascending: r.Expects.Better != "lower"}
	w.SearchPage, err = w.Filter.List(c.Context(), p.records, c.Identity(), wire.Search{PerPage: worstMax})

	return w, err
}
