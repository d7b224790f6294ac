package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

func TestNoServerListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	_ = ln.Close()

	_, err = dial(t, "http://"+address).Verdict(t.Context(), key)
	wantAway(t, "refused", err, wire.Away{Err: syscall.ECONNREFUSED})
	if strings.Contains(err.Error(), "/sync/key") {
		t.Errorf("%v names a route that the caller does not know", err)
	}
}

func TestTheConnectionBreaksWithinAnAnswer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"success":true`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	_, err := c.Send(t.Context(), key, 1, []byte("x"))
	wantAway(t, "broken", err, wire.Away{Err: io.ErrUnexpectedEOF})
}

func TestACancelledCallEndsImmediately(t *testing.T) {
	polling := make(chan struct{})
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(polling)
		<-r.Context().Done() // when the client has left
	})

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-polling
		cancel()
	}()
	_, err := c.Changes(ctx, caller, wire.ChangesQuery{Wait: time.Minute})
	wantAway(t, "cancelled", err, wire.Away{Err: context.Canceled})
}

func TestARedirectIsNotFollowedAndTheKeyGoesNowhereElse(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)

	for _, status := range []int{301, 302, 303, 307, 308} {
		c := serve(t, answer(status, `{"success":true,"account":"mallory"}`, "Location", elsewhere.URL))
		_, err := c.Verdict(t.Context(), key)
		wantAway(t, "redirect", err, wire.Away{Status: status})
		_, err = c.Send(t.Context(), key, 1, []byte("x"))
		wantAway(t, "redirect of a batch", err, wire.Away{Status: status})
	}
}

// pipes returns a client whose connections are pipes, and a channel of the server's ends of
// them. With pipes, time is synctest's.
func pipes(t *testing.T) (*Client, <-chan net.Conn) {
	t.Helper()
	c := dial(t, "http://127.0.0.1:1")
	conns := make(chan net.Conn, 1)
	c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		conns <- theirs
		return ours, nil
	}

	return c, conns
}

func TestASilentServerIsGivenUp(t *testing.T) {
	for name, server := range map[string]func(net.Conn){
		"reads nothing":                 func(net.Conn) {},
		"answers nothing":               func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"stops in the middle of a body": func(conn net.Conn) { _, _ = io.ReadFull(conn, make([]byte, 64<<10)) },
		"stops in the middle of its answer": func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			_, _ = io.WriteString(conn,
				"HTTP/1.1 200 OK\r\nPromptspool-Version: 1\r\nContent-Length: 100\r\n\r\n{")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, conns := pipes(t)
				go func() { server(<-conns) }()

				start := time.Now()
				_, err := c.Send(t.Context(), key, 1, make([]byte, 1<<20))
				wantAway(t, name, err, wire.Away{Err: errSilent})
				same(t, "patience", time.Since(start), silenceMax)
				c.Close()
			})
		})
	}
}

func TestASlowServerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, conns := pipes(t)
		go func() {
			conn := <-conns
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
				t.Error(err)
			}

			_, _ = io.WriteString(conn,
				"HTTP/1.1 200 OK\r\nPromptspool-Version: 1\r\nConnection: close\r\n\r\n")
			for _, part := range []string{`{"success"`, `:true,`, `"account"`, `:"acme"}`} {
				<-time.After(silenceMax - time.Second) // by synctest's clock
				_, _ = io.WriteString(conn, part)
			}
			_ = conn.Close()
		}()

		v, err := c.Verdict(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "account", v.Account, "acme")
		c.Close()
	})
}

// brittle is a connection that rejects writes once it is broken.
type brittle struct {
	net.Conn
	broken *atomic.Bool
}

func (b *brittle) Write(p []byte) (int, error) {
	if b.broken.Load() {
		return 0, syscall.EPIPE
	}

	return b.Conn.Write(p)
}

func TestABatchGoesOutAgainWhenItsIdleConnectionTurnsOutBroken(t *testing.T) {
	var bodies []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, string(body))
		answer(200, `{"success":true,"accepted":1}`)(w, r)
	})

	var conns []*brittle
	dialer := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		conns = append(conns, &brittle{conn, new(atomic.Bool)})
		return conns[len(conns)-1], err
	}
	c.http.Transport.(*http.Transport).DialContext = dialer

	for _, batch := range []string{"first", "second"} {
		if _, err := c.Send(t.Context(), key, 1, []byte(batch)); err != nil {
			t.Fatal(err)
		}
		conns[0].broken.Store(true)
	}
	same(t, "batches that arrived", bodies, []string{"first", "second"})
	same(t, "connections", len(conns), 2)
}
