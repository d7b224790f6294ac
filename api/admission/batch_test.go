package admission

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// A sidecar keeps a batch that a slow machine or network kept from arriving. One that is refused
// for its content it gives up.
func TestABatchThatComesTooSlowlyIsNotRefusedForItsContent(t *testing.T) {
	for code, broken := range map[wire.Code]error{
		wire.CodeTimeout: os.ErrDeadlineExceeded,
		wire.CodeBadJSON: io.ErrUnexpectedEOF,
	} {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetBodyStream(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken)), 100_000)
		in := New(Config{BatchBytes: 1 << 20, Metrics: metrics.New("server", "test")})

		err := in.NewBatch("k").receive(&ctx)
		if !wire.IsCode(err, code) || !ctx.Response.ConnectionClose() {
			t.Errorf("%v: %v, the connection is closed: %v", broken, err, ctx.Response.ConnectionClose())
		}
	}
}
