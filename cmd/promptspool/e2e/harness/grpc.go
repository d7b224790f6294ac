//go:build linux

package harness

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// ExportTraces and ExportLogs are the methods of OTLP over gRPC.
const (
	ExportTraces = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	ExportLogs   = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
)

// GRPCExporter returns a function that exports requests in protobuf over gRPC, on a connection that ends
// with the test. It returns the answer.
func GRPCExporter(
	t testing.TB, addr string, secrecy credentials.TransportCredentials,
) func(method string, request []byte) ([]byte, error) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(secrecy),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })

	return func(method string, request []byte) (answer []byte, err error) {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", AdminKey)
		return answer, conn.Invoke(ctx, method, &request, &answer)
	}
}

// rawCodec sends and receives messages as bytes.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

func (rawCodec) Name() string { return "proto" }
