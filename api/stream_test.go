package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func TestAnAnswerThatIsStreamedTakesAsLongAsItIsRead(t *testing.T) {
	const whole, stall = 16 << 20, 300 * time.Millisecond
	defer func(before time.Duration) { streamStall = before }(streamStall)
	streamStall = stall

	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{WriteTimeout: stall, CloseOnShutdown: true, NoDefaultDate: true, Handler: func(ctx *fasthttp.RequestCtx) {
		streamBody(ctx, io.LimitReader(zeros{}, whole))
	}}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		_ = server.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	conn, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()

	// Slowly, but never so slowly as to stall.
	began, read, tick := time.Now(), int64(0), time.NewTicker(stall/30)
	defer tick.Stop()
	for range tick.C {
		n, err := io.CopyN(io.Discard, answer.Body, whole/100)
		read += n
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes and %v: %v", read, time.Since(began), err)
		}
	}
	if read != whole || time.Since(began) < 2*stall {
		t.Errorf("%d of %d bytes came, in %v", read, whole, time.Since(began))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)

	return len(p), nil
}
