package api_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"promptspool/api"
	"promptspool/metrics"
)

func TestAListenerForExportersServesNothingElse(t *testing.T) {
	keep := &recorder{}
	server := api.New(api.Config{
		Name:          "here",
		ClockID:       clockID,
		Version:       "test",
		Recorder:      keep,
		Authenticator: keys{},
		Pages:         onePage{},
		Metrics:       metrics.New("sidecar", "test"),
		Logger:        discard,
	}).NewServer()
	ln := fasthttputil.NewInmemoryListener()
	done := make(chan error, 1)
	go func() { done <- server.ServeOTLP(ln) }()

	dial := func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	for call, want := range map[string]int{
		"POST /v1/traces": 200, "POST /": 200, "POST /v1/logs": 200, "POST /otel/v1/metrics": 200,
		"GET /v1/traces": 405, "POST /rest/track-request": 404, "POST /sync/events": 404, "GET /sync/key": 404,
		"GET /": 404, "GET /docs": 404, "POST /nothing": 404,
	} {
		method, path, _ := strings.Cut(call, " ")
		req, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(oneSpan))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-KEY", "app")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "text/html")

		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if kind := res.Header.Get("Content-Type"); res.StatusCode != want || kind != "application/json" {
			t.Errorf("%s: %d %s, want %d", call, res.StatusCode, kind, want)
		}
	}
	if len(keep.events) != 2 {
		t.Errorf("%d spans were recorded, want 2", len(keep.events))
	}

	// It ends with the other listeners of the server.
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
