package archive

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// View returns the record as it is shown; of long values it shows what Restore has put
// there. body is that of the event s.Request.ID or, without a request, of s.Span.ID, and the
// result aliases it. An orphan shows its enrichments and no request. View ends early with
// ctx, which the caller must then look at.
func (s *State) View(ctx context.Context, body json.RawMessage) wire.Record {
	rec := wire.Record{
		Success:   true,
		ID:        s.RequestID,
		RequestID: s.RequestID,
		Request:   body,
		Tags:      []string{},
		Metadata:  s.shownMetadata(),
		Scores:    s.scores(),
		GroupIDs:  s.groupIDs(),
		Events:    s.events(),

		EventsTruncated: len(s.Unlisted) > 0,
	}
	if s.Request != nil && s.Request.Value.Traced {
		// Whatever shows, copies or runs a request again knows only logged ones.
		rec.Span, body = body, tracedBody(body)
		rec.Request = body
	}
	if link := s.TemplateLink(); link != nil {
		rec.Prompt = viewLink(link, s.Request, body)
	}
	if s.Span != nil {
		rec.SpanName, rec.SpanKind = s.Span.Value.Name, s.Span.Value.Kind
	}
	if span := s.span(); span != nil {
		rec.SpanID, rec.ParentSpanID = span.SpanID, span.ParentID
	}
	switch link := s.Linked; {
	case link == nil:
	case s.Span != nil:
		rec.RequestLogID = link.RecordID
	default:
		rec.SpanRecordID, rec.SpanName = link.RecordID, link.Name
	}
	rec.TraceID = s.TraceID()
	rec.SessionID, rec.UserID, rec.Environment = s.SessionID(), s.UserID(), s.Environment()
	rec.FirstTokenMS = s.firstToken()
	if s.Request == nil && s.Span != nil {
		s.viewSpan(&rec, body)
	}
	if s.Request == nil {
		return rec
	}

	r := s.shown()
	if s.Same != nil {
		rec.SameCall, rec.OtherReports = s.Same.Head, s.Same.Others
	}
	rec.ListTime, rec.AcceptedAt = s.ListTime(), s.Request.At
	rec.FunctionName, rec.Provider, rec.Model, rec.Status = r.FunctionName, r.Provider, r.Model, r.Status
	rec.InputTokens, rec.OutputTokens, rec.Tokens = r.Tokens.Input, r.Tokens.Output, r.totalTokens()
	rec.CachedTokens, rec.CacheWrites, rec.ReasoningTokens = r.Tokens.Cached, r.Tokens.CacheWrite, r.Tokens.Reasoning
	rec.Price, rec.TablePrice = dollars(r.Price), dollars(r.TablePrice)
	rec.FinishReason, rec.ErrorType = r.FinishReason, r.ErrorType
	// A copy that is never nil, for people and for what may change the record.
	rec.ToolNames = append([]string{}, r.Tools...)
	rec.Readable = !r.Unreadable
	rec.StartTime, rec.EndTime = r.Start, r.End
	rec.Tags = append(rec.Tags, r.Tags...)
	rec.LatencyMS = r.latencyMS()

	// The body is read again, because today's version may understand more of it than the
	// one that stored the record.
	if object, err := wire.ParseObject(body); err == nil {
		call := calls.ReadObject(ctx, object)
		rec.Blueprint = calls.Blueprint(&call, r.Provider, object)
		rec.Output = calls.Messages(call.Output)
		rec.Readable = call.Readable
		rec.InputExcerpt, rec.OutputExcerpt = call.Excerpts()
		if call.Failure != nil {
			rec.ErrorMessage = call.Failure.Message
		}
	}

	return rec
}

