package records

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
)

// Bounds of a search for spans.
const (
	spansBudget = 2 * time.Second
	spansTraces = 50 // that are found at a time
)

// spanPlace is a place among spans: in a page of traces, after some of its traces and after some spans
// of the next one.
type spanPlace struct {
	traces, spans int
	page          string // the cursor of the page
}

// Spans finds spans of the traces that a search finds, those of the trace that was seen last first.
func (svc *Service) Spans(ctx context.Context, id wire.Identity, s wire.SpanSearch) (wire.SpanPage, error) {
	answer := wire.SpanPage{Success: true, Items: []wire.FoundSpan{}, Complete: true}
	var at spanPlace
	n, _ := fmt.Sscanf(s.Cursor, "%d.%d.%s", &at.traces, &at.spans, &at.page)
	if s.Cursor != "" && (n < 2 || at.traces < 0 || at.spans < 0) {
		return answer, errCursor("next_cursor of an earlier answer")
	}
	end, perPage := time.Now().Add(spansBudget), cmp.Or(s.PerPage, 10)
	stop := func(complete bool) (wire.SpanPage, error) {
		answer.Complete = complete
		answer.NextCursor = rowcode.Optional(fmt.Sprintf("%d.%d.%s", at.traces, at.spans, at.page))
		return answer, nil
	}

	search := wire.RollupSearch{Of: "traces", FilterGroup: s.FilterGroup, Having: s.Having, PerPage: spansTraces}
	for {
		search.Cursor = at.page
		traces, err := svc.rollups(ctx, id, search)
		if err != nil {
			return answer, err
		}
		for _, r := range traces.Items[min(at.traces, len(traces.Items)):] {
			if time.Now().After(end) {
				return stop(false)
			}
			trace, err := svc.Trace(ctx, id, r.ID)
			if err != nil && !wire.IsCode(err, wire.CodeNotFound) { // deleted meanwhile
				return answer, err
			}

			for _, span := range trace.Spans[min(at.spans, len(trace.Spans)):] {
				matches := s.Matches(&span)
				if matches && len(answer.Items) == perPage {
					return stop(true)
				}
				if at.spans++; matches {
					answer.Items = append(answer.Items, wire.FoundSpan{TraceID: r.ID, TraceSpan: span})
				}
			}
			at.traces, at.spans = at.traces+1, 0
			if traces.Complete {
				at = spanPlace{page: rollup.After(r)} // it stays right when other traces come
			}
		}
		if traces.NextCursor == nil {
			return answer, nil
		}
		at = spanPlace{page: *traces.NextCursor}
	}
}
