//go:build linux && soak

package overload

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// A slow caller is cut even when nobody needs its place: after 15 s, with an answer if a
// call was begun.
func TestASlowCallIsCutInTime(t *testing.T) {
	t.Parallel()
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t))
	asked := time.Now()
	conns := map[string]net.Conn{}
	for name, text := range unfinished() {
		if name != "a call, and then nothing" && name != "chunks without a last one" { // they have minutes
			conns[name] = begun(t, sidecar.Addr, text)
		}
	}

	for name, conn := range conns {
		_ = conn.SetReadDeadline(asked.Add(40 * time.Second))
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		// With Close, a client does not take it for the answer to another call.
		if err != nil || res.StatusCode != http.StatusRequestTimeout || !res.Close {
			t.Errorf("%s is answered %+v, %v", name, res, err)
			continue
		}

		_, _ = io.Copy(io.Discard, res.Body)
		_, err = io.Copy(io.Discard, in)
		if late, ok := err.(net.Error); ok && late.Timeout() {
			t.Errorf("%s is not cut", name)
		}
		if took := time.Since(asked); took < 14*time.Second {
			t.Errorf("%s is cut after %v", name, took)
		}
	}
}
