package databasetest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// responseID is long enough to identify a call.
const responseID = "chatcmpl-Ay5LM9hCKy4Zp0sXVeVY"

// report is what somebody says of a call.
type report struct {
	id           string // the provider's
	start, end   time.Duration
	input, tells string // what was asked and answered
	tokens       int    // of the answer; 0: not said
	user         string
	failed       bool
}

// logged returns the report as the body of a REST log.
func (r report) logged() map[string]any {
	body := map[string]any{
		"function_name":      "logged",
		"kwargs":             map[string]any{"model": "gpt-4o", "messages": r.messages()},
		"request_start_time": Start.Add(r.start),
		"request_end_time":   Start.Add(r.end),
	}
	response := map[string]any{"id": r.id, "model": "gpt-4o"}
	if r.tells != "" {
		message := map[string]any{"role": "assistant", "content": r.tells}
		response["choices"] = []any{map[string]any{"message": message, "finish_reason": "stop"}}
	}
	if r.tokens > 0 {
		response["usage"] = map[string]any{"prompt_tokens": 1000, "completion_tokens": r.tokens}
	}
	body["request_response"] = response
	if r.failed {
		body["status"], body["error_type"] = "ERROR", errors[0]
	}
	if r.user != "" {
		body["metadata"] = map[string]string{"user_id": r.user}
	}

	return body
}

func (r report) messages() []any {
	if r.input == "" {
		return []any{}
	}
	return []any{map[string]any{"role": "user", "content": r.input}}
}

// attributes returns the report as the attributes of a span.
func (r report) attributes() []any {
	attributes := []any{
		attribute("gen_ai.operation.name", "chat"),
		attribute("gen_ai.response.id", r.id),
		attribute("gen_ai.request.model", "gpt-4o"),
		attribute("user.id", r.user),
	}
	if r.input != "" {
		attributes = append(attributes, attribute("gen_ai.prompt", string(encoded(r.messages()))))
	}
	if r.tells != "" {
		attributes = append(attributes, attribute("gen_ai.completion", r.tells))
	}
	if r.tokens > 0 {
		attributes = append(attributes, attribute("gen_ai.usage.input_tokens", "1000"),
			attribute("gen_ai.usage.output_tokens", fmt.Sprint(r.tokens)))
	}

	return attributes
}

// sent draws what an app, its libraries and a gateway send of a few calls.
type sent struct {
	*rapid.T
	events []archive.Event
	spans  []wire.ScoreTarget // the spans among them
}

func (s *sent) one(label string, of ...string) string { return rapid.SampledFrom(of).Draw(s.T, label) }

// once draws true once in so many times.
func (s *sent) once(times int, label string) bool {
	return rapid.IntRange(1, times).Draw(s.T, label) == times
}

// drawSent draws few enough records that no set is full.
func drawSent(t *rapid.T) []archive.Event {
	s := &sent{T: t}
	if s.once(2, "first span") {
		s.span(traces[0], 1, "", "", report{}, attribute("user.id", s.one("user", "ann", "bob")),
			attribute("session.id", s.one("session", "s-1", "s-2")))
	}
	for n := range rapid.IntRange(1, 3).Draw(t, "calls") {
		s.call(n)
	}
	for range rapid.IntRange(0, 4).Draw(t, "more") {
		s.more()
	}

	return s.events
}

// add adds an event of a record, of a new one if that is "".
func (s *sent) add(kind wire.Kind, record, key string, body any) {
	n := len(s.events)
	if record == "" {
		record = ID(1000 + n)
	}
	at := Start.Add(seconds(n))
	s.events = append(s.events, Decode(s.T, wire.Event{
		ID:         ID(n),
		Kind:       kind,
		RequestID:  record,
		AcceptedAt: at,
		Sidecar:    sidecars[0],
		KeyID:      key,
		Body:       encoded(body),
	}, at))
}

