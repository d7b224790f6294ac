//go:build linux

package cost

import (
	"testing"
	"time"

	"promptspool/api/otlp"
	"promptspool/metrics/cputimetest"
)

// Bounds of a request that is full of containers of nothing.
const (
	nothingBytes = 2 << 20
	nothingMost  = 2 // of the processor time that as many bytes of empty spans take
)

// Messages of nothing are two bytes each, so that a request of a few packed kilobytes has millions of
// them. Of each kind that OTLP has, they cost what empty spans do: beyond a number they are skipped.
//
// It is not parallel, because it measures its own process.
func TestContainersOfNothingCostWhatEmptySpansDo(t *testing.T) {
	spent := map[string]time.Duration{}
	for path, message := range inOrder(otlpMessages) {
		if path == "/v1/metrics" { // which are not decoded
			continue
		}
		for _, f := range protoFillings(message, depths{}) {
			if f.element == "{}" {
				spent[path+f.place] = decodingTime(t, path, f.fill(nothingBytes))
			}
		}
	}

	most := nothingMost * spent["/v1/traces.resource_spans.scope_spans.spans"]
	if most == 0 || len(spent) < 50 {
		t.Fatalf("only %d kinds were tried, and empty spans take %v", len(spent), most/nothingMost)
	}
	for place, took := range inOrder(spent) {
		if took > most {
			t.Errorf("nothing in %s takes %v of the processor, want at most %v", place, took, most)
		}
	}
}

// decodingTime returns the processor time that a request takes, the least of some tries.
func decodingTime(t *testing.T, path string, body []byte) (least time.Duration) {
	t.Helper()
	for try := range shapeTries {
		took := cputimetest.Of(func() {
			var err error
			ignored := func(otlp.Span) error { return nil }
			if path == "/v1/traces" {
				_, err = otlp.Traces(t.Context(), body, otlp.Protobuf, ignored)
			} else {
				_, err = otlp.Logs(t.Context(), body, otlp.Protobuf, func(otlp.Log) error { return nil }, ignored)
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
		if try == 0 || took < least {
			least = took
		}
	}

	return least
}
