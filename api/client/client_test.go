package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"promptspool/api/wire"
)

func TestMain(m *testing.M) {
	// fasthttp's worker pool looks only every ten seconds whether it was stopped.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

const key = wire.Secret("ps_a-key-that-nobody-may-read")

var caller = wire.Identity{Account: "acme", Scope: wire.ScopeFull, Key: key, Verified: true}

// serve starts a server and returns a client of it. The answers have the header of a
// promptspool server, unless the handler deletes it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Promptspool-Version", "9.9.9")
		handler(w, r)
	}))
	t.Cleanup(server.Close)

	return dial(t, server.URL)
}

func dial(t *testing.T, url string) *Client {
	t.Helper()
	c, err := New(Config{URL: url, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)

	return c
}

// answer returns a handler that always answers the same.
func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestURLsOfServers(t *testing.T) {
	for _, url := range []string{
		"http://127.0.0.1:8788", "https://spool.example", "http://[::1]:8788", "http://host/promptspool",
		"HTTP://host",
	} {
		if _, err := New(Config{URL: url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}

	for _, url := range []string{
		"", "localhost:8788", "127.0.0.1:8788", "/path", "ftp://host", "http://", "http://:8788",
		"http://host:port", "http://host?", "http://host?a=b", "http://host#", "http://host#part",
		"http://user@host", " http://host", "http://host\n", "unix:/x",
	} {
		_, err := New(Config{URL: url})
		if err == nil {
			t.Errorf("%q was accepted", url)
		} else if s := err.Error(); !strings.Contains(s, "http://127.0.0.1:8788") && !strings.Contains(s, "leave out") {
			t.Errorf("%q: %q does not name the next step", url, s)
		}
	}
}

func TestAPasswordInAURLIsNotRepeated(t *testing.T) {
	for _, url := range []string{
		"http://user:hunter2@host",
		"ftp://user:hunter2@host",
		"http://user:hunter2@host:port",
	} {
		if _, err := New(Config{URL: url}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestAURLMayHaveAPathAndSlashesAtItsEnd(t *testing.T) {
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.RequestURI
		answer(200, `{"success":true,"account":"acme"}`, "Promptspool-Version", "9.9.9")(w, r)
	}))
	t.Cleanup(server.Close)

	for suffix, want := range map[string]string{
		"":        "/sync/key",
		"/":       "/sync/key",
		"///":     "/sync/key",
		"/a/b":    "/a/b/sync/key",
		"/a%2Fb/": "/a%2Fb/sync/key",
	} {
		if _, err := dial(t, server.URL+suffix).Verdict(t.Context(), key); err != nil {
			t.Error(err)
		}
		same(t, "path behind "+suffix, path, want)
	}
}

func TestAKeyThatNoHeaderCanCarryIsRefusedWithoutACall(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was called") })
	tooLong := wire.Secret(strings.Repeat("k", keyBytesMax+1))
	for _, key := range []wire.Secret{"key\n", "\rkey", "k\tey", "key\x00", "key\x7f", tooLong} {
		// Not CodeUnavailable, or a sidecar would try to deliver with this key forever.
		if _, err := c.Send(t.Context(), key, 1, nil); !wire.IsCode(err, wire.CodeUnauthorized) {
			t.Errorf("key %.20q: %v", string(key), err)
		}
	}
}

func TestOddKeysAreLeftToTheServer(t *testing.T) {
	for _, odd := range []string{strings.Repeat("k", keyBytesMax), "nobody's key", "schlüssel"} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			same(t, "key", r.Header.Get("X-API-KEY"), odd)
			answer(200, `{"success":true,"account":"acme"}`)(w, r)
		})
		if _, err := c.Verdict(t.Context(), wire.Secret(odd)); err != nil {
			t.Error(err)
		}
	}
}
