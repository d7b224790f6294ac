package records

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
)

// Trace returns the spans of a trace of the identity's account, by their start. Those of a long trace
// are remembered for some seconds: callers must not change them.
func (svc *Service) Trace(ctx context.Context, id wire.Identity, trace string) (wire.Trace, error) {
	parsed, err := parseTrace(trace)
	if err != nil {
		return wire.Trace{}, err
	}

	// Before the spans are read: what changes meanwhile must not count as read.
	found, err := svc.rollup(ctx, id.Account, rollup.Trace, hex.EncodeToString(parsed[:]))
	if err != nil {
		return wire.Trace{}, err
	}
	if found != nil && found.Of[rollup.Spans] >= traceKeptMin {
		// One caller at a time, as it takes much memory. Those who wait find it remembered.
		svc.longTrace.Lock()
		defer svc.longTrace.Unlock()
	}
	kept := svc.keptTrace(ctx, id, found, parsed)
	if kept == nil {
		read, err := svc.readTrace(ctx, id, parsed)
		if err != nil {
			return wire.Trace{}, err
		}
		kept = &read
		svc.keepTrace(id.Account, found, kept)
	}

	answer := *kept
	answer.Complete = !svc.isLeft(id.Account)
	if len(answer.Spans) > archive.TakesMost {
		// Another server may have left it.
		todos, err := archive.ToDos(ctx, svc.config.Store, id.Account)
		if err != nil {
			return wire.Trace{}, err
		}
		isOf := func(t archive.ToDo) bool { return t.TraceID == answer.TraceID }
		answer.Complete = answer.Complete && !slices.ContainsFunc(todos, isOf)
	}
	answer.OwnScores, err = svc.ownScores(ctx, id.Account, wire.ScoreTarget{TraceID: answer.TraceID})

	return answer, err
}

// readTrace is Trace for one that is not remembered, without its own scores.
func (svc *Service) readTrace(ctx context.Context, id wire.Identity, parsed archive.UUID) (wire.Trace, error) {
	answer := wire.Trace{Success: true, TraceID: hex.EncodeToString(parsed[:]), Spans: []wire.TraceSpan{}}
	// Ids of records that have only the caller's word for their span.
	logged := map[string]bool{}
	after := ""
	for {
		states, next, err := svc.config.Store.States(ctx, id.Account, archive.Part{Trace: parsed}, after, traceStep)
		if err != nil {
			return wire.Trace{}, err
		}

		// Of each state only these few fields stay in memory.
		spans := make([]wire.TraceSpan, 0, len(states))
		for i := range states {
			if span, ok := states[i].TraceSpan(); ok {
				spans = append(spans, span)
				if states[i].Span == nil {
					logged[span.ID] = true
				}
			}
			answer.Closed = answer.Closed || states[i].ClosesTrace()
			answer.SessionID = cmp.Or(answer.SessionID, states[i].SessionID())
			answer.UserID = cmp.Or(answer.UserID, states[i].UserID())
		}
		answer.Spans = append(answer.Spans, spans...)
		answer.Truncated = next != "" && len(answer.Spans) >= wire.TraceSpansMax
		if answer.Truncated || next == "" {
			break
		}
		after = next
	}
	answer.Spans = placeLogged(answer.Spans, logged)
	if len(answer.Spans) == 0 && !answer.Closed {
		return wire.Trace{}, wire.Errorf(wire.CodeNotFound, "This project has no trace %s. If a sidecar "+
			"has just accepted its spans, they may still be on their way.", answer.TraceID)
	}

	// Stores list them by id, which need not be in the order of time.
	sort.Slice(answer.Spans, func(i, j int) bool {
		a, b := &answer.Spans[i], &answer.Spans[j]
		return cmp.Or(startOf(a).Compare(startOf(b)), cmp.Compare(a.ID, b.ID)) < 0
	})

	return answer, nil
}

