//go:build linux

package harness

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/wire"
)

const (
	spansMax    = 4 // spans of a batch
	exportsMax  = 3 // how often a batch is sent
	spanService = "oracle"
)

// The forms of an export, as content types.
const (
	OTLPJSON   = "application/json"
	OTLPBinary = "application/x-protobuf"
)

// SpanSent is what identifies a span that the oracle sends.
type SpanSent struct {
	trace [16]byte
	span  [8]byte
	start uint64 // nanoseconds since 1970
}

// NewSpan returns the next span of a trace.
func NewSpan(trace [16]byte) *SpanSent {
	s := &SpanSent{trace: trace, start: uint64(time.Now().UnixNano())}
	for i := range s.span {
		s.span[i] = byte(1 + rand.IntN(255))
	}

	return s
}

// RecordID returns the id of the span's record.
func (s *SpanSent) RecordID() string { return wire.SpanRecordID(s.trace, s.span, s.start) }

// json returns the span in OTLP/JSON, with a text made from its id as contentOf does.
func (s *SpanSent) json(average int) []byte {
	return fmt.Appendf(nil, `{"traceId":"%x","spanId":"%x","name":"step <&>\"é\\","kind":3,`+
		`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`+
		`{"key":"noise","value":{"stringValue":"%s"}},{"key":"odd","value":{"arrayValue":{"values":[`+
		`{"intValue":"-1"},{"doubleValue":2.5},{"boolValue":true},{"stringValue":"\u2028é"},{}]}}}],`+
		`"status":{"code":1}}`,
		s.trace, s.span, s.start, s.start+1e9, noiseOf(s.RecordID(), average))
}

// stored returns the body that a server has of the span.
func (s *SpanSent) stored(average int) []byte {
	const head = `{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"` + spanService + `"}}]},` +
		`"scope":{"name":"oracle","version":"1"},"span":`
	return append(append([]byte(head), s.json(average)...), '}')
}

// protobuf returns the span in OTLP's protobuf.
func (s *SpanSent) protobuf(average int) []byte {
	odd := bytes.Join([][]byte{
		LengthDelimited(1, protowire.AppendVarint([]byte{3 << 3}, 1<<64-1)),                          // -1
		LengthDelimited(1, []byte{4<<3 | byte(protowire.Fixed64Type), 0, 0, 0, 0, 0, 0, 0x04, 0x40}), // 2.5
		LengthDelimited(1, []byte{2 << 3, 1}),                                                        // true
		LengthDelimited(1, LengthDelimited(1, []byte("\u2028é"))),
		LengthDelimited(1, nil),
	}, nil)

	b := append(LengthDelimited(1, s.trace[:]), LengthDelimited(2, s.span[:])...)
	b = append(b, LengthDelimited(5, []byte(`step <&>"é\`))...)
	b = append(b, 6<<3, 3)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), s.start)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type), s.start+1e9)
	b = append(b, LengthDelimited(9,
		SpanAttribute("noise", LengthDelimited(1, []byte(noiseOf(s.RecordID(), average)))))...)
	b = append(b, LengthDelimited(9, SpanAttribute("odd", LengthDelimited(5, odd)))...)

	return append(b, LengthDelimited(15, []byte{3 << 3, 1})...)
}

// SpanAttribute returns a KeyValue of OTLP.
func SpanAttribute(key string, value []byte) []byte {
	return append(LengthDelimited(1, []byte(key)), LengthDelimited(2, value)...)
}

// LengthDelimited returns a field of protobuf that has a length.
func LengthDelimited(field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
}

// ExportOf returns spans as an exporter sends them, in the encoding of a Content-Type.
func ExportOf(spans []*SpanSent, average int, form string) []byte {
	if form == OTLPJSON {
		list := make([]string, len(spans))
		for i, s := range spans {
			list[i] = string(s.json(average))
		}

		return fmt.Appendf(nil, `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name",`+
			`"value":{"stringValue":"%s"}}]},"scopeSpans":[{"scope":{"name":"oracle","version":"1"},"spans":[%s]}]}]}`,
			spanService, strings.Join(list, ","))
	}

	scope := append(LengthDelimited(1, []byte("oracle")), LengthDelimited(2, []byte("1"))...)
	scopeSpans := LengthDelimited(1, scope)
	for _, s := range spans {
		scopeSpans = append(scopeSpans, LengthDelimited(2, s.protobuf(average))...)
	}
	resource := LengthDelimited(1,
		LengthDelimited(1, SpanAttribute("service.name", LengthDelimited(1, []byte(spanService)))))

	return LengthDelimited(1, append(resource, LengthDelimited(2, scopeSpans)...))
}

// export sends a batch of new spans of one trace. Like an exporter, it sends what was not
// answered 200 again; and also some of what was, in the other encoding.
func (w *witness) export(ctx context.Context, o Order) (status int, err error) {
	trace := [16]byte(append([]byte("oracle's"), lastEight(wire.NewID())...))
	spans := make([]*SpanSent, 1+rand.IntN(spansMax))
	for i := range spans {
		spans[i] = NewSpan(trace)
	}

	forms := []string{OTLPBinary, OTLPJSON}
	if rand.IntN(2) == 0 {
		forms[0], forms[1] = forms[1], forms[0]
	}
	for try := range exportsMax {
		var answer []byte
		body := ExportOf(spans, o.Bytes, forms[try%2])
		status, answer, err = w.call(ctx, "POST", "http://"+o.Addr+"/v1/traces", body, forms[try%2])
		w.noteExport(spans, o.Bytes, status, fmt.Sprintf("%d %.300s %v", status, answer, err))

		if ctx.Err() != nil || status == http.StatusOK && rand.IntN(3) > 0 {
			break
		}
		spans = spans[rand.IntN(len(spans)):]
	}

	return status, err
}

// lastEight returns the last eight bytes of an id.
func lastEight(id string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	return b[8:]
}

// noteExport remembers how the spans of a batch were answered.
func (w *witness) noteExport(spans []*SpanSent, average, status int, refusal string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, s := range spans {
		id := s.RecordID()
		_, acked := w.acked[id]
		switch {
		case status == http.StatusOK:
			delete(w.unsure, id)
			w.acked[id] = content{average, s}
		case !acked:
			w.unsure[id] = content{average, s}
		}
	}
	if status != http.StatusOK {
		w.refusal = refusal
	}
}

// lookSpan returns what a server holds of a span, as a record and in its trace.
func (w *witness) lookSpan(addr, id string, c content) (finding, error) {
	record, err := w.read(addr, "/api/public/v2/requests/"+id)
	if err != nil {
		return absent, err
	}
	trace, err := w.read(addr, fmt.Sprintf("/api/public/v2/traces/%x", c.span.trace))
	if err != nil {
		return absent, err
	}

	listed := bytes.Count(trace, fmt.Appendf(nil, `"id":%q`, id))
	switch {
	case record == nil && listed == 0:
		return absent, nil
	case listed > 1:
		return twice, nil
	case listed == 0 || !bytes.Contains(record, c.span.stored(c.bytes)):
		return different, nil
	// However often it was sent, it was one event.
	case bytes.Count(record, []byte(`"arrived_at"`)) > 1:
		return twice, nil
	}

	return asSent, nil
}

// read returns the answer of a server; nil if there is no such thing.
func (w *witness) read(addr, path string) ([]byte, error) {
	status, answer, err := w.call(context.Background(), "GET", "http://"+addr+path, nil, "")
	switch {
	case err != nil || status == http.StatusNotFound:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("%d %.200s", status, answer)
	}

	return answer, nil
}
