package dashboard

import (
	"net/http"

	"promptspool/api/wire"
)

func (d *Dashboard) traceRoutes() {
	d.handle("GET /traces/{id}", wire.RoleViewer, d.tracePage)
}

// Bounds of the page of a trace.
const (
	traceRowsMax  = 1000 // spans that it shows
	traceDepthMax = 8    // steps by which it indents them, at most; style.css has as many
)

// traceView is what the page of a trace shows.
type traceView struct {
	TraceID string
	Rows    []traceRow
	LeftOut int  // spans that the page has no room for
	More    bool // beyond these
	Closed  bool
}

// traceRow is a span of a trace.
type traceRow struct {
	wire.TraceSpan
	Depth int
}

// Indent returns by how many steps the span's name is indented.
func (r traceRow) Indent() int { return min(r.Depth, traceDepthMax) }

// LatencyMS returns how long the span took; nil if that is unknown.
func (r traceRow) LatencyMS() *float64 {
	if r.StartTime == nil || r.EndTime == nil || r.EndTime.Before(*r.StartTime) {
		return nil
	}
	ms := float64(r.EndTime.Sub(*r.StartTime).Nanoseconds()) / 1e6

	return &ms
}

func (d *Dashboard) tracePage(c *call) error {
	trace, err := d.Records.Trace(c.Context(), c.identity(), c.PathValue("id"))
	if err != nil {
		return err
	}

	rows := traceRows(trace.Spans)
	v := traceView{
		TraceID: trace.TraceID,
		Rows:    rows[:min(len(rows), traceRowsMax)],
		More:    trace.Truncated,
		Closed:  trace.Closed,
	}
	v.LeftOut = len(rows) - len(v.Rows)

	return d.show(c, http.StatusOK, "trace", "Trace", "requests", v)
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
			rows = append(rows, traceRow{spans[next.span], next.depth})

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
	// What is left are circles of parents.
	for i := range spans {
		walk(i)
	}

	return rows
}
