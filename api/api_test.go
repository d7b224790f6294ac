package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"promptspool/api"
	"promptspool/api/openapitest"
	"promptspool/api/wire"
	"promptspool/metrics"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(compared{m},
		// fasthttp's worker pool looks only every ten seconds whether it was stopped.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// calls are those of all tests.
var calls openapitest.Recorder

// compared runs the tests, and compares their calls with the description of the API.
type compared struct{ *testing.M }

// Run returns 1 as well if a call differs from the description.
func (c compared) Run() int {
	code := c.M.Run()
	if err := calls.Check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}

	return code
}

// recorder keeps what it is given, or calls do.
type recorder struct {
	mu     sync.Mutex
	events []wire.Event
	do     func(events []wire.Event) ([]wire.Result, error)
}

func (r *recorder) Record(_ context.Context, _ wire.Identity, events []wire.Event) ([]wire.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.do != nil {
		return r.do(events)
	}

	results := make([]wire.Result, len(events))
	for i, e := range events {
		e.Body = bytes.Clone(e.Body)
		r.events = append(r.events, e)
		results[i] = wire.Result{ID: e.ID, Code: wire.ResultAccepted}
	}

	return results, nil
}

// keys accepts the text of a scope as a key that has it and, as a key that cannot be verified,
// "unseen".
type keys struct{}

func (keys) Authenticate(_ context.Context, key wire.Secret) (wire.Identity, error) {
	if key == "unseen" {
		return wire.Identity{Key: key}, nil
	}
	scope, err := wire.ParseScope(string(key))
	if err != nil {
		return wire.Identity{}, wire.Errorf(wire.CodeUnauthorized, "This key is not known.")
	}

	return wire.Identity{
		Account:  "a",
		KeyID:    "key-" + string(key),
		Scope:    scope,
		Key:      key,
		Verified: true,
	}, nil
}

// scene is an API on an in-memory listener.
type scene struct {
	t        *testing.T
	recorder *recorder
	http     *http.Client
}

// start starts an API whose configuration may be changed first.
func start(t *testing.T, change func(*api.Config)) *scene {
	t.Helper()
	ln := fasthttputil.NewInmemoryListener()
	dial := func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }

	return serve(t, ln, dial, change)
}

// startTCP is start on a real socket.
func startTCP(t *testing.T, change func(*api.Config)) (s *scene, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = ln.Addr().String()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}

	return serve(t, ln, dial, change), addr
}

// discard logs nothing.
var discard = slog.New(slog.DiscardHandler)

// batchCall returns the call of a batch, as fasthttp gives it to a handler.
func batchCall(body []byte, encoding string) *fasthttp.RequestCtx {
	var req fasthttp.Request
	req.Header.SetMethod("POST")
	req.SetRequestURI("/sync/events")
	req.Header.Set("X-API-KEY", "app")
	req.Header.Set("Content-Encoding", encoding)
	req.SetBodyStream(bytes.NewReader(body), len(body))
	req.Header.SetContentLength(len(body))

	// Init copies the head only.
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&req, nil, nil)
	ctx.Request.SetBodyStream(bytes.NewReader(body), len(body))

	return ctx
}

// clockID is the ClockID of the APIs under test.
const clockID = "0198c5a0-0000-7000-8000-00000000c10c"

// serve starts an API on ln. Every call is compared with the API's description when all tests have run.
func serve(
	t *testing.T, ln net.Listener, dial func(context.Context, string, string) (net.Conn, error),
	change func(*api.Config),
) *scene {
	t.Helper()
	s := &scene{t: t, recorder: &recorder{}}
	c := api.Config{
		Name:          "here",
		ClockID:       clockID,
		Version:       "test",
		Recorder:      s.recorder,
		Authenticator: keys{},
		Metrics:       metrics.New("sidecar", "test"),
		Logger:        discard,
	}
	if change != nil {
		change(&c)
	}

	server := api.New(c).NewServer()
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()

	transport := &http.Transport{DialContext: dial}
	s.http = &http.Client{Transport: &openapitest.Transport{
		RoundTripper: transport,
		Note: func(e openapitest.Exchange) {
			e.Test = t.Name()
			calls.Note(e)
		},
	}}

	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	return s
}

// answer is a decoded answer.
type answer struct {
	Status    int         `json:"-"`
	Header    http.Header `json:"-"`
	Success   bool
	Error     string
	Message   string
	RequestID string `json:"request_id"`
	Fields    []wire.FieldError
	Accepted  int           // of a batch
	Refused   []wire.Result // of a batch
}

// send makes a call. header lists names and values. The caller closes the answer's body.
func (s *scene) send(method, path, body string, header ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}

	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// read is send, and reads the answer to its end.
