//go:build !race

package records_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// A few short log records may belong to many large spans.
func TestJoiningHoldsAFewSpansAtATime(t *testing.T) {
	j := newJoiner(t)
	var logs []wire.Event
	for n := range 12 {
		span, log := spanAndLog(t, n, strings.Repeat("x", 1<<20), joinStart, said)
		j.record(t, span)
		logs = append(logs, log)
	}

	j.largest = 0
	j.record(t, logs...)
	if j.largest < 4<<20 || j.largest > 6<<20 {
		t.Errorf("%d bytes were applied at once", j.largest)
	}
}

// A record that joining fills could take no score of its call.
func TestJoiningLeavesRoomForScores(t *testing.T) {
	j := newJoiner(t)
	span, _ := spanAndLog(t, 1, strings.Repeat("x", 12<<20), joinStart, said)
	j.record(t, span)
	for n := range 4 {
		_, log := spanAndLog(t, 1, "", joinStart.Add(time.Duration(n)), said)
		j.record(t, log)
	}

	r := j.shown(t, span)
	if len(r.Events) != 2 {
		t.Errorf("%d events of a span that grew, want it to be joined once", len(r.Events))
	}
}

// Each batch with log records of a span reads those that came before.
func TestLogRecordsOfASpanAreBounded(t *testing.T) {
	j := newJoiner(t)
	var logs []wire.Event
	for n := range archive.LogEventsMax + 1 {
		_, log := spanAndLog(t, 1, "", joinStart.Add(time.Duration(n)), said)
		logs = append(logs, log)
	}

	results, err := j.archive.Record(t.Context(), j.id, logs)
	if err != nil || results[archive.LogEventsMax-1].Reason != "" ||
		results[archive.LogEventsMax].Code != wire.ResultInvalid {
		t.Errorf("%v, the last results are %+v", err, results[archive.LogEventsMax-1:])
	}
	span, _ := spanAndLog(t, 1, "", joinStart, said)
	j.record(t, span)
	if r := j.shown(t, span); r.InputExcerpt != "Hi" {
		t.Errorf("the span has no message: %s", r.Span)
	}

	// Else each of those that follow costs as much as all that are kept.
	j.read = 0
	if _, err := j.archive.Record(t.Context(), j.id, logs[archive.LogEventsMax:]); err != nil || j.read > 0 {
		t.Errorf("a log record that was refused: %d records were read, %v", j.read, err)
	}
}

func TestALogRecordFindsItsSpanInALongTrace(t *testing.T) {
	j := newJoiner(t)
	var spans, logs []wire.Event
	for n := range 2500 {
		span, log := spanAndLog(t, n, "", joinStart, said)
		spans, logs = append(spans, span), append(logs, log)
	}
	j.record(t, spans...)

	// By id, the last of the trace.
	last := 0
	for i := range spans {
		if spans[i].RequestID > spans[last].RequestID {
			last = i
		}
	}
	j.record(t, logs[last])
	if r := j.shown(t, spans[last]); r.InputExcerpt != "Hi" {
		t.Errorf("the span has no message: %s", r.Span)
	}
}

// Of many messages not all are joined. A score must not depend on what comes before it.
func TestManyMessagesKeepNoScoreOut(t *testing.T) {
	big := `"pad":"` + strings.Repeat("x", 1<<20) + `",` + said
	for name, messages := range map[string]struct {
		n       int
		at      time.Time
		members string
	}{
		"many messages":  {300, joinStart, said},
		"large messages": {5, time.Time{}, big},
	} {
		for _, together := range []bool{true, false} {
			j := newJoiner(t)
			span, judgement := spanAndLog(t, 1, "", joinStart.Add(time.Hour), judged)
			events := []wire.Event{span}
			for n := range messages.n {
				members := fmt.Sprintf(`"n":%d,%s`, n, messages.members)
				_, message := spanAndLog(t, 1, "", messages.at, members)
				events = append(events, message)
			}

			if together {
				_, _ = j.archive.Record(t.Context(), j.id, append(events, judgement))
			} else {
				_, _ = j.archive.Record(t.Context(), j.id, events)
				j.record(t, judgement)
			}
			if r := j.shown(t, span); r.InputExcerpt != "Hi" || len(r.Scores) != 1 {
				t.Errorf("%s, together %v: the input %q, the scores %v", name, together, r.InputExcerpt, r.Scores)
			}
		}
	}
}
