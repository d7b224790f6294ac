package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

func TestAnAnswerThatIsStreamedTakesAsLongAsItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const whole = 100 << 20
		answer := streamedAnswer(t, whole)

		// Slowly, but never so slowly as to stall.
		began, read := time.Now(), int64(0)
		for range time.Tick(streamStall / 30) {
			n, err := io.CopyN(io.Discard, answer, streamBytes/20)
			read += n
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("after %d bytes and %v: %v", read, time.Since(began), err)
			}
		}
		if read != whole || time.Since(began) < 2*streamStall {
			t.Errorf("%d of %d bytes came, in %v", read, whole, time.Since(began))
		}
	})
}

// Who takes a little all the time holds an export's place all the same.
func TestAnAnswerThatIsReadTooSlowlyIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := streamedAnswer(t, 100<<20)

		began := time.Now()
		for range time.Tick(streamStall / 30) {
			_, err := io.CopyN(io.Discard, answer, streamBytes/60)
			if err == io.EOF || time.Since(began) > 3*streamStall {
				t.Fatalf("it was not cut: %v after %v", err, time.Since(began))
			}
			if err != nil {
				return
			}
		}
	})
}

// streamedAnswer is a streamed answer of so many bytes, on a connection that holds none of them back.
func streamedAnswer(t *testing.T, whole int64) io.Reader {
	t.Helper()
	conn, serves := net.Pipe()
	server := &fasthttp.Server{WriteTimeout: streamStall, NoDefaultDate: true, Handler: func(ctx *fasthttp.RequestCtx) {
		streamBody(ctx, io.LimitReader(zeros{}, whole))
	}}
	served := make(chan error, 1)
	go func() { served <- server.ServeConn(serves) }()
	t.Cleanup(func() {
		_ = conn.Close()
		<-served // its error is what became of the caller
	})

	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}

	return answer.Body
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)

	return len(p), nil
}
