package requests

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/tracetree"
	"promptspool/api/wire"
)

// Bounds of the page of a trace.
const (
	traceRowsMax    = 450  // that it shows at once, and those above the first of them
	traceFoldsBytes = 1000 // of the ids of spans that an address has
	barMin          = 0.5  // percent of its axis that a bar takes
	traceIndentMax  = 8    // steps by which it indents spans, at most; style.css has as many
	spanTurnsMax    = 8    // messages of the selected span, the last ones
	spanTextMax     = 16 << 10
)

// traceView is what the page of a trace shows.
type traceView struct {
	*tracetree.Whole

	Trail          filter.Trail
	OwnScores      []wire.Score
	Root           traceRow // the first row
	Rows           []traceRow
	From, To, All  int    // the first and the last row that are shown, and how many there are
	Earlier, Later string // the addresses of the rows before and after these; or ""
	Failed         string // the address of the first span that failed by itself
	Scoring        frame.Scoring
	Selected       *spanView

	Find   string        // part of the names that are looked for; "" for spans that failed
	Kept   []frame.Field // that the form to find spans sends along
	Found  []int         // the places of those spans
	At     int           // which of them is selected, from 1; 0 for none
	Before string        // the address of the one before the selected span
	After  string        // that of the one after it

	AxisFrom *float64 // where the time of the bars begins, in milliseconds of the trace; nil is its beginning
	AxisLong *float64 // how long it is; nil if that is unknown
	Zoom     string   // the address of the page with the time of the selected span, or of the whole trace
	Zoomed   bool     // the bars have the time of the selected span
}

// traceRow is a span of a trace.
type traceRow struct {
	tracetree.Row
	outcome

	Running  bool
	Selected bool
	Hit      bool    // it is looked for
	Href     string  // of the page with the span selected
	Toggle   string  // of the page with the span folded or opened; "" if nothing is below it
	At, Long float64 // its bar: where it begins and how long it is, in percent of the trace
}

// Indent returns by how many steps the span's name is indented.
func (r traceRow) Indent() int { return min(r.Depth, traceIndentMax) }

// LatencyMS returns how long the span took; nil if that is unknown.
func (r traceRow) LatencyMS() *float64 { return millisecondsBetween(r.StartTime, r.EndTime) }

// Below returns how many spans are below the span.
func (r traceRow) Below() int { return r.Total.Spans - 1 }

// kindIcons are the icons of kinds of spans.
var kindIcons = map[string]string{
	"llm":       "message-square",
	"embedding": "binary",
	"agent":     "bot",
	"tool":      "wrench",
	"retriever": "file-search",
	"evaluator": "gauge",
	"chain":     "workflow",
}

// Icon returns the icon of the span's kind.
func (r traceRow) Icon() string { return cmp.Or(kindIcons[r.Kind], "box") }

// spanView is the selected span beside the tree.
type spanView struct {
	traceRow
	conversation.Shown

	Earlier int // messages that are only on the page of its record
}

// millisecondsBetween returns the time from one moment to a later one, nil if there is none.
func millisecondsBetween(from, to *time.Time) *float64 {
	if from == nil || to == nil || to.Before(*from) {
		return nil
	}
	return new(float64(to.Sub(*from).Nanoseconds()) / 1e6)
}

func (p *pages) tracePage(c *frame.Exchange) error {
	trace, err := p.records.Trace(c.Context(), c.Identity(), c.PathValue("id"))
	if err != nil {
		return err
	}

	s := readTraceState(trace.TraceID, c.URL.Query())
	v := traceView{Whole: p.trees.Of(trace), OwnScores: trace.OwnScores}
	v.Trail = c.Walk("Traces", "/traces", trace.TraceID, s.query)
	all := v.Whole.Rows
	if len(all) == 0 {
		return c.Show(http.StatusOK, "trace", "Trace", "requests", v)
	}

	v.find(s, all)
	at := s.selected(all, v.Found)
	v.step(s, all, at)
	v.zoom(s, all, at)
	v.show(s, all, at)
	v.Failed = s.with("span", all[tracetree.FirstFault(all)].ID)
	v.Selected, err = p.selectedSpan(c, v.row(s, all[at]))
	if err != nil {
		return err
	}
	v.Scoring = c.Scoring("POST /traces/{id}/score", s.path+"/score", v.Selected.Scores,
		frame.Field{Name: "view", Value: s.query.Encode()})
	v.Scoring.Parts = "facts scores"
	v.Scoring.Of = []frame.Field{
		{Name: "this span", Value: cmp.Or(v.Selected.SameCall, v.Selected.ID)},
		{Name: "the trace"},
	}

	return c.Show(http.StatusOK, "trace", v.Outcome()+" · "+v.Root.Name+" · Trace", "requests", v)
}