// A long trace is remembered for some time: a reader of one span after the other waits only once.
// All of them have wire.TraceSpansMax spans at most.
const (
	traceKeptFor = 10 * time.Second
	traceKeptMin = 1000 // spans: shorter ones are read in no time
)

// traceKey is the name of a trace that is remembered.
type traceKey struct{ account, trace string }

// keptTrace is a trace as of its roll-up.
type keptTrace struct {
	*wire.Trace
	rollup rollup.Entry
}

// keptTrace returns a trace that is remembered and unchanged; nil if there is none.
func (svc *Service) keptTrace(
	ctx context.Context, id wire.Identity, now *rollup.Entry, trace archive.UUID,
) *wire.Trace {
	if now == nil {
		return nil
	}
	value, _ := svc.traces.Load(traceKey{id.Account, now.Name})
	kept, ok := value.(keptTrace)
	if !ok || kept.rollup != *now {
		return nil
	}
	if closed, err := svc.IsClosed(ctx, id, trace); err != nil || closed != kept.Closed {
		return nil
	}

	return kept.Trace
}

// keepTrace remembers a trace if it is long and there is room.
func (svc *Service) keepTrace(account string, as *rollup.Entry, trace *wire.Trace) {
	spans := int64(len(trace.Spans))
	if as == nil || spans < traceKeptMin {
		return
	}
	if svc.tracesSpans.Add(spans) <= wire.TraceSpansMax {
		svc.traces.Store(traceKey{account, as.Name}, keptTrace{trace, *as})
	}
	time.AfterFunc(traceKeptFor, func() {
		svc.traces.CompareAndDelete(traceKey{account, as.Name}, keptTrace{trace, *as})
		svc.tracesSpans.Add(-spans)
	})
}

// parseTrace reads the id of a trace.
func parseTrace(text string) (trace archive.UUID, err error) {
	trace, ok := archive.ParseTrace(strings.ToLower(text))
	if !ok {
		err = wire.Errorf(wire.CodeNotFound, "There is no such trace: a trace id must have 32 hexadecimal digits.")
	}
	return trace, err
}

// placeLogged puts calls that were logged with the id of another span below that span, and leaves out
// those of which a span says that it is theirs.
func placeLogged(spans []wire.TraceSpan, logged map[string]bool) []wire.TraceSpan {
	if len(logged) == 0 {
		return spans
	}

	// Ids of spans, and ids of records.
	taken, stood := map[string]bool{}, map[string]bool{}
	for i := range spans {
		if s := &spans[i]; !logged[s.ID] {
			taken[s.SpanID] = true
			if s.RequestLogID != nil && s.SameCall == "" {
				stood[*s.RequestLogID] = true
			}
		}
	}
	spans = slices.DeleteFunc(spans, func(s wire.TraceSpan) bool { return logged[s.ID] && stood[s.ID] })
	for i := range spans {
		s := &spans[i]
		if !logged[s.ID] {
			continue
		}
		if named := s.SpanID; taken[named] {
			s.SpanID, s.ParentID = archive.OwnSpanID(s.ID), &named
		}
		taken[s.SpanID] = true
	}

	return spans
}

// IsClosed reports whether a trace of the identity's account was closed.
func (svc *Service) IsClosed(ctx context.Context, id wire.Identity, trace [16]byte) (bool, error) {
	_, _, err := svc.config.Store.Record(ctx, id.Account, wire.CloseRecordID(trace))
	if wire.IsCode(err, wire.CodeNotFound) {
		return false, nil
	}
	return err == nil, err
}

// traceStep is how many records of a trace are read at a time.
const traceStep = 500

// startOf returns when a span began; the zero time if that is unknown.
func startOf(s *wire.TraceSpan) time.Time {
	if s.StartTime == nil {
		return time.Time{}
	}
	return *s.StartTime
}

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
			// Deleted meanwhile.
			if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
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
				// It stays right when other traces come.
				at = spanPlace{page: rollup.After(r)}
			}
		}
		if traces.NextCursor == nil {
			return answer, nil
		}
		at = spanPlace{page: *traces.NextCursor}
	}
}