// call draws up to four reports of the nth call, perhaps of the answer that another one had, too.
func (s *sent) call(n int) {
	call := report{
		id:    s.one("id", "", "chatcmpl-7", responseID, responseID, fmt.Sprint(responseID, n)),
		start: seconds(10 * rapid.IntRange(0, n).Draw(s.T, "start")),
		input: s.one("input", "Hi", "Bye"),
		tells: s.one("output", "Hello", "Good day"),
	}
	call.end = call.start + seconds(3)
	trace, parent := s.one("trace", traces...), s.one("parent", "", fmt.Sprintf("%016x", 1))
	for i := range rapid.IntRange(1, 4).Draw(s.T, "reports") {
		r := call
		r.start += seconds(rapid.IntRange(-2, 2).Draw(s.T, "skew"))
		r.end = max(r.start, r.end+seconds(rapid.IntRange(-2, 2).Draw(s.T, "skew of the end")))
		r.tokens = 7 * rapid.IntRange(0, 1).Draw(s.T, "tokens")
		r.user = s.one("user", "", "", "", "", "ann", "bob")
		r.failed = s.once(8, "failed")
		if s.once(3, "no input") {
			r.input = ""
		}
		if r.failed || s.once(3, "no output") {
			r.tells = ""
		}
		if s.once(6, "another choice") {
			r.tells = "Another answer"
		}

		key := s.one("key", "", "", "", "", "", "key-1")
		if s.once(3, "logged") {
			s.log(r, trace, key)
			continue
		}
		span := 16*(n+1) + i
		s.span(trace, span, parent, key, r, r.attributes()...)
		if i == 0 || s.once(2, "within") {
			parent = fmt.Sprintf("%016x", span)
		}
	}
}

// log draws a REST log, which may name a span, and may be sent again as another record.
func (s *sent) log(r report, trace, key string) {
	body := r.logged()
	switch s.one("names", "nothing", "a span", "a parent", "a span of PromptLayer") {
	case "a span":
		body["trace_id"], body["span_id"] = trace, fmt.Sprintf("%016x", 16+rapid.IntRange(0, 2).Draw(s.T, "of"))
	case "a parent":
		body["trace_id"], body["parent_span_id"] = trace, fmt.Sprintf("%016x", 1)
	case "a span of PromptLayer":
		n := 0xf00 + len(s.events)
		body["span_id"] = fmt.Sprintf("%016x", n)
		s.span(trace, n, fmt.Sprintf("%016x", 1), key, r, attribute("promptlayer.request_log.managed", "true"),
			attribute("promptlayer.request_log.span_id", fmt.Sprintf("%016X", n)))
	}
	for range rapid.IntRange(1, 2).Draw(s.T, "times") {
		s.add(wire.KindRequest, "", key, body)
	}
}

// span draws by which library of which service a span is.
func (s *sent) span(trace string, span int, parent, key string, r report, attributes ...any) {
	status := map[string]any{}
	if r.failed {
		status = map[string]any{"code": 2, "message": "too slow"}
	}
	id := fmt.Sprintf("%016x", span)
	service := attribute("service.name", s.one("service", "app", "app", "gateway"))
	s.spans = append(s.spans, wire.ScoreTarget{TraceID: trace, SpanID: id})
	s.add(wire.KindSpan, "", key, map[string]any{
		"resource": map[string]any{"attributes": []any{service}},
		"scope":    map[string]any{"name": s.one("scope", "openai", "langchain", "langfuse")},
		"span": map[string]any{
			"traceId": trace, "spanId": id, "parentSpanId": parent, "name": "chat", "status": status,
			"startTimeUnixNano": fmt.Sprint(Start.Add(r.start).UnixNano()),
			"endTimeUnixNano":   fmt.Sprint(Start.Add(r.end).UnixNano()),
			"attributes":        attributes,
		},
	})
}

