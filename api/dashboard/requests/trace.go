package requests

import (
	"cmp"
	"math"
	"net/http"
	"time"

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
)

// Bounds of the page of a trace.
const (
	traceRowsMax  = 1000 // spans that it shows
	traceDepthMax = 8    // steps by which it indents them, at most; style.css has as many
)

// traceView is what the page of a trace shows.
type traceView struct {
	TraceID string
	Name    string // of its first root
	Rows    []traceRow
	Total   traceRow // what all of its spans took together
	Spans   int
	Failed  int
	Logged  bool // some of them are logged by a separate request
	LeftOut int  // spans that the page has no section for
	More    bool // beyond these
	Closed  bool
}

// traceRow is a span of a trace.
type traceRow struct {
	wire.TraceSpan
	outcome
	Depth int
	began *time.Time // when its trace did
}

// Indent returns by how many steps the span's name is indented.
func (r traceRow) Indent() int { return min(r.Depth, traceDepthMax) }

// Logged returns the id of the request by which an SDK logs the span's call itself, or "".
func (r traceRow) Logged() string {
	if r.RequestLogID == nil || *r.RequestLogID == r.ID {
		return ""
	}

	return *r.RequestLogID
}

// LatencyMS returns how long the span took; nil if that is unknown.
func (r traceRow) LatencyMS() *float64 { return millisecondsBetween(r.StartTime, r.EndTime) }

// After returns how long after its trace the span began, to a tenth of a millisecond.
func (r traceRow) After() string {
	ms := millisecondsBetween(r.began, r.StartTime)
	if ms == nil {
		return "–"
	}
	rounded := math.Round(*ms*10) / 10

	return "+" + number.LatencyMS(&rounded)
}

// millisecondsBetween returns the time from one moment to a later one, nil if there is none.
func millisecondsBetween(from, to *time.Time) *float64 {
	if from == nil || to == nil || to.Before(*from) {
		return nil
	}
	ms := float64(to.Sub(*from).Nanoseconds()) / 1e6

	return &ms
}

func (p *pages) tracePage(c *frame.Exchange) error {
	trace, err := p.records.Trace(c.Context(), c.Identity(), c.PathValue("id"))
	if err != nil {
		return err
	}

	rows := traceRows(trace.Spans)
	v := traceView{
		TraceID: trace.TraceID,
		Name:    "Trace",
		Total:   traceTotal(trace.Spans),
		Spans:   len(rows),
		More:    trace.Truncated,
		Closed:  trace.Closed,
	}
	if len(rows) > 0 {
		v.Name = cmp.Or(rows[0].Name, v.Name)
	}
	for i := range rows {
		rows[i].began = v.Total.StartTime
		v.Logged = v.Logged || rows[i].Logged() != ""
		if rows[i].Failed() {
			v.Failed++
		}
	}
	v.Rows = rows[:min(len(rows), traceRowsMax)]
	v.LeftOut = len(rows) - len(v.Rows)

	title := v.Name
	if v.Name != "Trace" {
		title += " · Trace"
	}
	if v.Failed > 0 {
		title = "failed · " + title
	}

	return c.Show(http.StatusOK, "trace", title, "requests", v)
}

// traceTotal adds up spans: from the first start to the last end.
func traceTotal(spans []wire.TraceSpan) traceRow {
	var total traceRow
	for i := range spans {
		s := &spans[i]
		if total.StartTime == nil || s.StartTime != nil && s.StartTime.Before(*total.StartTime) {
			total.StartTime = s.StartTime
		}
		if total.EndTime == nil || s.EndTime != nil && s.EndTime.After(*total.EndTime) {
			total.EndTime = s.EndTime
		}
		total.InputTokens = added(total.InputTokens, s.InputTokens)
		total.OutputTokens = added(total.OutputTokens, s.OutputTokens)
		total.Price = added(total.Price, s.Price)
	}

	return total
}

// added returns a sum in which an unknown number counts nothing; nil if neither is known.
func added[N int64 | float64](sum, n *N) *N {
	if sum == nil || n == nil {
		return cmp.Or(sum, n)
	}
	both := *sum + *n

	return &both
}

// traceRows returns spans as a tree: each is followed by its children, in their order. A span
// whose parent is not among them is a root.
func traceRows(spans []wire.TraceSpan) []traceRow {
	known := make(map[string]bool, len(spans))
	for i := range spans {
		known[spans[i].SpanID] = true
	}
	children := map[string][]int{}
	var roots []int
	for i := range spans {
		if p := spans[i].ParentID; p != nil && known[*p] {
			children[*p] = append(children[*p], i)
		} else {
			roots = append(roots, i)
		}
	}

	type step struct{ span, depth int }
	rows := make([]traceRow, 0, len(spans))
	done := make([]bool, len(spans))
	walk := func(root int) {
		for todo := []step{{root, 0}}; len(todo) > 0; {
			next := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if done[next.span] {
				continue
			}
			done[next.span] = true
			rows = append(rows, traceRow{
				TraceSpan: spans[next.span], outcome: outcome(spans[next.span].Status), Depth: next.depth,
			})

			// The last one goes first on the stack. Spans with the same id have children once.
			of := children[spans[next.span].SpanID]
			delete(children, spans[next.span].SpanID)
			for i := len(of) - 1; i >= 0; i-- {
				todo = append(todo, step{of[i], next.depth + 1})
			}
		}
	}

	for _, i := range roots {
		walk(i)
	}
	// The rest are circles of parents.
	for i := range spans {
		walk(i)
	}

	return rows
}
