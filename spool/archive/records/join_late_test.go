package records_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// The batch of log records is durable by then, and would be sent again for ever.
func TestADeletionWhileLogRecordsAreJoined(t *testing.T) {
	j := newJoiner(t)
	span, log := spanAndLog(t, 1, "", joinStart, said)
	logged := wire.Event{
		ID:         "018bcfe5-6800-7000-8000-000000000008",
		RequestID:  span.RequestID,
		Kind:       wire.KindRequest,
		AcceptedAt: joinStart,
		Sidecar:    "a",
		Body: json.RawMessage(`{"function_name":"logged","kwargs":{},"request_response":{},` +
			`"request_start_time":1,"request_end_time":2}`),
	}
	j.record(t, span, logged)
	j.deleted = span.RequestID
	j.record(t, log)
}

func TestLogRecordsOfTwoDaysAtTheSameTimeAreBothJoined(t *testing.T) {
	j := newJoiner(t)
	span, message := spanAndLog(t, 1, "", joinStart, said)
	_, judgement := spanAndLog(t, 1, "", joinStart.AddDate(0, 0, 1), judged)
	j.record(t, span)

	j.between = func() { j.record(t, judgement) }
	j.record(t, message)
	if r := j.shown(t, span); r.InputExcerpt != "Hi" || len(r.Scores) != 1 {
		t.Errorf("the input %q, the scores %v", r.InputExcerpt, r.Scores)
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

// A clock that was never set gives spans a start in 1970.
func TestASpanWithAWrongStartFindsItsLogRecords(t *testing.T) {
	for _, start := range []time.Time{time.Unix(0, 1), joinStart.AddDate(-3, 0, 0), joinStart.AddDate(3, 0, 0)} {
		j := newJoiner(t)
		span, log := spanAndLog(t, 1, "", joinStart, said)
		body := strings.Replace(string(span.Body), fmt.Sprint(joinStart.UnixNano()), fmt.Sprint(start.UnixNano()), 1)
		id := [8]byte{7: 1}
		span = traceEvent(t, wire.KindSpan, wire.SpanRecordID(joinTrace, id, uint64(start.UnixNano())), body)

		j.record(t, log)
		j.record(t, span)
		if r := j.shown(t, span); r.InputExcerpt != "Hi" {
			t.Errorf("a span that began %v has no message: %s", start, r.Span)
		}
	}
}

func TestWhyALogRecordIsRefused(t *testing.T) {
	j := newJoiner(t)
	var logs []wire.Event
	for n := range 6 {
		members := fmt.Sprintf(`"n":%d,"pad":"%s",%s`, n, strings.Repeat("x", 1<<20), said)
		_, log := spanAndLog(t, 1, "", joinStart, members)
		logs = append(logs, log)
	}

	results, err := j.archive.Record(t.Context(), j.id, logs)
	if err != nil || !strings.Contains(results[5].Reason, fmt.Sprint(archive.LogBytesMax, " bytes")) {
		t.Errorf("%v, %+v", err, results[5])
	}
}
