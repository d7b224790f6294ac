//go:build linux

package delivery

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestWhatIsNoHTTPGetsAJSONAnswerAndAClosedConnection(t *testing.T) {
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t))
	for name, text := range map[string]string{
		"no HTTP": "hello\r\n\r\n",
		"a huge header": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\nX: " +
			strings.Repeat("x", 20<<10) + "\r\n\r\n",
		"two lengths": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\n" +
			"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a length of abc": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
		"a broken chunk": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\n" +
			"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n",
		"chunks and bytes": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\n" +
			"Content-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", sidecar.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}

		var answer bytes.Buffer
		// To the end: the connection is closed.
		if _, err := answer.ReadFrom(conn); err != nil && answer.Len() == 0 {
			t.Errorf("%s: %v", name, err)
		}
		_, body, _ := strings.Cut(answer.String(), "\r\n\r\n")
		isJSON := json.Valid([]byte(body)) && strings.HasPrefix(body, "{")
		if !strings.HasPrefix(answer.String(), "HTTP/1.1 4") || !isJSON {
			t.Errorf("%s: %q", name, answer.String())
		}
		_ = conn.Close()
	}
	if r := sidecar.Call("GET", "/", nil); r.Status != http.StatusNotFound {
		t.Errorf("after them: %d", r.Status)
	}
}