func (s *scene) read(method, path, body string, header ...string) (res *http.Response, text string, err error) {
	s.t.Helper()
	res = s.send(method, path, body, header...)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)

	return res, string(all), err
}

// call is read, and checks what all answers in JSON have in common.
func (s *scene) call(method, path, body string, header ...string) answer {
	s.t.Helper()
	res, text, err := s.read(method, path, body, header...)
	a := answer{Status: res.StatusCode, Header: res.Header}
	if err != nil || json.Unmarshal([]byte(text), &a) != nil {
		s.t.Fatalf("%s %s: the answer %d is no JSON object: %q %v", method, path, res.StatusCode, text, err)
	}
	if res.Header.Get("Promptspool-Version") != "test" || res.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s %s: headers %v", method, path, res.Header)
	}
	if a.Success != (a.Status < 400) || !a.Success && (a.Error == "" || a.Message == "" || a.Fields == nil) {
		s.t.Errorf("%s %s: %d answers in another shape: %s", method, path, a.Status, text)
	}

	return a
}

const (
	score = `{"api_key": "app", "request_id": "0198c5a0-0000-7000-8000-000000000000", ` +
		`"score": 87, "note": {"by": "me"}}`

	request = `"function_name": "f", "kwargs": {}, "request_response": {}, ` +
		`"request_start_time": 1, "request_end_time": 2}`
)

func TestAWriteIsHandedOnAsItWasSentLessItsKey(t *testing.T) {
	s := start(t, nil)
	if a := s.call("POST", "/rest/track-score", score); a.Status != 200 {
		t.Fatalf("%+v", a)
	}

	e := s.recorder.events[0]
	if e.Kind != wire.KindScore || e.RequestID != "0198c5a0-0000-7000-8000-000000000000" {
		t.Errorf("%+v", e)
	}
	if e.Sidecar != "here" || time.Since(e.AcceptedAt) > time.Minute {
		t.Errorf("%+v", e)
	}
	if e.Clock != clockID[24:] {
		t.Errorf("the event says clock %q, want the end of %s", e.Clock, clockID)
	}
	want := `{"request_id": "0198c5a0-0000-7000-8000-000000000000","score": 87,"note": {"by": "me"}}`
	if got := string(e.Body); got != want {
		t.Errorf("body %s, want %s", got, want)
	}
}

func TestTheRequestIDIsTheCallersOrDerivedOrNew(t *testing.T) {
	s := start(t, nil)

	own := s.call("POST", "/rest/track-request",
		`{"api_key": "app", "request_id": "0198C5A0-0000-7000-8000-000000000000", `+request)
	if own.RequestID != "0198c5a0-0000-7000-8000-000000000000" {
		t.Errorf("the caller's own id: %+v", own)
	}

	once := s.call("POST", "/rest/track-request", `{"api_key": "app", `+request, "Idempotency-Key", "order 7")
	again := s.call("POST", "/rest/track-request", `{"api_key": "app", `+request, "Idempotency-Key", "order 7")
	if once.RequestID == "" || once.RequestID != again.RequestID {
		t.Errorf("a retry got another id: %q, %q", once.RequestID, again.RequestID)
	}

	fresh := s.call("POST", "/rest/track-request", `{"api_key": "app", `+request)
	if _, err := wire.ParseID(fresh.RequestID); err != nil || fresh.RequestID == once.RequestID {
		t.Errorf("a new id: %+v %v", fresh, err)
	}
}

func TestOnlyTheUnprefixedSpellingTakesAnyResponse(t *testing.T) {
	s := start(t, nil)
	for _, response := range []string{`[{"role": "assistant", "content": "hi"}]`, `"hi"`, `null`} {
		body := `{"api_key": "app", ` + request
		body = strings.Replace(body, `"request_response": {}`, `"request_response": `+response, 1)
		if a := s.call("POST", "/track-request", body); a.Status != 200 {
			t.Errorf("/track-request with %s: %+v", response, a)
		}
		a := s.call("POST", "/rest/track-request", body)
		if a.Status != 422 || a.Fields[0].Field != "request_response" {
			t.Errorf("/rest/track-request with %s: %+v", response, a)
		}
	}
}