// Row returns the record's row in lists, its metadata as StoredValue. ok is false for a
// record that no list shows.
func (s *State) Row() (row wire.Row, ok bool) {
	if !s.Listed() {
		return wire.Row{}, false
	}

	r := s.shown()
	row = wire.Row{
		ID:              s.RequestID,
		RequestID:       s.RequestID,
		ListTime:        s.ListTime(),
		AcceptedAt:      s.Request.At,
		FunctionName:    r.FunctionName,
		Engine:          r.Model,
		Provider:        r.Provider,
		Status:          r.Status,
		InputTokens:     r.Tokens.Input,
		OutputTokens:    r.Tokens.Output,
		CachedTokens:    r.Tokens.Cached,
		CacheWrites:     r.Tokens.CacheWrite,
		ReasoningTokens: r.Tokens.Reasoning,
		Price:           dollars(r.Price),
		FinishReason:    r.FinishReason,
		ErrorType:       r.ErrorType,
		ToolNames:       slices.Clone(r.Tools),
		Turns:           r.Turns,
		OutputShape:     r.OutputShape,
		Readable:        !r.Unreadable,
		InputExcerpt:    r.InputExcerpt,
		OutputExcerpt:   r.OutputExcerpt,
		StartTime:       r.Start,
		EndTime:         r.End,
		Tags:            append([]string{}, r.Tags...),
		Metadata:        []wire.MetadataRow{},
		Scores:          s.rowScores(),
	}

	// No groups are nil, as they are when the row is read back.
	if ids := s.groupIDs(); len(ids) > 0 {
		row.GroupIDs = ids
	}
	metadata := s.Whole()
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		row.Metadata = append(row.Metadata, wire.MetadataRow{Key: key, Value: metadata[key]})
	}
	if d := r.latency(); d != nil {
		seconds := d.Seconds()
		row.Latency = &seconds
	}
	row.TraceID, row.FirstTokenMS = s.TraceID(), s.firstToken()
	if i := s.winner(); i >= 0 {
		row.Sidecar = s.History[i].Sidecar
	}
	row.TextHash = s.textHash()
	if link := s.TemplateLink(); link != nil {
		row.PromptName = &link.Value.Name
		row.PromptVersion = rowcode.Optional(int64(link.Value.Version))
		row.PromptLabel = rowcode.Optional(link.Value.Label)
	}

	return row, true
}

func (s *State) textHash() int {
	if s.Joint != nil {
		return TextHash(s.Joint.Hash)
	}
	if i := s.winner(); i >= 0 {
		return TextHash(s.History[i].Hash)
	}
	return 0
}

// TextHash returns a row's TextHash, by the hash of the body that the row is of.
func TextHash(body string) int {
	n, _ := strconv.ParseInt(body[:min(len(body), textHashDigits)], 16, 64)
	return int(n)
}

// textHashDigits is few, because each row has them: 28 bits.
const textHashDigits = 7

// viewSpan fills in what a record shows of a span that is not a call.
func (s *State) viewSpan(rec *wire.Record, body json.RawMessage) {
	rec.Request, rec.Span = nil, body
	rec.ToolNames, rec.Readable = []string{}, true
	rec.ListTime, rec.AcceptedAt = s.began(s.Span.Stamp, s.Span.Value.Start), s.Span.At
	times := Request{Start: s.Span.Value.Start, End: s.Span.Value.End}
	rec.StartTime, rec.EndTime, rec.LatencyMS = times.Start, times.End, times.latencyMS()

	if object, err := wire.ParseObject(body); err == nil {
		span := otel.ReadObject(object)
		rec.Status, rec.ErrorType, rec.ErrorMessage = span.Status, span.ErrorType, span.ErrorMessage
		rec.Tags = append(rec.Tags, span.Tags...)
	}
}

// TraceSpan returns the record's span as its trace shows it; ok is false if it has none.
func (s *State) TraceSpan() (span wire.TraceSpan, ok bool) {
	v := s.span()
	if v == nil || s.ClosesTrace() || s.hasLogs() && s.IsStep() {
		return span, false
	}

	span = wire.TraceSpan{
		ID:        s.RequestID,
		Name:      v.Name,
		SpanID:    v.SpanID,
		Kind:      v.Kind,
		Status:    v.Status,
		StartTime: v.Start,
		EndTime:   v.End,
	}
	if v.ParentID != "" {
		span.ParentID = &v.ParentID
	}
	switch {
	case s.Request == nil && s.Linked != nil:
		span.RequestLogID = &s.Linked.RecordID
	case s.Request == nil || s.Same != nil && s.Same.Step:
	case s.IsStep():
		// Its tokens count where the call does.
		span.SameCall, span.RequestLogID, span.Status = s.Same.Head, &s.Same.Head, s.Request.Value.Status
		return span, true
	default:
		r := s.shown()
		span.RequestLogID = &s.RequestID
		span.Status, span.Price = r.Status, dollars(r.Price)
		span.InputTokens, span.OutputTokens = r.Tokens.Input, r.Tokens.Output
	}
	span.Scores = s.scores()

	return span, true
}

