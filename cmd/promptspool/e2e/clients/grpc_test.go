//go:build linux

package clients

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	logspb "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"promptspool/api"
	"promptspool/api/otlp"
	"promptspool/api/otlp/otlptest"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics"
)

// The exporters of Go export a span and its log record over gRPC to a sidecar and to a server.
func TestGosExportersOverGRPC(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	key := map[string]string{"X-API-KEY": harness.AdminKey}

	for name, addr := range map[string]string{"sidecar": sidecar.Addr, "server": server.Addr} {
		spans, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpointURL("http://"+addr),
			otlptracegrpc.WithHeaders(key), otlptracegrpc.WithCompressor("gzip"))
		if err != nil {
			t.Fatal(err)
		}
		logs, err := otlploggrpc.New(t.Context(), otlploggrpc.WithEndpointURL("http://"+addr),
			otlploggrpc.WithHeaders(key))
		if err != nil {
			t.Fatal(err)
		}

		tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		ctx, span := tracing.Tracer("app").Start(t.Context(), "chat gpt-4o")
		span.SetAttributes(attribute.String("gen_ai.operation.name", "chat"),
			attribute.String("gen_ai.request.model", "gpt-4o"))
		span.End()
		logging := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(logs)))
		var record log.Record
		record.SetEventName("gen_ai.client.inference.operation.details")
		record.SetTimestamp(time.Now())
		record.AddAttributes(attribute.String("gen_ai.output.messages",
			`[{"role":"assistant","parts":[{"type":"text","content":"hello over gRPC"}]}]`))
		logging.Logger("app").Emit(ctx, record)
		if err := errors.Join(tracing.Shutdown(t.Context()), logging.Shutdown(t.Context())); err != nil {
			t.Fatal(name, err)
		}

		sidecar.Emptied()
		var stored wire.Trace
		r := server.Get("/api/public/v2/traces/" + span.SpanContext().TraceID().String())
		if json.Unmarshal(r.Body, &stored) != nil || len(stored.Spans) != 1 {
			t.Fatalf("%s: the trace: %d %s", name, r.Status, r.Body)
		}
		r = server.Get("/api/public/v2/requests/" + stored.Spans[0].ID)
		if !strings.Contains(string(r.Body), "hello over gRPC") {
			t.Errorf("%s: the request: %d %s", name, r.Status, r.Body)
		}
	}
}

// keeper is a recorder that keeps what comes until it is taken.
type keeper struct{ events []string }

func (k *keeper) Record(_ context.Context, _ wire.Identity, events []wire.Event) ([]wire.Result, error) {
	for _, e := range events {
		k.events = append(k.events, strings.Join([]string{string(e.Kind), e.ID, e.RequestID, string(e.Body)}, " "))
	}
	return make([]wire.Result, len(events)), nil
}

func (k *keeper) take() []string {
	defer func() { k.events = nil }()
	return k.events
}

func (k *keeper) Authenticate(_ context.Context, key wire.Secret) (wire.Identity, error) {
	return wire.Identity{Account: "a", KeyID: "k", Key: key, Scope: wire.ScopeApp, Verified: true}, nil
}

// Recorded requests become the same events over gRPC, with TLS, as over HTTP.
func TestRecordedRequestsAreTheSameOverGRPC(t *testing.T) {
	t.Parallel()
	kept := new(keeper)
	server := api.New(api.Config{
		KeepPlumbing:  true,
		Name:          "here",
		Recorder:      kept,
		Authenticator: kept,
		Metrics:       metrics.New("sidecar", "test"),
		Logger:        slog.New(slog.DiscardHandler),
	}).NewServer()
	authority := harness.NewCertAuthority(t)
	cert, err := tls.LoadX509KeyPair(authority.Issue())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1", "h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()

	trusting := &tls.Config{InsecureSkipVerify: true} // who it is does not matter here
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}
	export := harness.GRPCExporter(t, ln.Addr().String(), credentials.NewTLS(trusting))

	for _, p := range otlptest.Payloads(t, "../../../../api/otlp/testdata") {
		if strings.Contains(p.Path, "bulk") {
			continue // PromptLayer's own JSON of spans
		}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://"+ln.Addr().String()+p.Path,
			bytes.NewReader(p.Body))
		req.Header.Set("Content-Type", p.Form.ContentType())
		req.Header.Set("X-API-KEY", "key")
		res, err := client.Do(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(p.Name, res, err)
		}
		res.Body.Close()
		overHTTP := kept.take()

		method := harness.ExportTraces
		if strings.HasSuffix(p.Path, "/logs") {
			method = harness.ExportLogs
		}
		if _, err := export(method, inProtobuf(t, p)); err != nil {
			t.Fatal(p.Name, err)
		}
		if diff := cmp.Diff(overHTTP, kept.take()); diff != "" || len(overHTTP) == 0 {
			t.Errorf("%s (-HTTP +gRPC):\n%s", p.Name, diff)
		}
	}

	// The client of gRPC hangs up when it is told to.
	client.CloseIdleConnections()
	if err := errors.Join(server.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
}

// inProtobuf returns a recorded request in protobuf.
func inProtobuf(t *testing.T, p otlptest.Payload) []byte {
	t.Helper()
	if p.Form == otlp.Protobuf {
		return p.Body
	}
	var tree any
	numbers := json.NewDecoder(bytes.NewReader(p.Body))
	numbers.UseNumber()
	if err := numbers.Decode(&tree); err != nil {
		t.Fatal(p.Name, err)
	}
	inBase64(tree)
	text, _ := json.Marshal(tree)

	// They have the same fields as the requests of a call.
	var message proto.Message = new(tracepb.TracesData)
	if strings.HasSuffix(p.Path, "/logs") {
		message = new(logspb.LogsData)
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, message); err != nil {
		t.Fatal(p.Name, err)
	}
	b, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(p.Name, err)
	}

	return b
}

// inBase64 changes the ids within v from OTLP's hexadecimal digits to what protobuf has for bytes.
func inBase64(v any) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			inBase64(element)
		}
	case map[string]any:
		for name, member := range v {
			id, isText := member.(string)
			if isText && (name == "traceId" || name == "spanId" || name == "parentSpanId") {
				b, _ := hex.DecodeString(id)
				v[name] = base64.StdEncoding.EncodeToString(b)
			}
			inBase64(member)
		}
	}
}
