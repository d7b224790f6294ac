package edge_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
)

func TestAServerEndsAlsoWhenItIsToldToBeforeItHasBegun(t *testing.T) {
	for round := range 100 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := edge.NewServer(&fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}, nil)
		ended := make(chan error)
		go func() { ended <- s.Serve(ln) }()

		for range round % 10 {
			runtime.Gosched() // Serve has come a little further
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			_ = conn.Close()
			t.Fatal("the listener is still open")
		}
	}
}