// more draws what belongs to a span, a response or a record.
func (s *sent) more() {
	of := wire.ScoreTarget{TraceID: traces[0], SpanID: fmt.Sprintf("%016x", 16)} // perhaps of no span
	if len(s.spans) > 0 {
		of = rapid.SampledFrom(s.spans).Draw(s.T, "of")
	}
	trace := [16]byte(uuidOf(of.TraceID))
	var span [8]byte
	_, _ = hex.Decode(span[:], []byte(of.SpanID))

	at := uint64(Start.UnixNano())
	log := func(record, event string, attributes ...any) {
		s.add(wire.KindLog, record, "", map[string]any{"resource": map[string]any{}, "scope": map[string]any{},
			"log": map[string]any{
				"traceId": of.TraceID, "spanId": of.SpanID, "eventName": event,
				"timeUnixNano": fmt.Sprint(at), "attributes": attributes,
			}, "index": len(s.events)})
	}
	judged := []any{
		attribute("gen_ai.evaluation.name", s.one("judged", names...)),
		map[string]any{"key": "gen_ai.evaluation.score.value", "value": map[string]any{"doubleValue": 0.5}},
	}
	switch s.one("more", "messages", "judgement", "judgement of the response", "score", "attached", "closed") {
	case "messages":
		log(wire.LogRecordID(trace, span, at), "gen_ai.client.inference.operation.details",
			attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.prompt", s.one("text", "Hi", "Hello refund")))
	case "judgement":
		log(wire.LogRecordID(trace, span, at), "gen_ai.evaluation.result", judged...)
	case "judgement of the response":
		of = wire.ScoreTarget{}
		trace, span := otlp.ResponseIDs(responseID)
		log(wire.LogRecordID(trace, span, at), "gen_ai.evaluation.result",
			append(judged, attribute("gen_ai.response.id", responseID))...)
	case "score":
		s.add(wire.KindScore, of.RecordID(), "", map[string]any{
			"trace_id": of.TraceID, "span_id": of.SpanID, "name": s.one("name", names...), "score": 90,
		})
	case "closed": // its id has no time: it is of 1970
		s.add(wire.KindSpan, wire.CloseRecordID(trace), "", json.RawMessage(SpanBody(of.TraceID, 0, "closed")))
	case "attached":
		// No app knows the records of scores and log records, which a deletion may have kept out.
		reported := slices.DeleteFunc(slices.Clone(s.events), func(e archive.Event) bool {
			return e.Kind == wire.KindScore || e.Kind == wire.KindLog
		})
		record := rapid.SampledFrom(reported).Draw(s.T, "record").RequestID
		s.add(wire.KindMetadata, record, "", map[string]any{
			"request_id": record, "metadata": map[string]string{"user_id": s.one("user", "ann", "bob")},
		})
	}
}

// belonging checks that what belongs together is what the rule says, whatever came when: Fold brings
// all together at once.
func belonging(t *testing.T, open Open) {
	s, reopen := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		events := drawSent(t)
		early := events[:rapid.IntRange(1, len(events)).Draw(t, "early")]
		for _, batch := range Batches(t, early) {
			apply(t, s, account, batch...)
		}
		before := sameAsFold(t, s, account, early)
		if len(before) != len(byRequest(early)) {
			t.Fatalf("there are %d records of %d", len(before), len(byRequest(early)))
		}

		goes(t, s, account, early, before)
		if rapid.IntRange(0, 3).Draw(t, "reopen") == 0 {
			s = reopen()
		}
		left := sameAsFold(t, s, account, early)
		for _, batch := range Batches(t, events) {
			apply(t, s, account, batch...)
		}
		after := sameAsFold(t, s, account, events)
		for id := range after {
			_, was := before[id]
			if _, stayed := left[id]; was && !stayed {
				t.Fatalf("%s came back", id)
			}
		}
	})
}

