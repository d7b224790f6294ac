package otel_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/otlp"
	"promptspool/api/wire"
)

var update = flag.Bool("update", false, "write the goldens anew")

// golden is what a payload's span becomes: what the span says, and what the archive reads
// of the request that it makes.
type golden struct {
	Span goldenSpan
	Call *calls.Call `json:",omitempty"`
}

// goldenSpan has the request as it would be sent.
type goldenSpan struct {
	otel.Span
	Request json.RawMessage
}

// Each golden was looked at: the right provider and model, messages in their order, usage
// counted once, and nothing lost that a person would want to see.
func TestRecordedPayloadsBecomeTheRecordsOfTheirGoldens(t *testing.T) {
	for _, name := range payloads(t) {
		if strings.HasSuffix(name, "-logs") || strings.Contains(name, "spans-bulk") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var all []golden
			for _, body := range spansOf(t, name) {
				span := otel.Read(body)
				g := golden{Span: goldenSpan{span, span.Request()}}
				if span.IsCall() {
					g.Call = readRequest(t, span.Request())
				}
				all = append(all, g)
			}
			if len(all) == 0 {
				t.Fatal("no spans")
			}
			got, err := json.MarshalIndent(all, "", " ")
			if err != nil {
				t.Fatal(err)
			}

			path := filepath.Join("testdata", "golden", name+".json")
			if *update {
				if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("differs from its golden (-want +got):\n%s", diff)
			}
		})
	}
}

// readRequest reads a request as the archive does, after proving that it follows the
// contract of a track-request.
func readRequest(t *testing.T, body json.RawMessage) *calls.Call {
	t.Helper()
	object, err := wire.ParseObject(body)
	if err != nil {
		t.Fatalf("the request of the span: %v\n%s", err, body)
	}
	if _, err := wire.DecodeRequest(object, true); err != nil {
		t.Fatalf("the request of the span: %v\n%s", err, body)
	}
	call := calls.ReadObject(context.Background(), object)
	if !call.Readable {
		t.Errorf("the response of the span is not readable: %s", body)
	}

	return &call
}

// payloadFolders have recorded requests of real libraries: those that the decoder is
// tested with, and more that only say something to a reader.
var payloadFolders = []string{"../../otlp/testdata", "testdata/payloads"}

// pathOf returns the file of a payload, which may not exist.
func pathOf(name string) string {
	path := filepath.Join(payloadFolders[1], name+".json")
	if _, err := os.Stat(path); err == nil {
		return path
	}

	return filepath.Join(payloadFolders[0], name+".json")
}

// payload is one recorded POST.
type payload struct {
	Path string          `json:"path"`
	JSON json.RawMessage `json:"body_json"`
	Raw  []byte          `json:"body_base64"`
}

// payloads returns the names of all recorded payloads.
func payloads(t testing.TB) []string {
	t.Helper()
	var paths []string
	for _, folder := range payloadFolders {
		found, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < 39 {
		t.Fatalf("only %d payloads", len(paths))
	}
	for i, path := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(path), ".json")
	}

	return paths
}

// binary returns a body that is not JSON, without its compression.
func (p payload) binary(t testing.TB) []byte {
	t.Helper()
	if !bytes.HasPrefix(p.Raw, []byte("\x1f\x8b")) {
		return p.Raw
	}

	r, err := gzip.NewReader(bytes.NewReader(p.Raw))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

func readPayload(t testing.TB, name string) payload {
	t.Helper()
	raw, err := os.ReadFile(pathOf(name))
	if err != nil {
		t.Fatal(err)
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}

	return p
}

// spansOf returns the stored spans of a payload, joined with the log records that were
// recorded beside it.
func spansOf(t *testing.T, name string) []json.RawMessage {
	t.Helper()
	logs := map[string][]json.RawMessage{}
	if _, err := os.Stat(pathOf(name + "-logs")); err == nil {
		for _, log := range stored(t, readPayload(t, name+"-logs")) {
			id := otel.SpanOf(log)
			logs[id] = append(logs[id], log)
		}
	}

	var joined []json.RawMessage
	for _, body := range stored(t, readPayload(t, name)) {
		joined = append(joined, otel.Join(body, logs[otel.Read(body).SpanID]))
	}

	return joined
}

// stored returns the bodies that a payload is stored as.
func stored(t testing.TB, p payload) (bodies []json.RawMessage) {
	t.Helper()
	form, raw := otlp.JSON, []byte(p.JSON)
	if p.JSON == nil {
		form, raw = otlp.Protobuf, p.binary(t)
	}

	var refused otlp.Refused
	var err error
	if p.Path == "/v1/logs" {
		refused, err = otlp.Logs(raw, form, func(l otlp.Log) error {
			bodies = append(bodies, l.Body)
			return nil
		})
	} else {
		refused, err = otlp.Traces(raw, form, func(s otlp.Span) error {
			// Package otlp has a table of its own of what is about model calls, because it may not import this one.
			if span := otel.Read(s.Body); s.Plumbing && span.IsCall() {
				t.Errorf("a call would be dropped as plumbing: %s", s.Body)
			}
			bodies = append(bodies, s.Body)
			return nil
		})
	}
	if err != nil || refused.Spans > 0 {
		t.Fatal(refused, err)
	}

	return bodies
}

func encode(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}
