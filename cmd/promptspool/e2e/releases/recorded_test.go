//go:build linux

package releases

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// recorded returns a conversation of a sidecar with a server of its version.
func recorded(t *testing.T, program string) []exchange {
	t.Helper()
	server := startOf(t, program, t.TempDir(), "127.0.0.1:0", "server", "--name", "central")
	k := &talk{T: t, program: program, sent: map[string]int{}}
	k.between = newBetween(t, server.Addr, keysAt(t, program, server))
	k.converse(t.TempDir())
	k.sidecar.Stop()
	k.between.mu.Lock()
	defer k.between.mu.Unlock()
	return k.between.said
}

// conversations returns the folders of the releases, each with a conversation.
func conversations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*", conversationFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversation is recorded: %v", err)
	}
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

// ofItsServer are fields of answers that are the server's own: ids that it makes, times, and texts
// for people.
var ofItsServer = strings.Fields("account key_id by at created_at updated_at reason message author")

// differs returns how an answer differs from the recorded one in what a sidecar reads, "" if it does not.
func (e exchange) differs(t *testing.T, status int, answer []byte) string {
	t.Helper()
	if status != e.Status {
		return fmt.Sprintf("status %d", status)
	}
	return missing(decoded(t, e.Answer), decoded(t, answer), ofItsServer)
}

// What a sidecar of a release was answered, it is answered by a server of this version.
func TestAServerAnswersTheSidecarsOfEachRelease(t *testing.T) {
	t.Parallel()
	for _, dir := range conversations(t) {
		server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
		keys := keysAt(t, harness.Program(t), server)
		for _, e := range read[[]exchange](t, dir, conversationFile) {
			r, err := server.Try(e.Method, e.Path, e.Body, "X-API-KEY", keys[e.Key])
			if err != nil {
				t.Fatal(err)
			}
			if what := e.differs(t, r.Status, r.Body); what != "" {
				t.Errorf("%s: %s %s with the key %s: %s\nrecorded: %d %s\nnow: %d %s",
					dir, e.Method, e.Path, e.Key, what, e.Status, e.Answer, r.Status, r.Body)
			}
			if r.Header.Get("Promptspool-Version") == "" || r.Header.Get(wire.TimeHeader) == "" {
				t.Errorf("%s: %s: without the headers of a server: %v", dir, e.Path, r.Header)
			}
		}
	}
}

func TestAnAnswerThatSaysLessToASidecarIsNoticed(t *testing.T) {
	t.Parallel()
	for _, dir := range conversations(t) {
		for _, e := range read[[]exchange](t, dir, conversationFile) {
			if what := e.differs(t, e.Status, e.Answer); what != "" {
				t.Fatalf("%s: an answer differs from itself: %s", e.Path, what)
			}

			for was, is := range map[string]string{
				`"success":true`:     `"success":false`,
				`"accepted":1`:       `"accepted":2`,
				`"code":"later"`:     `"code":"invalid"`,
				`"code":"forbidden"`: `"code":"later"`,
				`"scope":`:           `"rights":`,
				`"version":2`:        `"version":"2"`,
				`"names":`:           `"templates":`,
			} {
				other := strings.Replace(string(e.Answer), was, is, 1)
				if other != string(e.Answer) && e.differs(t, e.Status, []byte(other)) == "" {
					t.Errorf("%s: %s in place of %s is not noticed", e.Path, is, was)
				}
			}

			if e.differs(t, e.Status+1, e.Answer) == "" {
				t.Errorf("%s: another status is not noticed", e.Path)
			}
		}
	}
}

// A sidecar of this version delivers everything to a server that answers as one of a release.
func TestASidecarSpeaksToServersOfEachRelease(t *testing.T) {
	t.Parallel()
	speaks(t, func(*script) {})
}

// As that server may be of a later release: it says more, and in words that are not known yet.
func TestASidecarSpeaksToServersThatSayMore(t *testing.T) {
	t.Parallel()
	speaks(t, func(s *script) { s.saysMore = true })
}

func speaks(t *testing.T, change func(*script)) {
	for _, dir := range conversations(t) {
		k, server := newScript(t, dir)
		change(server)
		k.converse(t.TempDir())
		k.setAside(true)
		k.between.upgraded.Store(true)
		k.sent[k.waiting]++
		k.delivered()
		k.sidecar.Emptied()
		k.setAside(false)
		log := k.sidecar.Logged()
		isTold := strings.Contains(log, "this server does not know events of kind")
		if !isTold || strings.Contains(log, "do not understand each other") {
			t.Errorf("%s: the sidecar's log:\n%s", dir, log)
		}
	}
}

// The control: of a server that does not account for every event, nothing is believed.
func TestASidecarDoesNotBelieveAServerThatForgetsAnEvent(t *testing.T) {
	t.Parallel()
	for _, dir := range conversations(t) {
		k, server := newScript(t, dir)
		server.forgets = true
		k.begin(t.TempDir())
		k.calls("app", "/rest/track-request", harness.Chat(), 200)
		k.sidecar.Eventually(func() bool { return server.asked() > 1 }, func() string { return "it is not sent again" })
		if n := k.sidecar.Waiting(); n != 1 {
			t.Errorf("%d events wait", n)
		}
	}
}

// script is a server that answers as one of a release did.
type script struct {
	t       *testing.T
	version string
	keys    map[string]string
	said    []exchange
	fates   map[string]map[string]any // results of events that are refused, by their key and kind

	forgets  bool // it does not account for one event of each batch
	saysMore bool // its answers have members and words that no version knows yet

	mu        sync.Mutex
	revision  int            // under mu; of the templates
	published chan struct{}  // under mu; closed and replaced when revision changes
	events    map[string]int // under mu; how often each was taken
	batches   int            // under mu
}

