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

	"promptspool/api/admission"
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

// A caller who takes a little all the time still holds an export's place.
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

// A caller who takes a large answer slowly holds room that other large calls wait for.
func TestALargeAnswerHoldsRoomForAsLongAsItIsReadAtTheLeastPace(t *testing.T) {
	for name, c := range map[string]struct {
		each int64 // bytes in a tenth of admission.PaceTime
		cut  bool
	}{
		"in time":    {each: admission.PaceBytes / 9},
		"too slowly": {each: admission.PaceBytes / 12, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const whole = 2 << 20
				slow := &exchange{ownContext: requestContext{claim: admission.NewRoom(16<<20, 64<<20).Claim(false)}}
				claim := &slow.ownContext.claim
				answer := answerOf(t, func(ctx *fasthttp.RequestCtx) {
					slow.ctx = ctx
					if err := admission.TakeRoom(admission.WithRoom(t.Context(), claim), 5*whole); err != nil {
						t.Error(err)
					}
					ctx.SetBody(make([]byte, whole))
					slow.releaseRoom()
				})

				if !claim.Holds() {
					t.Error("an answer that is being read holds no room")
				}

				began, read := time.Now(), int64(0)
				for range time.Tick(admission.PaceTime / 10) {
					n, err := io.CopyN(io.Discard, answer, c.each)
					read += n
					if err != nil {
						break
					}
				}

				took := time.Since(began)
				if (read < whole) != c.cut || c.cut && took > 2*admission.PaceTime {
					t.Errorf("%d of %d bytes came, in %v", read, whole, took)
				}

				synctest.Wait()
				if claim.Holds() {
					t.Error("it holds room at the end")
				}
			})
		})
	}
}

// streamedAnswer returns a streamed answer of so many bytes.
func streamedAnswer(t *testing.T, whole int64) io.Reader {
	return answerOf(t, func(ctx *fasthttp.RequestCtx) { streamBody(ctx, io.LimitReader(zeros{}, whole)) })
}

// answerOf returns what a handler answers, on a connection that buffers none of it.
func answerOf(t *testing.T, handler fasthttp.RequestHandler) io.Reader {
	t.Helper()
	conn, serves := net.Pipe()
	server := &fasthttp.Server{WriteTimeout: streamStall, NoDefaultDate: true, Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.ServeConn(serves) }()
	t.Cleanup(func() {
		_ = conn.Close()
		<-served // its error is about the caller, who hung up
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
