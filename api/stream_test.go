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
	const whole = 16 << 20
	stall := 300 * time.Millisecond
	answer := streamedAnswer(t, whole, stall, 32<<10)

	// Slowly, but never so slowly as to stall.
	began, read, tick := time.Now(), int64(0), time.NewTicker(stall/30)
	defer tick.Stop()
	for range tick.C {
		n, err := io.CopyN(io.Discard, answer, whole/100)
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

// Who takes a little all the time holds an export's place all the same.
func TestAnAnswerThatIsReadTooSlowlyIsCut(t *testing.T) {
	const whole = 64 << 20 // more than what the kernel holds
	answer := streamedAnswer(t, whole, 300*time.Millisecond, 32<<20)

	began, tick := time.Now(), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		_, err := io.CopyN(io.Discard, answer, 64<<10)
		if err == io.EOF || time.Since(began) > 10*time.Second {
			t.Fatalf("it was not cut: %v after %v", err, time.Since(began))
		}
		if err != nil {
			return
		}
	}
}

// streamedAnswer is a streamed answer of so many bytes, with another pace.
func streamedAnswer(t *testing.T, whole int64, stall time.Duration, bytes int64) io.Reader {
	t.Helper()
	stallBefore, bytesBefore := streamStall, streamBytes
	streamStall, streamBytes = stall, bytes

	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{WriteTimeout: stall, CloseOnShutdown: true, NoDefaultDate: true, Handler: func(ctx *fasthttp.RequestCtx) {
		streamBody(ctx, io.LimitReader(zeros{}, whole))
	}}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	conn, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = server.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
		streamStall, streamBytes = stallBefore, bytesBefore
	})

	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })

	return answer.Body
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)

	return len(p), nil
}
