//go:build !race

package api_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api"
	"promptspool/api/edge/edgetest"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// stall sends the beginning of a large body, and then stops. It returns the connection.
func stall(t *testing.T, ln *edgetest.Pipes, header string, announced, sent int) net.Conn {
	t.Helper()
	conn, err := ln.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })

	// It may be that less is read.
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /rest/track-score HTTP/1.1\r\nHost: here\r\n%sContent-Length: %d\r\n\r\n%s",
			header, announced, strings.Repeat(" ", sent))
	}()

	return conn
}

// statusOf waits for the answer on a connection.
func statusOf(t *testing.T, conn net.Conn) int {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()

	return answer.StatusCode
}

func TestLargeBodiesThatStopComingHinderNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// fasthttp's worker pool looks only every ten seconds whether it was stopped.
		t.Cleanup(func() { <-time.After(11 * time.Second) })
		ln := edgetest.NewPipes()
		s := serve(t, ln, ln.DialContext, nil)
		const large, beginning = 32<<20 - 1024, 1<<20 + 100<<10

		var stalled []net.Conn
		for range 4 {
			stalled = append(stalled, stall(t, ln, "", large, beginning))
		}
		stalled = append(stalled, stall(t, ln, "X-API-KEY: app\r\n", large, beginning))

		// Meanwhile a small write, and a large one of another key.
		if a := s.call("POST", "/rest/track-score", score); a.Status != 200 {
			t.Errorf("a small write: %+v", a)
		}
		body := score[:len(score)-1] + strings.Repeat(" ", 20<<20) + "}"
		body = strings.Replace(body, `"app"`, `"full"`, 1)
		if a := s.call("POST", "/rest/track-score", body, "X-API-KEY", "full"); a.Status != 200 {
			t.Errorf("a large write: %+v", a)
		}

		began := time.Now()
		for _, conn := range stalled {
			if status := statusOf(t, conn); status != 408 && status != 503 {
				t.Errorf("a body that stopped coming is answered %d", status)
			}
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("bodies that stopped coming were held for %v", took)
		}
	})
}

func TestALargeBodyIsReadForAKnownKeyOnly(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	large := score[:len(score)-1] + strings.Repeat(" ", 1<<20) + "}"
	spans := strings.Replace(oneSpan, "{", "{"+strings.Repeat(" ", 1<<20), 1)
	ofProxy := base64.StdEncoding.EncodeToString([]byte("proxy:password"))

	for _, c := range []struct {
		name, body string
		header     []string
		status     int
	}{
		{"plain, the key in the body", large, nil, 200},
		{"packed, the key in the body", gzipOf(large), []string{"Content-Encoding", "gzip"}, 401},
		{
			"packed, the key in the head", gzipOf(large),
			[]string{"Content-Encoding", "gzip", "X-API-KEY", "app"}, 200,
		},
		{
			"packed, the key in the head as Bearer", gzipOf(strings.Replace(large, `"app"`, `"full"`, 1)),
			[]string{"Content-Encoding", "gzip", "Authorization", "Bearer full"}, 200,
		},
		{
			"packed, behind Bearer of a proxy", gzipOf(large),
			[]string{"Content-Encoding", "gzip", "Authorization", "Bearer of-a-proxy"}, 401,
		},
		{
			"not JSON (which would be 400), an unknown key in the head", strings.Repeat("x", 1<<20),
			[]string{"X-API-KEY", "wrong"}, 401,
		},
		{"the key in the body, behind Basic of a proxy", large, []string{"Authorization", "Basic " + ofProxy}, 200},
		{"the key in the body, behind Bearer of a proxy", large, []string{"Authorization", "Bearer of-a-proxy"}, 200},
		{"packed and small, the key in the body", gzipOf(score), []string{"Content-Encoding", "gzip"}, 200},
	} {
		if a := s.call("POST", "/rest/track-score", c.body, c.header...); a.Status != c.status {
			t.Errorf("%s: %+v, want %d", c.name, a, c.status)
		}
	}

	// Spans have no key in their body, so Authorization counts for them.
	zippedSpans := gzipOf(spans)
	for authorization, want := range map[string]int{"Bearer app": 200, "Basic " + ofProxy: 401} {
		status, _, answer, _ := s.export("/v1/traces", zippedSpans,
			"Content-Encoding", "gzip", "Authorization", authorization)
		if status != want {
			t.Errorf("spans with %s: %d %s, want %d", authorization, status, answer, want)
		}
	}
}

