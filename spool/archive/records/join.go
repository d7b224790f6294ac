package records

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"promptspool/api/calls/otel"
	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive"
)

// Some libraries send the messages of a traced call, and judgements of it, as log records
// beside its span. These have their own record (wire.LogRecordID), because their
// senders do not know the span's start, and wait there for their span.
//
// Whichever comes last, the span or its log records, joins them: the span's record gets
// an event with the span and all its log records so far, which takes precedence over the
// span alone. Its id derives from its content, so that joining again changes nothing. The
// log records are then marked, and no longer wait.
//
// Scores that name a span wait beside its log records, in a record that follows from the span alone.
// Each gets into the span's record as it is, with its id and stamp, and into the records of calls that
// were logged with the span's ids. While there are only such calls, the scores also wait for the span.

// joinBytesMax bounds what is joined at a time: with each further log record the span is
// written again. Evaluations have as much again, so that messages keep no score out.
const joinBytesMax = 4 << 20 // of the bodies

// joinTraceMax is among how many records of its trace the span of a log record is looked for.
const joinTraceMax = 100_000

// joinTracesStep is how many traces are looked through at a time. All of them may be large, and a
// Store may bound the time that it takes.
const joinTracesStep = 20

// joinRecordsMax bounds the records with log records that a span is joined with: one for each day on
// which there were some.
const joinRecordsMax = 32

// spanKey names a span.
type spanKey struct {
	trace archive.UUID
	span  [8]byte
}

// keyOf reads the ids of a span; ok is false if one is malformed.
func keyOf(traceID, spanID string) (key spanKey, ok bool) {
	key.trace, ok = archive.ParseTrace(traceID)
	span, err := hex.DecodeString(spanID)
	if !ok || err != nil || len(span) != len(key.span) {
		return key, false
	}
	key.span = [8]byte(span)

	return key, true
}

// logLink returns the key by which a Store finds the log records of a span.
func (key spanKey) logLink() archive.UUID {
	id, _ := archive.ParseUUID(wire.LogRecordID(key.trace, key.span, 0))
	return archive.LogLink(id)
}

// keyOfResponse returns the span that stands for the call with a response id.
func keyOfResponse(responseID string) spanKey {
	trace, span := otlp.ResponseIDs(responseID)
	return spanKey{trace, span}
}

// joinings are the spans whose log records may have to be joined, with the ids of their records, ""
// until they are found.
type joinings map[spanKey]string

// joinLogs joins the spans and log records of a batch that was just applied, with each
// other and with earlier ones. Of a batch that is sent again after a crash it joins the
// same. Two batches at the same time are both durable before either looks, and each looks at
// the log records of all days of a span, so that one of them joins all. results are those of
// the events; what was refused is not joined.
func (svc *Service) joinLogs(ctx context.Context, account string, events []archive.Event, results []wire.Result) error {
	found := joinings{}
	for i := range events {
		if e := &events[i]; e.Log != nil && stored(results[i]) {
			svc.quiet.Delete(account)
			if key, ok := keyOf(e.Log.TraceID, e.Log.SpanID); ok {
				found[key] = ""
			}
			if e.Log.ResponseID == "" {
				continue
			}
			call, err := svc.judged(ctx, account, e)
			if err != nil {
				return err
			}
			found[keyOfResponse(e.Log.ResponseID)] = call
		}
	}
	if err := svc.addSpans(ctx, account, events, results, found); err != nil {
		return err
	}
	if err := svc.findSpans(ctx, account, found); err != nil {
		return err
	}

	// A few log records may belong to large spans: not all of them are held together.
	var derived []archive.Event
	size := 0
	for key, spanRecord := range found {
		if spanRecord == "" {
			continue // its log records wait
		}
		more, err := svc.join(ctx, account, key, spanRecord)
		if err := svc.unjoined(account, spanRecord, err); err != nil {
			return err
		}

		derived = append(derived, more...)
		for i := range more {
			size += len(more[i].Body)
		}
		if size < joinBytesMax {
			continue
		}
		if err := svc.applyJoined(ctx, account, derived); err != nil {
			return err
		}
		derived, size = nil, 0
	}

	return svc.applyJoined(ctx, account, derived)
}

// stored reports whether the event of a result is in its record.
func stored(r wire.Result) bool {
	return r.Code == wire.ResultAccepted || r.Code == wire.ResultDuplicate
}

// applyJoined applies what join returned.
func (svc *Service) applyJoined(ctx context.Context, account string, derived []archive.Event) error {
	if len(derived) == 0 {
		return nil
	}

	// A record that is full stays as it is.
	_, err := svc.config.Store.Apply(ctx, account, derived)

	return svc.unjoined(account, derived[0].RequestID, err)
}