// scoreTrace scores a trace or one of its spans.
func (p *pages) scoreTrace(c *frame.Exchange) error {
	id, span := c.PathValue("id"), c.PostForm.Get("of")
	trace, err := p.records.Trace(c.Context(), c.Identity(), id)
	if err != nil {
		return err
	}
	q, _ := url.ParseQuery(c.PostForm.Get("view"))
	s := readTraceState(trace.TraceID, q)
	of, target := "request_id", span
	if span == "" {
		of, target = "trace_id", trace.TraceID
	}

	return c.SetScore(p.recorder, p.scored, of, target, address.Of(s.path, s.query))
}

// Outcome returns how the trace ended.
func (v traceView) Outcome() string {
	switch {
	case v.Running:
		return "running"
	case v.Root.Failed():
		return "failed"
	case v.Total.Errors > 0:
		return number.Quantity(int64(v.Total.Errors), "error")
	}

	return cmp.Or(v.Root.Ended(), "ended")
}

// LatencyMS returns how long the trace took, as far as its spans say; nil if that is unknown.
func (v traceView) LatencyMS() *float64 {
	return millisecondsBetween(v.Total.StartTime, v.Total.EndTime)
}

// find finds the spans that the reader goes through.
func (v *traceView) find(s traceState, all []tracetree.Row) {
	v.Find = s.query.Get("find")
	for i, r := range all {
		if v.Find == "" && r.IsFault() || v.isHit(r) {
			v.Found = append(v.Found, i)
		}
	}
	for _, name := range []string{"open", "shut", "zoom", filter.OpenedFrom} {
		if value := s.query.Get(name); value != "" {
			v.Kept = append(v.Kept, frame.Field{Name: name, Value: value})
		}
	}
}

// isHit reports whether a span has the part of a name that is looked for, if there is one.
func (v *traceView) isHit(r tracetree.Row) bool {
	return v.Find != "" && strings.Contains(strings.ToLower(r.Name+" "+r.Kind), strings.ToLower(v.Find))
}

// step sets the way from the selected span to the ones before and after it that are looked for. After the
// last one comes the first.
func (v *traceView) step(s traceState, all []tracetree.Row, selected int) {
	n := len(v.Found)
	if n == 0 {
		return
	}
	i, isAt := slices.BinarySearch(v.Found, selected)
	before, after := v.Found[(i+n-1)%n], v.Found[i%n]
	if isAt {
		v.At, after = i+1, v.Found[(i+1)%n]
	}
	v.Before, v.After = s.with("span", all[before].ID), s.with("span", all[after].ID)
}

// zoom sets the time of the bars: of the whole trace, or of one of its spans.
func (v *traceView) zoom(s traceState, all []tracetree.Row, selected int) {
	v.AxisLong = v.LatencyMS()
	v.Zoom = s.with("zoom", all[selected].ID)
	id := s.query.Get("zoom")
	at := slices.IndexFunc(all, func(r tracetree.Row) bool { return r.ID == id })
	if at < 0 {
		return
	}
	start, end := all[at].Times()
	from, long := millisecondsBetween(v.Total.StartTime, start), millisecondsBetween(start, end)
	if from == nil || wire.OrZero(long) == 0 {
		return
	}

	v.AxisFrom, v.AxisLong, v.Zoomed = from, long, at == selected
	if v.Zoomed {
		v.Zoom = s.with("zoom", "")
	}
}

// show fills in the rows that are shown, those around the selected one unless the address says which.
func (v *traceView) show(s traceState, all []tracetree.Row, at int) {
	above := map[*wire.TraceNode]bool{}
	for _, r := range tracetree.Above(all, at) {
		above[r.TraceNode] = true
	}
	fits := tracetree.DepthThatFits(all, traceRowsMax)
	listed := tracetree.Rows(&v.TraceTree, func(n *wire.TraceNode, depth int) bool {
		return !s.has("shut", n.SpanID) && (depth < fits || above[n] || s.has("open", n.SpanID))
	})

	v.All = len(listed)
	from, err := strconv.Atoi(s.query.Get("from"))
	v.From = from
	if err != nil || from < 0 || from >= v.All {
		v.From = slices.IndexFunc(listed, func(r tracetree.Row) bool { return r.TraceNode == all[at].TraceNode })
		// The index is -1 if the selected span is folded.
		v.From = max(v.From, 0) / traceRowsMax * traceRowsMax
	}
	v.To = min(v.From+traceRowsMax, v.All)
	if v.From > 0 {
		v.Earlier = s.with("from", strconv.Itoa(max(v.From-traceRowsMax, 0)))
	}
	if v.To < v.All {
		v.Later = s.with("from", strconv.Itoa(v.To))
	}

	for _, row := range tracetree.Window(listed, v.From, v.To) {
		shown := v.row(s, row)
		shown.Selected = row.TraceNode == all[at].TraceNode
		shown.Hit = v.isHit(row)
		v.Rows = append(v.Rows, shown)
	}
	v.Root = v.row(s, all[0])
}