func TestKeysAreTakenFromHeaderOrBody(t *testing.T) {
	s := start(t, nil)
	without := strings.Replace(score, `"api_key": "app", `, "", 1)

	for _, c := range []struct {
		name, body, header string
		status             int
	}{
		{"in the body", score, "", 200},
		{"in the header", without, "app", 200},
		{"in both", score, "app", 200},
		{"in both, differing", score, "full", 401},
		{"nowhere", without, "", 401},
		{"unknown", without, "who", 401},
		{"no string", strings.Replace(score, `"app"`, `7`, 1), "", 401},
	} {
		header := []string{}
		if c.header != "" {
			header = []string{"X-API-KEY", c.header}
		}
		if a := s.call("POST", "/rest/track-score", c.body, header...); a.Status != c.status {
			t.Errorf("%s: %+v, want %d", c.name, a, c.status)
		}
	}

	// "app" as a password; only exporters of spans send their key like that.
	for header, want := range map[string]int{"Bearer app": 200, "Basic eDphcHA=": 401} {
		if a := s.call("POST", "/rest/track-score", without, "Authorization", header); a.Status != want {
			t.Errorf("%s: %+v, want %d", header, a, want)
		}
	}

	if len(s.recorder.events) != 4 {
		t.Errorf("%d events were recorded, want 4", len(s.recorder.events))
	}
}

func TestAKeyThatCannotBeCheckedMayWriteButNotRead(t *testing.T) {
	s := start(t, func(c *api.Config) { c.Records = querier{} })
	if a := s.call("POST", "/rest/track-score", score, "X-API-KEY", "unseen"); a.Status != 401 {
		t.Errorf("two keys that differ: %+v", a)
	}
	a := s.call("POST", "/rest/track-score", strings.Replace(score, "app", "unseen", 1))
	if a.Status != 200 || !strings.Contains(a.Message, "not verified") {
		t.Errorf("a write: %+v", a)
	}
	a = s.call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", "unseen")
	if a.Status != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("a read: %+v", a)
	}
}

// querier finds nothing.
type querier struct{ wire.Records }

func (querier) Request(context.Context, wire.Identity, string) (wire.Record, error) {
	return wire.Record{}, wire.Errorf(wire.CodeNotFound, "There is no such request.")
}

func (querier) Search(context.Context, wire.Identity, wire.Search) (wire.SearchPage, error) {
	return wire.SearchPage{Success: true, Items: []wire.Row{}}, nil
}

func (querier) ExportEvents(
	_ context.Context, _ wire.Identity, _ wire.Search, _ func([]wire.Event) error, mark func(string) error,
) error {
	return mark("")
}

func TestACapabilityThatIsNotHereIs501(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"/prompt-templates/greet", "/api/public/v2/requests/search"} {
		if a := s.call("POST", path, "{}", "X-API-KEY", "full"); a.Status != 501 {
			t.Errorf("%s: %+v", path, a)
		}
	}
	a := s.call("GET", "/sync/changes", "", "X-API-KEY", "full")
	if a.Status != 501 || !strings.Contains(a.Message, "--upstream") {
		t.Errorf("%+v", a)
	}
}

func TestAPanicIsAnsweredAndTheProcessLives(t *testing.T) {
	s := start(t, nil)
	s.recorder.do = func([]wire.Event) ([]wire.Result, error) { panic("oops") }
	if a := s.call("POST", "/rest/track-score", score); a.Status != 500 || strings.Contains(a.Message, "oops") {
		t.Errorf("%+v", a)
	}

	s.recorder.do = nil
	if a := s.call("POST", "/rest/track-score", score); a.Status != 200 {
		t.Errorf("the call after: %+v", a)
	}
}

func TestTheRecordersJudgementReachesTheCaller(t *testing.T) {
	s := start(t, nil)
	for _, c := range []struct {
		code   wire.ResultCode
		err    error
		status int
	}{
		{wire.ResultDuplicate, nil, 200},
		{wire.ResultInvalid, nil, 422},
		{wire.ResultLater, nil, 503},
		{"", wire.Unavailable(1500*time.Millisecond, "The spool is full."), 503},
		{"", fmt.Errorf("disk on fire"), 500},
	} {
		s.recorder.do = func(events []wire.Event) ([]wire.Result, error) {
			return []wire.Result{{ID: events[0].ID, Code: c.code, Reason: "so it is"}}, c.err
		}

		a := s.call("POST", "/rest/track-score", score)
		if a.Status != c.status || strings.Contains(a.Message, "fire") {
			t.Errorf("%s %v: %+v", c.code, c.err, a)
		}
		if want := c.status == 503; (a.Header.Get("Retry-After") != "") != want {
			t.Errorf("%s %v: Retry-After %q", c.code, c.err, a.Header.Get("Retry-After"))
		}
	}
}