// tracedBody returns the body of the request that logs the same call as a span.
func tracedBody(body json.RawMessage) json.RawMessage {
	object, err := wire.ParseObject(body)
	if err != nil {
		return body
	}
	span := otel.ReadObject(object)

	return span.Request()
}

// dollars returns a price as a number.
func dollars(price *calls.Dollars) *float64 {
	if price == nil {
		return nil
	}
	d := price.Float()

	return &d
}

// groupIDs returns the groups of group events and that of the request.
func (s *State) groupIDs() []string {
	// A copy, because it is sorted below, and never nil: people get an empty list.
	ids := append([]string{}, s.GroupIDs...)
	if s.Request != nil && s.Request.Value.GroupID != "" {
		ids = append(ids, s.Request.Value.GroupID)
		slices.Sort(ids)
	}

	return slices.Compact(ids)
}

// TemplateLink returns the later of the prompt events' link and the request's own.
func (s *State) TemplateLink() *Stamped[Link] {
	var own *Stamped[Link]
	if s.Request != nil && s.Request.Value.Prompt != nil {
		own = &Stamped[Link]{s.Request.Stamp, *s.Request.Value.Prompt}
	}

	link := newest(s.Prompt, own)
	if link == nil && s.Request != nil && s.shown().Prompt != nil {
		// It is that of another report.
		link = &Stamped[Link]{Value: *s.shown().Prompt}
	}

	return link
}

// events returns the history. A request with other content than the record's
// is in conflict.
func (s *State) events() []wire.RecordEvent {
	hash := ""
	if i := s.winner(); i >= 0 {
		hash = s.History[i].Hash
	}

	// By event; a request may have set several.
	scores := make(map[string]*wire.Score, len(s.Scores))
	for slot, score := range s.Scores {
		scores[score.ID] = &wire.Score{ScoreSlot: slot, ScoreValue: score.Value.ScoreValue}
	}

	events := make([]wire.RecordEvent, len(s.History))
	for i, h := range s.History {
		events[i] = wire.RecordEvent{
			ID:         h.ID,
			Kind:       h.Kind,
			AcceptedAt: h.AcceptedAt,
			ArrivedAt:  h.ArrivedAt,
			Sidecar:    h.Sidecar,
			Conflict:   h.Kind == wire.KindRequest && h.Hash != hash,
		}
		if h.Kind == wire.KindScore {
			events[i].Score = scores[h.ID]
		}
	}

	return events
}

// winner returns the index of the winning request in the history, -1 for an orphan.
func (s *State) winner() int {
	return slices.IndexFunc(s.History, func(h Entry) bool { return s.Request != nil && h.ID == s.Request.ID })
}

// viewLink returns a link as it is shown. The variables of a request's own link are
// in its body.
func viewLink(link *Stamped[Link], request *Stamped[Request], body json.RawMessage) *wire.RecordPrompt {
	p := &wire.RecordPrompt{
		Name:           link.Value.Name,
		Version:        rowcode.Optional(link.Value.Version),
		Label:          rowcode.Optional(link.Value.Label),
		InputVariables: link.Value.InputVariables,
	}
	if request == nil || link.ID != request.ID {
		return p
	}
	if object, err := wire.ParseObject(body); err == nil {
		// A faulty value was accepted with the event, but is not shown as variables.
		if raw, ok := object.Get("prompt_input_variables"); ok && raw[0] == '{' {
			p.InputVariables = raw
		}
	}

	return p
}

// A request that starts later than this after its first arrival has a wrong clock.
const startAheadMax = 5 * time.Minute

// ListTime returns where the record belongs in lists and charts: at the start of its
// request. That is at most startAheadMax after the request first arrived. Without a
// sensible start it is the order time. The state must have its request.
//
// It depends on the standing request alone, so it is the same whatever came when.
func (s *State) ListTime() time.Time {
	return s.began(s.Request.Stamp, s.Request.Value.Start)
}

// began returns the time of an event that contains a start time.
func (s *State) began(stamp Stamp, start *time.Time) time.Time {
	if start == nil || start.Before(wire.CallsBegan) {
		return stamp.At
	}

	// A redelivered event changes nothing, so the history has its first arrival.
	began := start.UTC().Round(0)
	i := slices.IndexFunc(s.History, func(h Entry) bool { return h.ID == stamp.ID })
	if i < 0 {
		return began
	}
	if latest := s.History[i].ArrivedAt.Add(startAheadMax); began.After(latest) {
		return latest
	}

	return began
}
