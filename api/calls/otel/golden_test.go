package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/otlp"
	"promptspool/api/otlp/otlptest"
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
	recorded := payloads(t)
	for name, p := range recorded {
		spans := spansOf(t, p, recorded[name+"-logs"])
		if len(spans) == 0 && p.Path != "/v1/traces" {
			// Its log records are joined to the spans of another payload, or stand for them.
			_, spans = stored(t, p)
			spans = slices.DeleteFunc(spans, func(log json.RawMessage) bool {
				object, err := wire.ParseObject(log)
				read := otel.Read(log)
				return err != nil || !otel.HasDetails(object) || !read.IsCall()
			})
			if len(spans) == 0 {
				continue
			}
		}
		t.Run(name, func(t *testing.T) {
			var all []golden
			for _, body := range spans {
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
	// A span without a time has the one thing that a track-request must not have.
	whole, err := wire.ParseObject(bytes.ReplaceAll(body, []byte(`_time":1e300`), []byte(`_time":0`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.DecodeRequest(whole, true, time.Now()); err != nil {
		t.Fatalf("the request of the span: %v\n%s", err, body)
	}
	call := calls.ReadObject(context.Background(), object)
	if !call.Readable {
		t.Errorf("the response of the span is not readable: %s", body)
	}

	return &call
}

// payloads returns the recorded requests of real libraries by their names: those that the
// decoder is tested with, and more that only say something to a reader.
func payloads(t testing.TB) map[string]otlptest.Payload {
	t.Helper()
	all := map[string]otlptest.Payload{}
	for _, p := range otlptest.Payloads(t, "../../otlp/testdata", "testdata/payloads") {
		all[p.Name] = p
	}
	if len(all) < 59 {
		t.Fatalf("only %d payloads", len(all))
	}

	return all
}

// spansOf returns the stored spans of a payload, joined with the log records that were
// recorded beside it.
func spansOf(t *testing.T, p, itsLogs otlptest.Payload) (joined []json.RawMessage) {
	t.Helper()
	logs := map[string][]json.RawMessage{}
	if itsLogs.Body != nil {
		_, records := stored(t, itsLogs)
		for _, log := range records {
			id := otel.SpanOf(log)
			logs[id] = append(logs[id], log)
		}
	}

	spans, _ := stored(t, p)
	for _, body := range spans {
		joined = append(joined, otel.Join(body, logs[otel.Read(body).SpanID]))
	}

	return joined
}

// stored returns the bodies that the spans and the log records of a payload are stored as.
func stored(t testing.TB, p otlptest.Payload) (spans, logs []json.RawMessage) {
	t.Helper()
	var refused otlp.Refused
	var err error
	takeSpan := func(s otlp.Span) error {
		if s.Plumbing && p.Path == "/v1/traces" {
			t.Errorf("a span of a library would be dropped as plumbing: %s", s.Body)
		}
		if !s.Plumbing {
			spans = append(spans, s.Body)
		}
		return nil
	}
	if p.Path == "/v1/traces" {
		refused, err = otlp.Traces(t.Context(), p.Body, p.Form, takeSpan)
	} else {
		refused, err = otlp.Logs(t.Context(), p.Body, p.Form, func(l otlp.Log) error {
			logs = append(logs, l.Body)
			return nil
		}, takeSpan)
	}
	if err != nil || refused.Spans > 0 {
		t.Fatal(refused, err)
	}

	return spans, logs
}

func encode(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}