// newScript starts the server of a recorded conversation, for a sidecar of this version.
func newScript(t *testing.T, dir string) (*talk, *script) {
	t.Helper()
	s := &script{
		t:         t,
		version:   filepath.Base(dir),
		keys:      map[string]string{"full": harness.AdminKey, unknown: unknownKey, "app": "app"},
		said:      read[[]exchange](t, dir, conversationFile),
		fates:     map[string]map[string]any{},
		published: make(chan struct{}),
		events:    map[string]int{},
	}
	for _, name := range wire.ScopeNames {
		s.keys[name] = name
	}

	for _, e := range s.said {
		if e.Path != "/sync/events" || e.Status != 200 {
			continue
		}
		refused, _ := harness.Decode(string(e.Answer))["refused"].([]any)
		for _, event := range eventsOf(t, e.Body) {
			for _, r := range refused {
				if r := r.(map[string]any); r["id"] == event.ID {
					s.fates[e.Key+" "+event.Kind] = r
				}
			}
		}
	}
	k := &talk{T: t, program: harness.Program(t), sent: map[string]int{}}
	k.between = newBetween(t, listening(t, s).Listener.Addr().String(), s.keys)
	return k, s
}

// ServeHTTP answers as the release did.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := unpackedBody(r)
	if err != nil {
		s.t.Error(err)
	}
	key := nameOf(s.keys, r.Header.Get("X-API-KEY"))
	if r.URL.Path == "/sync/changes" {
		s.awaitChange(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.recordedLocked(key, r.Method, r.URL)
	if !found {
		s.t.Errorf("a server of that release was not asked %s %s with the key %s", r.Method, r.RequestURI, key)
		panic(http.ErrAbortHandler)
	}
	answer := harness.Decode(string(e.Answer))
	switch {
	case e.Status != 200 && e.Status != 201:
	case r.URL.Path == "/sync/events":
		s.takeLocked(key, string(body), answer)
	case r.URL.Path == "/sync/changes":
		answer["revision"], answer["names"] = s.revision, []string{}
		if since, _ := strconv.Atoi(r.URL.Query().Get("since")); since < s.revision {
			answer["names"] = []string{"team/greet"}
		}
	case r.Method == "POST" && r.URL.Path == "/rest/prompt-templates":
		s.revision++
		close(s.published)
		s.published = make(chan struct{})
	}

	// What answers the test itself is compared with the description of the API.
	if s.saysMore && strings.HasPrefix(r.UserAgent(), "promptspool/") {
		answer["tomorrow"] = map[string]any{"more": []int{1}}
		if scope, ok := answer["scope"].(string); ok {
			answer["scope"] = scope + "," + newRight
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Promptspool-Version", s.version)
	w.Header().Set(wire.TimeHeader, time.Now().UTC().Format(time.RFC3339Nano))
	w.WriteHeader(e.Status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

// awaitChange holds a poll until a template changes.
func (s *script) awaitChange(r *http.Request) {
	q := r.URL.Query()
	since, _ := strconv.Atoi(q.Get("since"))
	wait, _ := time.ParseDuration(q.Get("wait"))
	s.mu.Lock()
	published, known := s.published, s.revision
	s.mu.Unlock()
	if known > since {
		return
	}
	select {
	case <-published:
	case <-time.After(wait):
	case <-r.Context().Done():
	}
}

// recordedLocked returns what was said of a call at the revision that the templates have. Which of its
// keys a sidecar takes to ask about templates is chance, so that of another key counts as well.
func (s *script) recordedLocked(key, method string, u *url.URL) (found exchange, ok bool) {
	for _, e := range s.said {
		at, err := url.Parse(e.Path)
		if err != nil {
			s.t.Error(err)
			continue
		}
		if key == unknown {
			if e.Key == unknown {
				return e, true
			}
			continue
		}

		polls := u.Path == "/sync/changes" && at.Path == u.Path
		isCall := e.Method == method && at.EscapedPath() == u.EscapedPath() && (polls || at.RawQuery == u.RawQuery)
		if !isCall || s.isLaterLocked(e) {
			continue
		}

		if e.Key == key || e.Key != unknown && found.Key != key && e.Status < 400 {
			found, ok = e, true
		}
	}
	return found, ok
}

// isLaterLocked reports whether an answer is of a revision that is yet to come.
func (s *script) isLaterLocked(e exchange) bool {
	var of struct {
		Revision int `json:"revision"`
		Version  int `json:"version_number"` // of what is published
	}
	if json.Unmarshal(e.Answer, &of) != nil {
		return false
	}
	if of.Version > 0 {
		return of.Version != s.revision+1
	}
	return of.Revision > s.revision && e.Path[:6] != "/sync/"
}

// takeLocked judges the events of a batch.
func (s *script) takeLocked(key, batch string, answer map[string]any) {
	s.batches++
	accepted, duplicate, refused := 0, 0, []any{}
	for _, event := range eventsOf(s.t, batch) {
		fate := s.fates[key+" "+event.Kind]
		switch {
		case fate != nil:
			r := maps.Clone(fate)
			r["id"] = event.ID
			if s.saysMore && r["code"] == "later" {
				r["code"], r["cause"], r["tomorrow"] = "tomorrow", "tomorrow", 1
			}
			refused = append(refused, r)
		case s.events[event.ID] > 0:
			duplicate++
		default:
			accepted++
		}
		s.events[event.ID]++
	}

	if s.forgets {
		accepted--
	}
	answer["accepted"], answer["duplicate"], answer["refused"] = accepted, duplicate, refused
}

// asked returns how many batches came.
func (s *script) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batches
}