// goes draws a deletion, or what retention takes, and checks that it takes no more than it should.
func goes(t *rapid.T, s archive.Store, account string, events []archive.Event, before map[string]*archive.State) {
	t.Helper()
	id := rapid.SampledFrom(events).Draw(t, "goes").RequestID
	which := rapid.SampledFrom([]string{"", "id", "user_id", "session_id", "retained"}).Draw(t, "by")
	d := wire.Deletion{Before: Start.Add(time.Hour)}
	spared := func(of *archive.State) bool { return !slices.Contains(callOf(before, id), of.RequestID) }
	switch which {
	case "":
		return
	case "retained":
		err := s.Change(t.Context(), account, []string{id}, true, func(g *archive.Group, _ archive.Loader) error {
			g.Remove(g.Records[0], false)
			return nil
		})
		must(t, err)
		for _, e := range events { // nothing keeps it out
			if e.RequestID == id {
				apply(t, s, account, e)
			}
		}
		return
	case "id":
		d.RequestID = id
	case "user_id":
		d.Key, d.Value = "user_id", "ann"
		spared = func(of *archive.State) bool { return !has(before, of, "user_id", "ann") }
	case "session_id":
		d.SessionID = "s-1"
		traced := func(id string) bool { return before[id].TraceID() != "" }
		spared = func(of *archive.State) bool {
			return !has(before, of, "session_id", "s-1") && !answered(before, of, traced) &&
				!slices.ContainsFunc(callOf(before, of.RequestID), traced)
		}
	}
	remove(t, s, account, d)

	for _, state := range before {
		_, _, err := s.Bodies(t.Context(), account, state.RequestID)
		isAttached := state.Target != nil || state.History[0].Kind == wire.KindLog
		switch gone := wire.IsCode(err, wire.CodeNotFound); {
		case err != nil && !gone:
			t.Fatal(err)
		case gone && spared(state) && !isAttached:
			t.Fatalf("%+v took %s, which is of another call", d, state.RequestID)
		case !gone && d.RequestID != "" && !spared(state):
			t.Fatalf("%+v left %s of the call", d, state.RequestID)
		}
	}
	for _, row := range search(t, s, account, wire.Search{PerPage: 100}).Rows {
		for _, m := range row.Metadata {
			if m.Key == d.Key && m.Value == d.Value || m.Key == "session_id" && m.Value == d.SessionID {
				t.Fatalf("%+v left %s", d, row.RequestID)
			}
		}
	}
}

// answered reports whether the answer of a record is that of a traced one, too. A trace goes in several
// steps: without those that went, a record may be a report of the calls that are left, and goes with them.
func answered(states map[string]*archive.State, of *archive.State, traced func(id string) bool) bool {
	id := func(s *archive.State) string {
		if s.Request == nil {
			return ""
		}
		return s.Request.Value.ResponseID
	}
	for other, s := range states {
		if id(of) != "" && id(s) == id(of) && traced(other) {
			return true
		}
	}
	return false
}

// callOf returns the ids of the reports of a record's call.
func callOf(states map[string]*archive.State, id string) []string {
	s := states[id]
	if s.Same == nil || s.Same.Step || s.Target != nil || s.History[0].Kind == wire.KindLog {
		return []string{id}
	}
	if head := states[s.Same.Head]; head != nil {
		s = head
	}

	return append([]string{s.RequestID}, s.Same.Others...)
}

// has reports whether a report of a record's call has a value.
func has(states map[string]*archive.State, s *archive.State, key, value string) bool {
	return slices.ContainsFunc(callOf(states, s.RequestID), func(id string) bool {
		whole := states[id].Whole()
		return whole[key] == value
	})
}

// settle does what an account's store has left to do, as a server does soon after.
func settle(t rapid.TB, s archive.Store, account string) {
	t.Helper()
	must(t, archive.DoLeft(context.Background(), s, account))
}