func TestABatchIsTakenInEveryEncodingAndRefusedWhenItIsNotWhole(t *testing.T) {
	t.Parallel()
	m := metrics.New("server", "test")
	s := start(t, func(c *api.Config) { c.Metrics = m })
	plain := eventLine(10) + "\n  \n" + eventLine(100_000) + strings.TrimSuffix(eventLine(7), "\n")
	bomb := strings.Repeat(zstdOf(t, bytes.Repeat([]byte("\n"), 1<<20)), 64)

	for _, c := range []struct {
		name, encoding, body string
		status, events       int
	}{
		{"plain", "", plain, 200, 3},
		{"zstd", "zstd", zstdOf(t, []byte(plain)), 200, 3},
		{"gzip", "gzip", gzipOf(plain), 200, 3},
		{"nothing", "", "", 200, 0},
		{"nothing, zstd", "zstd", zstdOf(t, nil), 200, 0},
		{"one large event", "zstd", zstdOf(t, []byte(eventLine(wire.BatchBytesMax))), 200, 1},
		{"zstd, cut", "zstd", zstdOf(t, []byte(plain))[:200], 400, 0},
		{"gzip, cut", "gzip", gzipOf(plain)[:200], 400, 0},
		{"plain that calls itself zstd", "zstd", plain, 400, 0},
		{"plain that calls itself gzip", "gzip", plain, 400, 0},
		{"an encoding of another kind", "br", plain, 415, 0},
		{"a bomb of blank lines", "zstd", bomb, 413, 0},
		{"a bomb in one line", "zstd", strings.Repeat(zstdOf(t, make([]byte, 1<<20)), 64), 413, 0},
		{"too many events", "zstd", zstdOf(t, []byte(strings.Repeat(eventLine(1), wire.BatchEventsMax+1))), 413, 0},
		{"a line that is no event", "", eventLine(1) + "{}\n", 422, 0},
	} {
		s.recorder.events = nil
		a := s.call("POST", "/sync/events", c.body, "X-API-KEY", "app", "Content-Encoding", c.encoding)
		if a.Status != c.status || len(s.recorder.events) != c.events {
			t.Errorf("%s: %d (%s), with %d events recorded; want %d with %d",
				c.name, a.Status, a.Message, len(s.recorder.events), c.status, c.events)
		}
		if c.status == 422 && a.Fields[0].Field != "line 2" {
			t.Errorf("%s: %+v", c.name, a.Fields)
		}
		if held := metric(t, m, "promptspool_batch_bytes"); held != 0 {
			t.Fatalf("%s: %v bytes are held when it is over", c.name, held)
		}
	}

	// The key is checked before the body, but after the encoding.
	if a := s.call("POST", "/sync/events", bomb, "X-API-KEY", "who", "Content-Encoding", "zstd"); a.Status != 401 {
		t.Errorf("a bomb with an unknown key: %+v", a)
	}
	if a := s.call("POST", "/sync/events", plain, "X-API-KEY", "who", "Content-Encoding", "br"); a.Status != 415 {
		t.Errorf("an unknown encoding with an unknown key: %+v", a)
	}
}

func TestSpansOfTheLargestSizeAlwaysFit(t *testing.T) {
	// As a sidecar divides its memory.
	s := start(t, func(c *api.Config) { c.BodyBytesMax, c.BufferBytes = 6<<20, 8<<20 })
	body := strings.Replace(oneSpan, "chat m", strings.Repeat("m", 6<<20-1024), 1)
	if status, _, answer, _ := s.export("/v1/traces", body, "X-API-KEY", "app"); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

// A sidecar has room for 40 MiB of bodies. What is made of some must not take that of the next.
func TestSixteenExportersOf2MiBAreTakenTogether(t *testing.T) {
	t.Parallel()
	h := &held{arrived: make(chan struct{}, heldCalls), open: make(chan struct{})}
	s := start(t, func(c *api.Config) {
		h.Recorder = c.Recorder
		c.Recorder, c.BufferBytes, c.BodyBytesMax = h, 40<<20, 32<<20
	})
	span := `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"` +
		strings.Repeat("x", 4<<10-90) + `"}`
	body := `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat(span+",", 511) + span + `]}]}]}`
	export := func() {
		if status, _, answer, _ := s.export("/v1/traces", body, "X-API-KEY", "app"); status != 200 {
			t.Errorf("%d %s", status, answer)
		}
	}

	var all sync.WaitGroup
	ended := make(chan struct{}, heldCalls)
	for range heldCalls {
		all.Go(func() {
			export()
			ended <- struct{}{}
		})
		select {
		case <-h.arrived:
		case <-ended: // refused
		}
	}
	close(h.open)
	all.Wait()
}
