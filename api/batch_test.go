package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// eventLine returns an event as a batch has it.
func eventLine(bodyBytes int) string {
	return fmt.Sprintf(`{"id":"%s","kind":"score","request_id":"%s","accepted_at":"2026-01-02T03:04:05Z",`+
		`"sidecar":"s","body":{"x":"%s"}}`+"\n", wire.NewID(), wire.NewID(), strings.Repeat("x", bodyBytes))
}

func zstdOf(t testing.TB, plain []byte) string {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}

	return string(e.EncodeAll(plain, nil))
}

func gzipOf(plain string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, plain)
	_ = w.Close()

	return b.String()
}

// metric adds up the values of a metric.
func metric(t *testing.T, m *metrics.Metrics, name string) (sum float64) {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		for _, v := range f.GetMetric() {
			if f.GetName() == name {
				sum += v.GetGauge().GetValue() + v.GetCounter().GetValue()
			}
		}
	}

	return sum
}

// FuzzBatches checks that any bytes are answered, and that nothing of them stays claimed.
func FuzzBatches(f *testing.F) {
	f.Add([]byte(eventLine(3)), uint8(0))
	f.Add([]byte(zstdOf(f, []byte(eventLine(3)))), uint8(1))
	f.Add([]byte(gzipOf(eventLine(3))), uint8(2))
	m := metrics.New("server", "test")
	a := api.New(api.Config{
		Name:          "here",
		Version:       "test",
		Recorder:      &recorder{},
		Authenticator: keys{},
		Metrics:       m,
		Logger:        discard,
	})

	f.Fuzz(func(t *testing.T, body []byte, encoding uint8) {
		ctx := batchCall(body, []string{"", "zstd", "gzip"}[encoding%3])
		a.Handle(ctx)
		if s := ctx.Response.StatusCode(); s != 200 && s != 400 && s != 413 && s != 422 {
			t.Errorf("%d %s", s, ctx.Response.Body())
		}
		if held := metric(t, m, "promptspool_batch_bytes"); held != 0 {
			t.Errorf("%v bytes are held", held)
		}
	})
}

func TestBodiesThatStopOrLieHoldNothingBack(t *testing.T) {
	t.Parallel()
	m := metrics.New("server", "test")
	s, addr := startTCP(t, func(c *api.Config) { c.Metrics, c.BatchBytes = m, 8<<20 })

	// A thousand callers announce a batch and send a few bytes, which are all that may count.
	conns := make([]net.Conn, 1000)
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn

		length := wire.BatchBodyBytesMax
		switch i % 3 {
		case 1:
			length = 100
		case 2:
			length = 0 // and then sends more
		}
		fmt.Fprintf(conn, "POST /sync/events HTTP/1.1\r\nHost: x\r\nX-API-KEY: app\r\n"+
			"Content-Encoding: zstd\r\nContent-Length: %d\r\n\r\n%s", length, "some bytes")
	}

	body := eventLine(1 << 20)
	for range 5 {
		if a := s.call("POST", "/sync/events", body, "X-API-KEY", "full"); a.Status != 200 {
			t.Fatalf("somebody else's batch: %+v", a)
		}
	}

	for _, conn := range conns {
		conn.Close()
	}
	deadline := time.After(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); metric(t, m, "promptspool_batch_bytes") != 0; {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%v bytes are held when all have gone", metric(t, m, "promptspool_batch_bytes"))
		}
	}
}

func TestBeyondItsBytesTheServerTurnsBatchesAway(t *testing.T) {
	m := metrics.New("server", "test")
	s := start(t, func(c *api.Config) { c.Metrics, c.BatchBytes = m, 1<<20 })

	a := s.call("POST", "/sync/events", eventLine(2<<20), "X-API-KEY", "app")
	if a.Status != 503 || a.Header.Get("Retry-After") == "" || len(s.recorder.events) != 0 {
		t.Errorf("%+v", a)
	}
	if a := s.call("POST", "/sync/events", eventLine(100), "X-API-KEY", "app"); a.Status != 200 {
		t.Errorf("the next: %+v", a)
	}
	if n := metric(t, m, "promptspool_shed_total"); n != 1 {
		t.Errorf("promptspool_shed_total counts %v", n)
	}
}
