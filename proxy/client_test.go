package proxy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"promptspool/api/client"
	"promptspool/api/wire"
)

// realServer is a server behind a real socket, that fails as scripted before it answers in order.
type realServer struct {
	t  testing.TB
	mu sync.Mutex
	// faults happen to one batch each, after it was applied.
	faults  []func(w http.ResponseWriter)
	batches int
	got     map[string]bool
	all     chan struct{} // closed when want events are there and the faults are over
	want    int
}

func (s *realServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := r.Header.Get("X-API-KEY"); key != string(annsKey) {
		s.t.Errorf("the key is %q", key)
	}

	w.Header().Set("Promptspool-Version", "test")
	if r.Method+" "+r.URL.Path == "GET /sync/key" {
		_ = json.NewEncoder(w).Encode(annIs)
		return
	}

	if r.Method+" "+r.URL.Path != "POST /sync/events" || r.Header.Get("Content-Encoding") != "zstd" {
		s.t.Errorf("there came %s %s, encoded %q", r.Method, r.URL.Path, r.Header.Get("Content-Encoding"))
	}

	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	events := unpack(s.t, body)
	for _, e := range events {
		s.got[nameIn(e)] = true
	}
	s.batches++

	if len(s.faults) > 0 {
		fault := s.faults[0]
		s.faults = s.faults[1:]
		fault(w)
		return
	}

	_ = json.NewEncoder(w).Encode(wire.BatchAnswer{Success: true, Accepted: len(events), Refused: []wire.Result{}})
	if len(s.got) == s.want {
		close(s.all)
	}
}

func TestRealConnectionsThatBreakLoseNothing(t *testing.T) {
	srv := &realServer{t: t, got: map[string]bool{}, want: 3, all: make(chan struct{})}
	srv.faults = []func(w http.ResponseWriter){
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, // a reset
		func(w http.ResponseWriter) { // an answer cut short
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"success":true,"accepted":3`)
		},
		func(w http.ResponseWriter) { // a login page
			w.Header().Del("Promptspool-Version")
			_, _ = io.WriteString(w, "<html>Who are you?</html>")
		},
	}
	web := httptest.NewServer(srv)
	defer web.Close()
	upstream, err := client.New(client.Config{URL: web.URL, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()

	s := newSidecar(t, upstream)
	s.mustWrite(annsKey, "e1", "e2", "e3")
	stop := s.forward()
	defer stop()
	select {
	case <-srv.all:
	case <-time.After(time.Minute):
		t.Fatal("the events did not arrive within a minute")
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.batches != 4 {
		t.Errorf("the batch was sent %d times; want 4, for there were three faults", srv.batches)
	}
	reasons := map[string]float64{"network": 2, "foreign": 1, "status": 0, "answer": 0, "later": 0}
	for reason, want := range reasons {
		if n := s.metric("promptspool_forward_retries_total", reason); n != want {
			t.Errorf("%v retries are counted for %q; want %v", n, reason, want)
		}
	}
}