// sameAsFold compares all that a store shows of an account with what Fold makes of those records that
// the store has. It returns their states.
func sameAsFold(
	t rapid.TB, s archive.Store, account string, events []archive.Event,
) (states map[string]*archive.State) {
	t.Helper()
	settle(t, s, account)
	gone, kept := make(map[string]bool), make(map[string]json.RawMessage)
	for id := range byRequest(events) {
		_, bodies, err := s.Bodies(context.Background(), account, id)
		gone[id] = wire.IsCode(err, wire.CodeNotFound)
		if err != nil && !gone[id] {
			t.Fatal(err)
		}
		maps.Copy(kept, bodies)
	}
	events = slices.DeleteFunc(slices.Clone(events), func(e archive.Event) bool { return gone[e.RequestID] })
	states, bodies := Fold(events)

	for _, state := range states {
		for _, h := range state.History {
			if h.Hash != "" && !sameJSON(kept[h.ID], bodies[h.ID]) {
				t.Fatalf("the body of %s of %s is %s", h.ID, state.RequestID, kept[h.ID])
			}
		}
	}

	rows := Rows(states)
	page := search(t, s, account, wire.Search{PerPage: 100})
	sameRows(t, rows, page.Rows)
	sameViews(t, s, account, events)
	sameOrphans(t, states, s, account)
	sameRollups(t, states, s, account)
	sameSpans(t, states, s, account)

	var want archive.Counts
	for _, state := range states {
		want.Change(archive.Footprint{}, state.Footprint())
	}
	if counts, err := s.Counts(context.Background(), account); err != nil || counts != want || page.Total != len(rows) {
		t.Fatalf("the counts are %+v, %v, want %+v; %d are listed of %d", counts, err, want, page.Total, len(rows))
	}
	subject := func(row *wire.Row) *query.Subject { return Subject(states, bodies, row) }
	for _, word := range []string{"Hi", "Hello", "answer", "refund"} {
		f := Condition("text", "", "matches", word)
		q := compiled(t, wire.Search{FilterGroup: &f, PerPage: 100})
		found := search(t, s, account, wire.Search{FilterGroup: &f, PerPage: 100}).Rows
		sameRows(t, Select(q, rows, subject).Rows, found)
	}

	return states
}

// patient is a store to which a batch is sent again as long as it says so, as sidecars do.
type patient struct{ archive.Store }

func (p patient) Apply(ctx context.Context, account string, events []archive.Event) ([]wire.Result, error) {
	for {
		results, err := p.Store.Apply(ctx, account, events)
		if !wire.IsCode(err, wire.CodeUnavailable) {
			return results, err
		}
	}
}

// RunTogether checks that writers at all servers of a database lose nothing and take nothing twice.
// Records that arrive at the same time find each other.
func RunTogether(t *testing.T, servers ...archive.Store) {
	const writers = 4
	drawn := rapid.Custom(func(t *rapid.T) [][]archive.Event { return [][]archive.Event{drawSent(t)} })
	for seed := range 10 {
		events := drawn.Example(seed)[0]
		account := wire.NewID()

		// All writers send the same events, each beginning elsewhere.
		var wait sync.WaitGroup
		var accepted atomic.Int64
		for w := range writers {
			wait.Go(func() {
				for i := range events {
					from := (i + w*5) % len(events)
					batch := events[from:min(from+1+w%3, len(events))]
					for _, r := range apply(t, patient{servers[w%len(servers)]}, account, batch...) {
						if r.Code == wire.ResultAccepted {
							accepted.Add(1)
						}
					}
				}
			})
		}
		wait.Wait()

		if n := accepted.Load(); int(n) != len(events) {
			t.Errorf("%d events were accepted, of %d that each of %d writers sent", n, len(events), writers)
		}
		for _, s := range servers {
			sameAsFold(t, s, account, events)
		}
	}
}

func together(t *testing.T, open Open) {
	s, _ := open(t)
	RunTogether(t, s)
}
