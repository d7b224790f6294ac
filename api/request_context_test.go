package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

func TestTheContextOfACallEndsWithTheCallTheAPIOrItsTime(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(l *requestContext, stop context.CancelFunc)
		want error
	}{
		{"the call is answered", func(l *requestContext, _ context.CancelFunc) { l.end() }, context.Canceled},
		{"the API ends", func(_ *requestContext, stop context.CancelFunc) { stop() }, context.Canceled},
		{
			"its time is over",
			func(*requestContext, context.CancelFunc) { <-time.After(requestTimeMax) },
			context.DeadlineExceeded,
		},
	} {
		for _, asked := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				parent, stop := context.WithCancel(t.Context())
				defer stop()
				a, l := &API{root: parent}, new(requestContext)
				a.beginContext(l, new(fasthttp.RequestCtx), time.Now())
				defer l.end()

				if at, ok := l.Deadline(); !ok || time.Until(at) != requestTimeMax || l.Err() != nil {
					t.Fatalf("it begins with the deadline %v and %v", at, l.Err())
				}

				var child context.Context = l
				if asked {
					var done context.CancelFunc
					child, done = context.WithCancel(l)
					defer done()
				}

				c.end(l, stop)
				synctest.Wait()
				if err := l.Err(); !errors.Is(err, c.want) {
					t.Errorf("%s, asked before: %v: %v, want %v", c.name, asked, err, c.want)
				}
				<-child.Done() // else the bubble is stuck, which fails the test
				if err := child.Err(); !errors.Is(err, c.want) {
					t.Errorf("%s, asked before: %v: a context of it says %v, want %v", c.name, asked, err, c.want)
				}
			})
		}
	}
}

func TestABodyHasAsMuchTimeAsItsLengthNeeds(t *testing.T) {
	for length, want := range map[int]time.Duration{
		0:        15 * time.Second,
		4 << 10:  15*time.Second + time.Second/64,
		32 << 20: 143 * time.Second,
		1 << 40:  143 * time.Second,
		-1:       time.Minute,
	} {
		var h fasthttp.RequestHeader
		h.SetMethod("POST")
		h.SetContentLength(length)
		if got := bodyTime(&h).ReadTimeout; got != want {
			t.Errorf("%d bytes have %v, want %v", length, got, want)
		}
	}
}
