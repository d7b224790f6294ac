package machine

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// onSocket serves 200 on a unix socket.
func onSocket(t *testing.T) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket") // short, for the address
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	ln, err := Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("in"))
	}))

	s.Listener.Close()
	s.Listener = ln
	s.Start()
	t.Cleanup(s.Close)
	return path
}

// callSocket returns the response to our own user.
func callSocket(t *testing.T, path string) string {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	res, err := c.Get("http://socket/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestASocketIsForOurUserAndGroup(t *testing.T) {
	path := onSocket(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if answer := callSocket(t, path); info.Mode() != os.ModeSocket|0o660 || answer != "in" {
		t.Errorf("a socket of mode %v answers us %q", info.Mode(), answer)
	}
}
