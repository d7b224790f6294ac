package ops

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestProfilesAreForTheProcessesOwnUserOnly(t *testing.T) {
	dir := t.TempDir()
	control(t, dir, nil)

	own := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", filepath.Join(dir, SocketName))
		},
	}}
	for path, want := range map[string]string{
		"heap?debug=1":      "heap profile:",
		"goroutine?debug=1": "goroutine profile:",
	} {
		res, err := own.Get("http://localhost/debug/pprof/" + path)
		if err != nil {
			t.Fatal(err)
		}

		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || !strings.HasPrefix(string(body), want) {
			t.Errorf("%s: status %d, body %.100q, error %v", path, res.StatusCode, body, err)
		}
	}

	if r := start(t).call("GET", "/debug/pprof/heap"); r.Status != 404 {
		t.Errorf("the operations listener answers %d, want 404", r.Status)
	}
}
