package api

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
	"promptspool/metrics"
)

func TestABodyHasAsMuchTimeAsItsLengthNeeds(t *testing.T) {
	for length, want := range map[int]time.Duration{0: 15 * time.Second, 4 << 10: 15*time.Second + time.Second/64, 32 << 20: 143 * time.Second, 1 << 40: 143 * time.Second, -1: time.Minute} {
		var h fasthttp.RequestHeader
		h.SetMethod("POST")
		h.SetContentLength(length)
		if got := bodyTime(&h).ReadTimeout; got != want {
			t.Errorf("%d bytes have %v, want %v", length, got, want)
		}
	}
}

// A sidecar keeps what a slow machine or network kept from arriving; what is refused for its content it gives up.
func TestABatchThatComesTooSlowlyIsNotRefusedForItsContent(t *testing.T) {
	for code, broken := range map[wire.Code]error{wire.CodeTimeout: os.ErrDeadlineExceeded, wire.CodeBadJSON: io.ErrUnexpectedEOF} {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetBodyStream(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken)), 100_000)
		a := &API{batches: newBatchPool(1<<20, metrics.New("server", "test"))}

		if err := a.newBatch("k").receive(&ctx); !wire.IsCode(err, code) || !ctx.Response.ConnectionClose() {
			t.Errorf("%v: %v, the connection is closed: %v", broken, err, ctx.Response.ConnectionClose())
		}
	}
}