// unjoined logs that something could not be joined, ever. The events of its batch are
// stored, and other batches must not fail with it. Any other error it returns, because
// sending the batch again may help.
func (svc *Service) unjoined(account, id string, err error) error {
	if !wire.IsCode(err, wire.CodeInternal) {
		return err
	}
	svc.config.Logger.Error("log records stay apart from their span", "project", account, "id", id, "error", err)

	return nil
}

// addSpans adds the spans of a batch that have log records.
func (svc *Service) addSpans(
	ctx context.Context, account string, events []archive.Event, results []wire.Result, found joinings,
) error {
	_, quiet := svc.quiet.Load(account)
	mayJoin := func(e archive.Event) bool { return e.Span != nil || e.Request != nil && (!quiet || namesSpan(&e)) }
	if !slices.ContainsFunc(events, mayJoin) {
		return nil
	}
	has, err := svc.config.Store.Counts(ctx, account)
	if err != nil {
		return err
	}
	waiting := has.Orphans.Requests+has.Orphans.Logs > 0
	if !waiting {
		svc.quiet.Store(account, true)
	}

	spans := map[archive.UUID]spanKey{} // by the keys of their log records
	records := joinings{}
	for i := range events {
		e := &events[i]
		if waiting && e.Request != nil && e.Request.ResponseID != "" && stored(results[i]) {
			key := keyOfResponse(e.Request.ResponseID)
			spans[key.logLink()], records[key] = key, e.RequestID
		}
		// It may be that a span has had the scores of both until now.
		if e.Span == nil && namesSpan(e) && stored(results[i]) {
			if key, ok := keyOf(e.Request.TraceID, e.Request.SpanID); ok {
				spans[key.logLink()] = key
			}
		}
		if e.Span == nil || e.Log != nil || !stored(results[i]) {
			continue
		}
		key, ok := keyOf(e.Span.TraceID, e.Span.SpanID)
		if !ok {
			continue
		}

		// Mostly no log records wait. But a call without its messages may have some
		// that were joined to what was sent of it before.
		lacks := results[i].Follows && e.Request != nil && (e.Request.Turns == 0 || e.Request.OutputShape == "")
		_, came := found[key]
		if !lacks && !waiting && !came {
			continue
		}
		spans[key.logLink()], records[key] = key, e.RequestID
	}
	if len(spans) == 0 {
		return nil
	}

	// All are asked for in one query, because nearly none has log records.
	linked, err := svc.config.Store.Linked(ctx, account, slices.Collect(maps.Keys(spans)), 1)
	for link := range linked {
		key := spans[link]
		found[key] = cmp.Or(found[key], records[key])
	}

	return err
}

// namesSpan reports whether the event is a call that was logged with the ids of a span.
func namesSpan(e *archive.Event) bool {
	return e.Request != nil && e.Request.TraceID != "" && e.Request.SpanID != ""
}

// findSpans looks for the spans that did not come with their log records.
func (svc *Service) findSpans(ctx context.Context, account string, found joinings) error {
	// The ids of a span's record and of its log records differ from those of others in
	// the part after their time, which is not known here.
	wanted := map[archive.IDEnd]spanKey{}
	asked := map[archive.UUID]bool{}
	for key, spanRecord := range found {
		id, ok := archive.ParseUUID(wire.SpanRecordID(key.trace, key.span, 0))
		if spanRecord != "" || !ok {
			continue
		}
		wanted[id.End()] = key
		asked[key.trace] = true
	}
	if len(wanted) == 0 {
		return nil
	}

	traces, ends := slices.Collect(maps.Keys(asked)), slices.Collect(maps.Keys(wanted))
	for some := range slices.Chunk(traces, joinTracesStep) {
		ids, err := svc.config.Store.SpanRecords(ctx, account, some, ends, joinTraceMax)
		if err != nil {
			return err
		}
		for _, id := range ids {
			found[wanted[id.End()]] = id.String()
		}
	}

	// A call may have been logged with the ids of a span that is never sent.
	var links []archive.UUID
	for _, key := range wanted {
		if found[key] == "" {
			links = append(links, archive.CallLink(key.span))
		}
	}
	linked, err := svc.config.Store.Linked(ctx, account, links, 1)
	if err != nil {
		return err
	}
	for _, key := range wanted {
		if found[key] != "" || linked[archive.CallLink(key.span)] == nil {
			continue
		}
		calls, err := svc.callsOf(ctx, account, key)
		if err != nil {
			return err
		}
		if len(calls) > 0 {
			found[key] = calls[0]
		}
	}

	return nil
}

