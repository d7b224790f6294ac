//go:build linux && bench

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

const (
	spanBytes       = 4096 // of a span, about
	spanConnections = 16
	ingestEvents    = 20_000
	ingestBatch     = 500
)

// benchSpan returns a span of about spanBytes, of a model call.
func benchSpan(trace string, n int) (json string) {
	prompt := strings.Repeat("All happy families are alike. ", spanBytes/30)[:spanBytes-560]
	return fmt.Sprintf(`{"traceId":%q,"spanId":"%016x","name":"chat gpt-4","kind":3,`+
		`"startTimeUnixNano":"1687000000250000000","endTimeUnixNano":"1687000001500000000","attributes":[`+
		`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},`+
		`{"key":"gen_ai.system","value":{"stringValue":"openai"}},`+
		`{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4"}},`+
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"1"}},`+
		`{"key":"gen_ai.prompt.0.content","value":{"stringValue":"%s"}}],"status":{"code":1}}`, trace, n, prompt)
}

// benchExport returns a batch of spans in an encoding.
func benchExport(form string, spans int) []byte {
	const trace = "52adf2cf8206e15bbdd5b2da7b55fa89"
	if form == harness.OTLPJSON {
		list := make([]string, spans)
		for i := range list {
			list[i] = benchSpan(trace, i+1)
		}

		return fmt.Appendf(nil, `{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"spans":[%s]}]}]}`,
			strings.Join(list, ","))
	}

	text := func(key, value string) []byte {
		return harness.LengthDelimited(9, harness.SpanAttribute(key, harness.LengthDelimited(1, []byte(value))))
	}
	prompt := strings.Repeat("All happy families are alike. ", spanBytes/30)[:spanBytes-260]
	var all []byte
	for i := range spans {
		all = append(all, harness.LengthDelimited(2, bytes.Join([][]byte{
			harness.LengthDelimited(1, []byte(trace[:16])),
			harness.LengthDelimited(2, fmt.Appendf(nil, "%08x", i+1)),
			harness.LengthDelimited(5, []byte("chat gpt-4")),
			{6 << 3, 3},
			protowire.AppendFixed64([]byte{7<<3 | byte(protowire.Fixed64Type)}, 1687000000250000000),
			protowire.AppendFixed64([]byte{8<<3 | byte(protowire.Fixed64Type)}, 1687000001500000000),
			text("gen_ai.operation.name", "chat"),
			text("gen_ai.system", "openai"),
			text("gen_ai.request.model", "gpt-4"),
			harness.LengthDelimited(9, harness.SpanAttribute("gen_ai.usage.input_tokens", []byte{3 << 3, 1})),
			text("gen_ai.prompt.0.content", prompt),
			harness.LengthDelimited(15, []byte{3 << 3, 1}),
		}, nil))...)
	}

	return harness.LengthDelimited(1, append(harness.LengthDelimited(1, nil), harness.LengthDelimited(2, all)...))
}

// BenchmarkSpans exports spans to a sidecar whose server is away, beside writes of track-request,
// in one run. The processor's time is that of the sidecar, for each byte that was sent.
func BenchmarkSpans(b *testing.B) {
	for range b.N {
		fmt.Printf("\n%-22s %9s %9s %9s %9s %9s %9s\n",
			"what", "bytes", "calls/s", "MB/s", "of track", "cpu ns/B", "of track")
		var track, trackCPU float64
		for _, row := range []pressure{
			{Bytes: spanBytes},
			{Spans: 1, Form: harness.OTLPBinary},
			{Spans: 50, Form: harness.OTLPBinary},
			{Spans: 512, Form: harness.OTLPBinary},
			{Spans: 1, Form: harness.OTLPJSON},
			{Spans: 50, Form: harness.OTLPJSON},
			{Spans: 512, Form: harness.OTLPJSON},
		} {
			name := "track-request"
			if row.Spans > 0 {
				name = fmt.Sprintf("%s, %d", strings.TrimPrefix(row.Form, "application/"), row.Spans)
				row.Bytes = len(benchExport(row.Form, row.Spans))
			}
			row.Connections, row.Time, row.Requests = spanConnections, benchTime, benchBytesMax/int64(row.Bytes)

			got, cpu := pressSidecar(b, row)
			perSecond := got.PerSecond * float64(row.Bytes) / 1e6
			perByte := float64(cpu.Nanoseconds()) / float64(got.Requests*int64(row.Bytes))
			if row.Spans == 0 {
				track, trackCPU = perSecond, perByte
			}
			fmt.Printf("%-22s %9d %9.0f %9.1f %9.2f %9.2f %9.2f\n",
				name, row.Bytes, got.PerSecond, perSecond, perSecond/track, perByte, perByte/trackCPU)
		}
	}
}

// pressSidecar runs a load on a fresh sidecar, and returns the processor's time it took as well.
func pressSidecar(b *testing.B, p pressure) (pace, time.Duration) {
	b.Helper()
	dir := b.TempDir()
	defer os.RemoveAll(dir) // the next needs the room
	sidecar := startMeasured(b, dir, harness.FreePort(b))
	defer sidecar.Kill()

	p.Addr = sidecar.Addr
	before := cpuOf(b, sidecar)
	got := press(b, p)

	return got, cpuOf(b, sidecar) - before
}

// BenchmarkSpanIngest delivers requests, and then spans of the same size, to a server as sidecars
// do, in one run.
func BenchmarkSpanIngest(b *testing.B) {
	for range b.N {
		fmt.Printf("\n%-12s %-9s %9s %9s %9s %9s\n", "archive", "what", "events/s", "of req.", "cpu us", "of req.")
		for _, archive := range []string{"Badger", "PostgreSQL"} {
			var requests, requestCPU float64
			for _, kind := range []wire.Kind{wire.KindRequest, wire.KindSpan} {
				args := []string{"server"}
				if archive == "PostgreSQL" {
					args = append(args, "--archive", postgrestest.DSN(b))
				}
				server := harness.BeginPlain(b, b.TempDir(), "127.0.0.1:0", args...)
				if !server.Takes() {
					b.Fatal("the server does not start")
				}

				perSecond, cpu := ingest(b, server, kind)
				if kind == wire.KindRequest {
					requests, requestCPU = perSecond, cpu
				}
				fmt.Printf("%-12s %-9s %9.0f %9.2f %9.1f %9.2f\n",
					archive, kind, perSecond, perSecond/requests, cpu, cpu/requestCPU)
				server.Kill()
			}
		}
	}
}

// ingest delivers events of a kind over four connections. It returns how many a second, and the
// server's time of the processor for each in microseconds.
func ingest(b *testing.B, server *harness.Node, kind wire.Kind) (perSecond, cpu float64) {
	b.Helper()
	c := harness.NewCrowd(b, server)
	batches := make(chan []byte, ingestEvents/ingestBatch)
	for range cap(batches) {
		batches <- c.Zstd.EncodeAll(eventLines(kind, ingestBatch), nil)
	}
	close(batches)

	client, done := harness.OwnClient(b, 4), make(chan bool)
	before, begun := cpuOf(b, server), time.Now()
	for range 4 {
		go func() {
			for batch := range batches {
				c.Send(context.Background(), client, harness.AdminKey, ingestBatch, batch)
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	took, used := time.Since(begun), cpuOf(b, server)-before

	return ingestEvents / took.Seconds(), float64(used.Microseconds()) / ingestEvents
}

// eventLines returns events of a kind as a batch of a sidecar has them, ten spans a trace.
func eventLines(kind wire.Kind, count int) (lines []byte) {
	trace := ""
	for i := range count {
		if i%10 == 0 {
			trace = strings.ReplaceAll(wire.NewID(), "-", "")
		}
		e := wire.Event{
			ID:         wire.NewID(),
			Kind:       kind,
			RequestID:  wire.NewID(),
			AcceptedAt: time.Now(),
			Sidecar:    "pod-1",
			Body:       harness.BodyOf(spanBytes),
		}
		if kind == wire.KindSpan {
			e.Body = []byte(`{"resource":{},"scope":{},"span":` + benchSpan(trace, i+1) + `}`)
		}
		lines = e.AppendLine(lines)
	}

	return lines
}