// row returns a span as a row of the page.
func (v *traceView) row(s traceState, r tracetree.Row) traceRow {
	row := traceRow{Row: r, outcome: outcome(r.Status), Href: s.with("span", r.ID)}
	row.Running = v.Running && r.EndTime == nil && r.StartTime != nil
	if len(r.Children) > 0 {
		row.Toggle = s.toggled(r.SpanID, r.Folded)
	}

	start, end := r.Times()
	if row.Running {
		end = v.Total.EndTime
	}
	from := millisecondsBetween(v.Total.StartTime, start)
	if from == nil || wire.OrZero(v.AxisLong) == 0 {
		row.Long = barMin
		return row
	}

	// The part of a span outside of the bars' time is cut off.
	percent := func(ms float64) float64 { return (ms - wire.OrZero(v.AxisFrom)) / *v.AxisLong * 100 }
	row.At = percent(*from)
	to := percent(*from + wire.OrZero(millisecondsBetween(start, end)))
	if row.At > 100 || to < 0 {
		return row
	}
	row.At = min(max(row.At, 0), 100-barMin)
	row.Long = max(min(to, 100)-row.At, barMin)

	return row
}

// selectedSpan reads the record of a span for the page.
func (p *pages) selectedSpan(c *frame.Exchange, row traceRow) (*spanView, error) {
	v := &spanView{traceRow: row}
	r, err := p.records.Request(c.Context(), c.Identity(), row.ID)
	if err != nil {
		return nil, err
	}

	t := recordTexts(c, c.Filter(url.Values{}), r)
	t.Bound(spanTextMax)
	v.Shown = t.Call(conversation.Read(r.Content()))
	v.Earlier = len(v.Input) - spanTurnsMax
	if v.Earlier > 0 {
		v.Input = v.Input[v.Earlier:]
	}

	return v, nil
}

// traceState is what the address of the page has: which span is selected, which are opened and folded
// by hand, which are looked for, the time of the bars, the first row, and the list it was opened from.
type traceState struct {
	path  string
	query url.Values
}

func readTraceState(trace string, all url.Values) traceState {
	s := traceState{"/traces/" + trace, url.Values{}}
	for _, name := range []string{"span", "open", "shut", "from", "find", "zoom", filter.OpenedFrom} {
		if value := all.Get(name); value != "" && len(value) <= traceFoldsBytes {
			s.query.Set(name, value)
		}
	}

	return s
}

// has reports whether the state lists a span, as opened or folded.
func (s traceState) has(name, id string) bool {
	return slices.Contains(strings.Split(s.query.Get(name), ","), id)
}

// selected returns the place of the selected span: that of the address, by the id of its record or by
// its own, else the first that is looked for, else the first that failed, else the root.
func (s traceState) selected(all []tracetree.Row, found []int) int {
	id := s.query.Get("span")
	at := slices.IndexFunc(all, func(r tracetree.Row) bool { return r.ID == id || r.SpanID == id })
	switch {
	case at >= 0:
		return at
	case len(found) > 0:
		return found[0]
	}

	return tracetree.FirstFault(all)
}

// with returns the address of the page with another value.
func (s traceState) with(name, value string) string {
	q := maps.Clone(s.query)
	address.Set(q, name, value)

	return address.Of(s.path, q)
}

// toggled returns the address of the page with a span folded or opened.
func (s traceState) toggled(id string, folded bool) string {
	now, before := "shut", "open"
	if folded {
		now, before = before, now
	}
	ids := strings.Split(s.query.Get(before), ",")
	s.query = maps.Clone(s.query)
	ids = slices.DeleteFunc(ids, func(other string) bool { return other == id })
	address.Set(s.query, before, strings.Join(ids, ","))

	return s.with(now, strings.TrimPrefix(s.query.Get(now)+","+id, ","))
}
