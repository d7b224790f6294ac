//go:build linux && bench

package bench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// runSink runs a process that does as little as a server could do: it unpacks batches,
// counts their lines and answers that it has them. It prints its address and runs until
// it is killed. /counted answers the number of events, and of their bytes on the wire and
// unpacked.
func runSink() {
	ln, err := net.Listen("tcp", os.Getenv("SINK"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(ln.Addr())

	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(4))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	var events, travelled, unpacked atomic.Int64
	s := fasthttp.Server{MaxRequestBodySize: 64 << 20, Handler: func(c *fasthttp.RequestCtx) {
		c.Response.Header.Set("Promptspool-Version", "sink")
		c.SetContentType("application/json")
		switch string(c.Path()) {
		case "/sync/key":
			c.SetBodyString(`{"success":true,"account":"a","key_id":"k","scope":"full"}`)
		case "/sync/events":
			lines, err := decoder.DecodeAll(c.PostBody(), nil)
			n := bytes.Count(lines, []byte("\n"))
			if err != nil {
				c.Error(err.Error(), 500)
				return
			}
			events.Add(int64(n))
			travelled.Add(int64(len(c.PostBody())))
			unpacked.Add(int64(len(lines)))
			fmt.Fprintf(c, `{"success":true,"accepted":%d,"duplicate":0,"refused":[]}`, n)
		case "/counted":
			fmt.Fprintf(c, `{"events":%d,"travelled":%d,"unpacked":%d}`,
				events.Load(), travelled.Load(), unpacked.Load())
		default:
			c.SetStatusCode(501)
			c.SetBodyString(`{"success":false,"error":"not_implemented","message":"This counts.","fields":[]}`)
		}
	}}
	fmt.Fprintln(os.Stderr, s.Serve(ln))
}
