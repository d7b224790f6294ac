package webhook

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

// liar is a target that answers each call with the same bytes, and what then writes.
type liar struct {
	answer string
	then   func(net.Conn) // nil: it waits for the next call
	fails  string         // part of the error of an attempt; "" if that counts as delivered
}

// countedConn counts what its other end has read.
type countedConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.read.Add(int64(n))
	return n, err
}

// serve answers what comes on a connection.
func (l *liar) serve(w *world, c countedConn) {
	defer c.Close()
	calls := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(calls)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.mu.Lock()
		w.calls["liar"] = append(w.calls["liar"], call{header: r.Header})
		w.mu.Unlock()

		_, _ = io.WriteString(c, l.answer)
		if l.then != nil {
			l.then(c)
			return
		}
	}
}

// mixed reaches a liar by its own transport, and the targets of a world by that.
type mixed struct {
	*world
	liar *http.Transport
}

func (m mixed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() == "liar" {
		return m.liar.RoundTrip(r)
	}
	return m.world.RoundTrip(r)
}

// A target may say anything. A status of success counts, once for each notice, whatever comes after it; what is
// no answer is tried again. Neither takes much time or memory, or delays another target.
func TestATargetThatLiesIsToldOnceAndDelaysNoOther(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	closed := func(net.Conn) {}
	again := func(text string, pause time.Duration) func(net.Conn) {
		return func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
				time.Sleep(pause)
			}
		}
	}
	endless := again(strings.Repeat("x", 1<<20), 0)

	for name, l := range map[string]liar{
		"a body that is cut":       {ok + "Content-Length: 100\r\n\r\nhalf", closed, ""},
		"a body without an end":    {ok + "\r\n", endless, ""},
		"a body that trickles":     {ok + "Content-Length: 1000\r\n\r\n", again("x", time.Second), ""},
		"a body that never begins": {ok + "Content-Length: 1\r\n\r\n", nil, ""},
		"garbage":                  {ok + "Content-Length: 4\r\n\r\n\x00\xff{{", nil, ""},
		"garbage as gzip":          {ok + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf", nil, ""},
		"garbage as chunks":        {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhalf", nil, ""},
		"a page about an error":    {ok + "Content-Length: 9\r\n\r\nError 500", nil, ""},
		"a redirect":               {ok + "Location: http://fast/\r\nContent-Length: 0\r\n\r\n", nil, ""},
		"a wish to be called more": {ok + "Retry-After: 3600\r\nContent-Length: 0\r\n\r\n", nil, ""},
		"two answers":              {strings.Repeat(ok+"Content-Length: 2\r\n\r\nok", 2), nil, ""},
		"no content, and some":     {"HTTP/1.1 204 No Content\r\nContent-Length: 100\r\n\r\nhalf", nil, ""},

		"no HTTP":                {"All is well.\r\n\r\n", nil, "malformed HTTP"},
		"a header that is cut":   {ok, closed, "EOF"},
		"a header without end":   {ok + "X: ", endless, "headers exceeded"},
		"a header that trickles": {ok, again("X: x\r\n", time.Second), "exceeded"},
		"always more to come":    {"", again("HTTP/1.1 103 Early Hints\r\n\r\n", 0), "headers exceeded"},
		"another protocol":       {"HTTP/1.1 101 Switching Protocols\r\n\r\n", nil, "101"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s, kill := w.server()
				var read atomic.Int64
				transport := newTransport(nil)
				transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go l.serve(w, countedConn{far, &read})
					return near, nil
				}
				s.client.Transport = mixed{w, transport}
				defer func() {
					kill()
					// Who writes slowly notices it then.
					time.Sleep(2 * time.Second)
				}()

				_, err := s.PutTarget(t.Context(), project, wire.TargetSettings{
					Name: "liar", Kind: wire.TargetWebhook, URL: "http://liar",
				})
				if err != nil {
					t.Fatal(err)
				}
				w.target(s, "fast", wire.TargetWebhook)
				w.notify("first", "second", "third")
				time.Sleep(2 * time.Second)
				w.wantTitles("fast", "first", "second", "third")

				calls, state := w.got("liar"), w.state(s, "liar")
				if read.Load() > int64(len(calls))*(128<<10) {
					t.Errorf("%d bytes were read in %d calls", read.Load(), len(calls))
				}
				if l.fails != "" {
					time.Sleep(time.Minute)
					state = w.state(s, "liar")
					if state.Waiting != 3 || state.Delivered != 0 || !strings.Contains(state.Error, l.fails) {
						t.Errorf("it is %+v", state)
					}
					return
				}

				var ids []string
				for _, c := range calls {
					ids = append(ids, c.header.Get("webhook-id"))
				}
				slices.Sort(ids)
				if len(calls) != 3 || len(slices.Compact(ids)) != 3 || state.Delivered != 3 || state.Waiting != 0 {
					t.Errorf("after %d calls with the ids %v, it is %+v", len(calls), ids, state)
				}
			})
		})
	}
}