// callsOf returns the records of the calls that were logged with the ids of a span.
func (svc *Service) callsOf(ctx context.Context, account string, key spanKey) (ids []string, err error) {
	link := archive.CallLink(key.span)
	linked, err := svc.config.Store.Linked(ctx, account, []archive.UUID{link}, joinRecordsMax)
	for _, id := range linked[link] {
		// Another trace may have a span with this id.
		state, _, err := svc.config.Store.Bodies(ctx, account, id.String())
		if trace, ok := state.Trace(); ok && trace == key.trace {
			ids = append(ids, id.String())
		}
		if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
			return nil, err
		}
	}

	return ids, err
}

// join returns the events that join a span with its log records: none if it has them.
func (svc *Service) join(
	ctx context.Context, account string, key spanKey, spanRecord string,
) (derived []archive.Event, err error) {
	state, body, err := svc.config.Store.Record(ctx, account, spanRecord)
	// A request that was logged is shown in the span's place. The span is still joined:
	// whichever comes first, its log records may hold scores.
	if err == nil && state.Span != nil && state.Request != nil && !state.Request.Value.Traced {
		var bodies map[string]json.RawMessage
		state, bodies, err = svc.config.Store.Bodies(ctx, account, spanRecord)
		if err == nil && state.Span != nil {
			body = bodies[state.Span.ID]
		}
	}
	if wire.IsCode(err, wire.CodeNotFound) {
		return nil, nil // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	if state.Request != nil && key == keyOfResponse(state.Request.Value.ResponseID) {
		return svc.judge(ctx, account, key, spanRecord)
	}
	logs, scores, marks, err := svc.waitingLogs(ctx, account, key, spanRecord)
	if err != nil || len(logs)+len(scores) == 0 {
		return nil, err
	}
	if state.Span == nil {
		spanRecord = "" // it is a call, and may have been logged with the span's ids
	}
	given, err := svc.score(ctx, account, key, spanRecord, scores)
	if err != nil || state.Span == nil {
		return given, err // the span may still come
	}
	derived = append(given, marks...)
	if len(logs) == 0 {
		return derived, nil
	}

	joined := otel.Join(body, logs)
	// The others keep waiting: a full record would refuse the scores of its call.
	if state.Bytes()+len(joined) > archive.RecordBytesMax/2 {
		return given, nil
	}
	if bytes.Equal(joined, body) {
		return derived, nil
	}

	// The stamp is right after that of the span, so that one sent later still stands. Of two
	// batches that join at the same time, that with more log records stands.
	from := state.History[slices.IndexFunc(state.History, func(h archive.Entry) bool { return h.ID == state.Span.ID })]
	more := max(1, otel.Joined(joined)-otel.Joined(body))
	from.At = from.At.Add(time.Duration(more))
	span, err := svc.derive(ctx, account, &from, wire.KindSpan, spanRecord, joined)
	if err != nil {
		return nil, err
	}
	derived = append(derived, span)

	// A judgement that names the response may have found the log record before its span came.
	if span.Request != nil && span.Request.ResponseID != "" {
		more, err := svc.judge(ctx, account, keyOfResponse(span.Request.ResponseID), spanRecord)
		return append(derived, more...), err
	}

	return derived, nil
}

// score returns the events that give a span's record, unless that is "", and the calls that were
// logged with its ids the scores that name it.
func (svc *Service) score(
	ctx context.Context, account string, key spanKey, spanRecord string, scores archive.Scores,
) (given []archive.Event, err error) {
	if len(scores) == 0 {
		return nil, nil
	}
	ids, err := svc.callsOf(ctx, account, key)
	if err != nil {
		return nil, err
	}
	if spanRecord != "" {
		ids = append(ids, spanRecord)
	}

	for _, id := range ids {
		for slot, score := range scores {
			members := map[string]any{"request_id": id}
			score.Value.Of(slot).Body(members)
			body, _ := jsonscan.Marshal(members)
			from := archive.Entry{Stamp: score.Stamp, Sidecar: svc.config.Name}
			e, err := svc.derive(ctx, account, &from, wire.KindScore, id, body)
			if err != nil {
				return nil, err
			}
			given = append(given, e)
		}
	}

	return given, nil
}