func TestBrowsersAreKeptOut(t *testing.T) {
	s := start(t, func(c *api.Config) { c.GuardBrowsers, c.Hosts = true, []string{"sidecar.local"} })

	for _, c := range []struct {
		name, key, value string
		status           int
	}{
		{"a program", "User-Agent", "curl", 200},
		{"localhost with a port", "Host", "localhost:8787", 200},
		{"IPv6 loopback", "Host", "[::1]:8787", 200},
		{"127.0.0.1", "Host", "127.0.0.1:8787", 200},
		{"a listed name", "Host", "Sidecar.local:8787", 200},
		{"another name", "Host", "evil.example", 403},
		{"a name that begins like loopback", "Host", "127.0.0.1.evil.example", 403},
		{"an address of the network", "Host", "10.0.0.7:8787", 403},
		{"a page of another site", "Sec-Fetch-Site", "cross-site", 403},
		{"a page of another port", "Sec-Fetch-Site", "same-site", 403},
		{"the address bar", "Sec-Fetch-Site", "none", 200},
		{"a foreign origin", "Origin", "https://evil.example", 403},
		{"no origin", "Origin", "null", 403},
		{"its own origin", "Origin", "http://localhost", 200},
	} {
		if a := s.call("POST", "/rest/track-score", score, c.key, c.value); a.Status != c.status {
			t.Errorf("%s: %+v, want %d", c.name, a, c.status)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	s := start(t, func(c *api.Config) { c.BodyBytesMax = 64 << 10 })
	pad := func(n int) string { return score[:len(score)-1] + strings.Repeat(" ", n-len(score)) + "}" }

	for _, c := range []struct {
		name, body, encoding string
		status               int
	}{
		{"at the bound", pad(64 << 10), "", 200},
		{"one beyond", pad(64<<10 + 1), "", 413},
		{"packed, at the bound", gzipOf(pad(64 << 10)), "gzip", 200},
		{"packed, beyond it", gzipOf(pad(1 << 20)), "gzip", 413},
		{"cut", gzipOf(pad(64 << 10))[:60], "gzip", 400},
		{"not packed at all", score, "gzip", 400},
		{"nothing", "", "gzip", 400},
		{"not zstd", score, "zstd", 400},
		{"unknown", score, "br", 415},
	} {
		header := []string{"X-Scene", c.name}
		if c.encoding != "" {
			header = append(header, "Content-Encoding", c.encoding)
		}
		if a := s.call("POST", "/rest/track-score", c.body, header...); a.Status != c.status {
			t.Errorf("%s: %+v, want %d", c.name, a, c.status)
		}
	}
}

func TestTooManyBodiesAtOnceAreToldToComeBack(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, func(c *api.Config) { c.BufferBytes = 200 << 10 })
	s.recorder.do = func(events []wire.Event) ([]wire.Result, error) {
		entered <- struct{}{}
		<-leave
		return []wire.Result{{ID: events[0].ID, Code: wire.ResultAccepted}}, nil
	}

	large := score[:len(score)-1] + strings.Repeat(" ", 100<<10) + "}"
	first := make(chan answer)
	go func() { first <- s.call("POST", "/rest/track-score", large) }()
	<-entered

	if a := s.call("POST", "/rest/track-score", large); a.Status != 503 || a.Header.Get("Retry-After") != "1" {
		t.Errorf("a second beside it: %+v", a)
	}
	close(leave)
	if a := <-first; a.Status != 200 {
		t.Errorf("the first: %+v", a)
	}

	go func() { <-entered }()
	if a := s.call("POST", "/rest/track-score", large); a.Status != 200 {
		t.Errorf("when it is done: %+v", a)
	}
}

// A sidecar bounds its own name, so only others send a longer one. It must not stop what is
// beside it.
func TestAnEventOfALongSidecarNameIsRefusedAlone(t *testing.T) {
	s := start(t, nil)
	lines := ""
	var ids []string
	most := strings.Repeat("n", 255)
	for _, name := range []string{"pod-1", most + "n", strings.Repeat("é", 2500), most} {
		e := wire.Event{
			ID:         wire.NewID(),
			Kind:       wire.KindScore,
			RequestID:  wire.NewID(),
			AcceptedAt: time.Now(),
			Sidecar:    name,
			Body:       json.RawMessage(`{"score": 1}`),
		}
		lines += string(e.AppendLine(nil))
		ids = append(ids, e.ID)
	}

	a := s.call("POST", "/sync/events", lines, "X-API-KEY", "app")
	const reason = "sidecar must be a name of at most 255 bytes; this one has "
	want := []wire.Result{
		{ID: ids[1], Code: wire.ResultInvalid, Reason: reason + "256"},
		{ID: ids[2], Code: wire.ResultInvalid, Reason: reason + "5000"},
	}
	if a.Status != 200 || a.Accepted != 2 || !slices.Equal(a.Refused, want) || len(s.recorder.events) != 2 {
		t.Errorf("%+v, %d events are recorded; want 2, and refused %+v", a, len(s.recorder.events), want)
	}
}
