package api_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/edge/edgetest"
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