// judged returns a record of the call that an evaluation judges by its response id, "" if there is
// none. Evaluations come within weeks.
func (svc *Service) judged(ctx context.Context, account string, e *archive.Event) (recordID string, err error) {
	keys := archive.CallKeys(e.Log.ResponseID, e.OrderTime)
	err = svc.config.Store.Change(ctx, account, []string{e.RequestID}, false,
		func(g *archive.Group, reader archive.Reader) error {
			recordID = ""
			of := g.Records[0].Account
			err := reader.CallSets(of, keys)
			for _, key := range keys {
				if set := g.Accounts[of].Calls[key]; err == nil && recordID == "" && len(set.Records) > 0 {
					recordID = set.Records[0].String()
				}
			}
			return err
		})

	return recordID, err
}

// judge returns the events that give a call the evaluations that name its response id.
func (svc *Service) judge(
	ctx context.Context, account string, key spanKey, recordID string,
) (derived []archive.Event, err error) {
	logs, _, derived, err := svc.waitingLogs(ctx, account, key, recordID)
	if err != nil {
		return nil, err
	}

	from := archive.Entry{Stamp: archive.Stamp{At: svc.config.Now().UTC()}, Sidecar: svc.config.Name}
	add := func(kind wire.Kind, body map[string]any) {
		body["request_id"] = recordID
		text, _ := jsonscan.Marshal(body)
		var e archive.Event
		if err == nil {
			e, err = svc.derive(ctx, account, &from, kind, recordID, text)
			derived = append(derived, e)
		}
	}
	for _, log := range logs {
		scores, metadata := otel.Evaluation(log)
		for _, score := range scores {
			members := map[string]any{}
			score.Body(members)
			add(wire.KindScore, members)
		}
		if len(metadata) > 0 {
			add(wire.KindMetadata, map[string]any{"metadata": metadata})
		}
	}

	return derived, err
}

// waitingLogs returns the bodies of a span's log records, its scores, and the events that mark both.
func (svc *Service) waitingLogs(
	ctx context.Context, account string, key spanKey, spanRecord string,
) (logs []json.RawMessage, scores archive.Scores, marks []archive.Event, err error) {
	// All of them: another batch may join log records of another day right now, to the same span.
	linked, err := svc.config.Store.Linked(ctx, account, []archive.UUID{key.logLink()}, joinRecordsMax)
	if err != nil {
		return nil, nil, nil, err
	}

	sizes := map[bool]int{} // of evaluations, and of the others
	for _, logRecord := range linked[key.logLink()] {
		id := logRecord.String()
		state, bodies, err := svc.config.Store.Bodies(ctx, account, id)
		if wire.IsCode(err, wire.CodeNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, nil, err
		}

		if state.Target != nil {
			state.Restore(bodies) // the reasons
			scores = state.Scores
		}
		for _, h := range state.History {
			body := bodies[h.ID]
			object, err := wire.ParseObject(body)
			if err != nil || !object.Has("log") {
				continue
			}
			evaluates := otel.Evaluates(body)
			if sizes[evaluates] += len(body); sizes[evaluates] <= joinBytesMax {
				logs = append(logs, body)
			}
		}
		if state.Joined {
			continue
		}

		body := json.RawMessage(`{"joined":"` + spanRecord + `"}`)
		mark, err := svc.derive(ctx, account, &state.History[0], wire.KindLog, id, body)
		if err != nil {
			return nil, nil, nil, err
		}
		marks = append(marks, mark)
	}

	return logs, scores, marks, nil
}

// derive returns an event that the archive makes of another one, with its order time and
// its sidecar.
func (svc *Service) derive(
	ctx context.Context, account string, from *archive.Entry, kind wire.Kind, recordID string, body json.RawMessage,
) (archive.Event, error) {
	id, err := wire.SpanEventID(recordID, body)
	if kind == wire.KindScore && from.ID != "" {
		id = from.ID // the same score, in another record
	}
	if err != nil {
		return archive.Event{}, wire.Errorf(wire.CodeInternal, "%w", err)
	}
	e, err := archive.Decode(wire.Event{
		ID:         id,
		RequestID:  recordID,
		Kind:       kind,
		AcceptedAt: from.At,
		Sidecar:    from.Sidecar,
		Body:       body,
	}, svc.config.Now())
	// A log record with as many levels as a body may have gets one more in its span.
	if err != nil {
		return archive.Event{}, wire.Errorf(wire.CodeInternal, "%w", err)
	}

	e.OrderTime = from.At
	if err := svc.resolve(ctx, account, &e); err != nil {
		return archive.Event{}, err
	}
	if e.Request != nil {
		e.Request.SetPrice(svc.config.Prices, e.OrderTime)
	}

	return e, nil
}
