//go:build linux

package releases

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
)

// newKind is a kind of event, and newRight a right of a key, that no version knows yet.
const (
	newKind  = "annotation"
	newRight = "annotate"
)

// exchange is a call of a sidecar, or of who publishes a template, and what the server answered.
type exchange struct {
	Key    string          `json:"key"` // its name
	Method string          `json:"method"`
	Path   string          `json:"path"`           // with its query
	Body   string          `json:"body,omitempty"` // unpacked
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// between stands between a sidecar and its server, and notes what they say.
type between struct {
	*httptest.Server
	t      *testing.T
	keys   map[string]string // secrets, by the names of keys
	server string            // its address

	away     atomic.Bool // the server cannot be reached
	annotate atomic.Bool // keys of scope log have newRight as well
	upgraded atomic.Bool // the server knows newKind, as another name of metadata

	mu   sync.Mutex
	said []exchange                 // under mu, in the order in which they ended
	has  map[string]map[string]bool // under mu; ids of events at the server, by the ids of their records
}

// newBetween stands in front of the server at an address.
func newBetween(t *testing.T, server string, keys map[string]string) *between {
	t.Helper()
	b := &between{t: t, keys: keys, server: server, has: map[string]map[string]bool{}}
	b.Server = listening(t, b)
	return b
}

// listening starts a server in this process, until the test ends.
func listening(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections() // of polls that wait
		s.Close()
	})
	return s
}

// ServeHTTP passes a call on.
func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, err := unpackedBody(r)
	if err != nil || b.away.Load() {
		panic(http.ErrAbortHandler)
	}
	// The call that changes a template ends before those that hear of it.
	publishes := r.Method == "POST" && r.URL.Path == "/rest/prompt-templates"
	if publishes {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	res, answer, err := b.ask(r, sent)
	if err != nil {
		panic(http.ErrAbortHandler)
	}

	if !publishes {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	b.noteLocked(exchange{
		Key:    nameOf(b.keys, r.Header.Get("X-API-KEY")),
		Method: r.Method,
		Path:   r.RequestURI,
		Body:   string(sent),
		Status: res.StatusCode,
		Answer: answer,
	})
	if b.annotate.Load() && r.URL.Path == "/sync/key" {
		answer = bytes.Replace(answer, []byte(`"scope":"log"`), []byte(`"scope":"log,`+newRight+`"`), 1)
	}
	for name, values := range res.Header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(answer)
}

// ask makes a call at the server, and returns its answer.
func (b *between) ask(r *http.Request, body []byte) (*http.Response, []byte, error) {
	if b.upgraded.Load() {
		body = bytes.ReplaceAll(body, []byte(`"kind":"`+newKind+`"`), []byte(`"kind":"metadata"`))
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+b.server+r.RequestURI,
		bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Content-Encoding")

	res, err := direct.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)

	return res, answer, err
}

// direct is without the harness's comparison with what this version describes.
var direct = &http.Transport{}

// taken returns how many events of a record the server has taken, each counted once.
func (b *between) taken(record string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.has[record])
}

// noteLocked notes what a sidecar and the server have said. mu must be held.
func (b *between) noteLocked(e exchange) {
	b.said = append(b.said, e)
	if e.Path != "/sync/events" || e.Status != 200 {
		return
	}
	var a wire.BatchAnswer
	if err := json.Unmarshal(e.Answer, &a); err != nil {
		b.t.Error(err)
	}
	for _, event := range eventsOf(b.t, e.Body) {
		if slices.ContainsFunc(a.Refused, func(r wire.Result) bool { return r.ID == event.ID }) {
			continue
		}
		if b.has[event.RequestID] == nil {
			b.has[event.RequestID] = map[string]bool{}
		}
		b.has[event.RequestID][event.ID] = true
	}
}

// nameOf returns the name of a key.
func nameOf(keys map[string]string, secret string) string {
	for name, s := range keys {
		if s == secret {
			return name
		}
	}
	return unknown
}

// unpackedBody reads the body of a request.
func unpackedBody(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "zstd" {
		return io.ReadAll(r.Body)
	}
	d, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return io.ReadAll(d)
}

// eventLine is what is read of an event on its way.
type eventLine struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	RequestID string `json:"request_id"`
}

// eventsOf returns the events of a batch.
func eventsOf(t *testing.T, batch string) (events []eventLine) {
	t.Helper()
	for line := range strings.Lines(batch) {
		var e eventLine
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("a line of a batch: %v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}
