package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/client"
	"promptspool/api/edge/edgetest"
	"promptspool/api/wire"
)

// TestWhateverHappensBetweenEverythingArrivesOnce has a fault between a sidecar and a server
// for three minutes, in real HTTP over pipes. Meanwhile requests are logged and scored twice, six
// in a row each minute. When the fault is over, each must be at the server once, with the newer
// score.
func TestWhateverHappensBetweenEverythingArrivesOnce(t *testing.T) {
	const requests = 18
	for _, tt := range []struct {
		scene       string
		fault       mischief
		least, most int  // batches in that time, as the backoff has it
		arrives     bool // all events, during the fault
	}{
		{"no fault", passesOn, 3, 3 * requests, true},
		{"the server hangs", hangs, 2, 4, false},
		{"the connection breaks before the batch is applied", breaks, 50, 110, false},
		{"the connection breaks after the batch was applied", breaksAfterApplying, 50, 110, false},
		{"200 with a count that lies", liesAboutTheCount, 50, 110, false},
		{"the answer is cut short", cutsTheAnswerShort, 50, 110, false},
		{"a login page with 200", html(200), 50, 110, false},
		{"a redirect to a login page", html(302), 50, 110, false},
		{"a proxy's 502", html(502), 50, 110, false},
		{"a proxy's 413 for large batches", takesSmallOnes, 3 * requests / 2, 6 * requests, true},
		{"the server's 503 with seconds", asksToComeBack, 15, 20, false},
	} {
		t.Run(tt.scene, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &between{t: t, applied: map[string][]byte{}, fault: tt.fault}
				s := newSidecar(t, overHTTP(t, b))
				s.forward()

				var ids []string
				for i := range requests {
					ids = append(ids, s.logScored(i, 100-i))
					if i%6 == 5 {
						<-time.After(time.Minute)
					}
				}
				met, arrived := b.end()
				if met < tt.least || met > tt.most {
					t.Errorf("%d batches met the fault; want %d to %d", met, tt.least, tt.most)
				}
				if tt.arrives && arrived < 3*requests {
					t.Errorf("%d events arrived during the fault; want all %d", arrived, 3*requests)
				}
				pass(2 * time.Minute) // a call that hangs is given up after 90 s

				for i, id := range ids {
					if events, score := b.record(id); events != 3 || score != 100-i {
						t.Errorf("request %d has %d events and score %d; want 3, and %d", i, events, score, 100-i)
					}
				}
				if _, arrived = b.end(); arrived != 3*requests {
					t.Errorf("%d events are at the server; want %d", arrived, 3*requests)
				}
				if st := s.spool.Status(); st.Events+st.Dead+st.Held > 0 || st.Gaps > 0 {
					t.Errorf("the spool says %+v", st)
				}
			})
		})
	}
}

// logScored logs a request and scores it twice. It returns the request's id.
func (s *sidecar) logScored(older, newer int) (id string) {
	s.t.Helper()
	id = wire.NewID()
	for _, write := range []struct {
		kind wire.Kind
		body string
	}{
		{wire.KindRequest, `{"kwargs":{}}`},
		{wire.KindScore, fmt.Sprintf(`{"score":%d}`, older)},
		{wire.KindScore, fmt.Sprintf(`{"score":%d}`, newer)},
	} {
		event := wire.Event{
			ID:         wire.NewID(),
			Kind:       write.kind,
			RequestID:  id,
			AcceptedAt: time.Now(),
			Sidecar:    "pod-1",
			Body:       []byte(write.body),
		}
		if _, err := s.Record(context.Background(), s.identity(annsKey), []wire.Event{event}); err != nil {
			s.t.Fatal(err)
		}
	}
	return id
}

// between is a server with something in front of it that passes calls on, or does something
// else with batches.
type between struct {
	t testing.TB

	mu      sync.Mutex
	fault   mischief
	met     int               // how often the fault happened
	applied map[string][]byte // bodies of events, by id
	events  []wire.Event      // those that were new, in order
}

// mischief does something with a batch in place of passing it on.
type mischief func(b *between, w http.ResponseWriter, r *http.Request, batch []byte)

// end ends the fault. It returns how often it happened, and how many events have arrived.
func (b *between) end() (met, arrived int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = passesOn
	return b.met, len(b.applied)
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/sync/key" {
		own(w, 200, wire.KeyVerdict{Success: true, Account: "ann", KeyID: "k1", Scope: wire.ScopeFull})
		return
	}

	batch, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Error(err)
	}
	b.mu.Lock()
	b.met++
	fault := b.fault
	b.mu.Unlock()
	fault(b, w, r, batch)
}

// apply folds a batch as a server does: an event that is there already changes nothing.
func (b *between) apply(batch []byte) (answer wire.BatchAnswer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer.Success = true
	for _, e := range unpack(b.t, batch) {
		before, known := b.applied[e.ID]
		if known && !bytes.Equal(before, e.Body) {
			b.t.Errorf("event %s came as %s, and now as %s", e.ID, before, e.Body)
		}
		if known {
			answer.Duplicate++
			continue
		}
		b.applied[e.ID] = e.Body
		b.events = append(b.events, e)
		answer.Accepted++
	}
	return answer
}

// record returns how many events a request has, and its newest score.
func (b *between) record(id string) (events, score int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest := ""
	for _, e := range b.events {
		if e.RequestID != id {
			continue
		}
		events++
		if e.Kind == wire.KindScore && e.ID > newest {
			newest = e.ID
			var body struct{ Score int }
			if err := json.Unmarshal(e.Body, &body); err != nil {
				b.t.Error(err)
			}
			score = body.Score
		}
	}
	return events, score
}

// own is an answer in the server's name.
func own(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Promptspool-Version", "test")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func passesOn(b *between, w http.ResponseWriter, _ *http.Request, batch []byte) {
	own(w, 200, b.apply(batch))
}

func hangs(_ *between, _ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }

func breaks(*between, http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) }

func breaksAfterApplying(b *between, _ http.ResponseWriter, _ *http.Request, batch []byte) {
	b.apply(batch)
	panic(http.ErrAbortHandler)
}

func liesAboutTheCount(_ *between, w http.ResponseWriter, _ *http.Request, _ []byte) {
	own(w, 200, wire.BatchAnswer{Success: true, Accepted: 100_000})
}

func cutsTheAnswerShort(b *between, w http.ResponseWriter, _ *http.Request, batch []byte) {
	b.apply(batch)
	w.Header().Set("Content-Length", "1000")
	own(w, 200, wire.BatchAnswer{Success: true})
	panic(http.ErrAbortHandler)
}

// html is an answer in the proxy's own name.
func html(status int) mischief {
	return func(_ *between, w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Location", "/login")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html><body>Who are you? "+http.StatusText(status)+"</body></html>")
	}
}

// takesSmallOnes rejects batches of more than 200 bytes, as a proxy does.
func takesSmallOnes(b *between, w http.ResponseWriter, r *http.Request, batch []byte) {
	if len(batch) > 200 {
		html(http.StatusRequestEntityTooLarge)(b, w, r, batch)
		return
	}
	passesOn(b, w, r, batch)
}

func asksToComeBack(_ *between, w http.ResponseWriter, _ *http.Request, _ []byte) {
	w.Header().Set("Retry-After", "10")
	own(w, 503, wire.ErrorBody{Error: wire.CodeUnavailable, Message: "Because of the test."})
}

// overHTTP returns a client of a handler. Their connections are pipes, so that a bubble's
// clock counts for them.
func overHTTP(t *testing.T, h http.Handler) *client.Client {
	t.Helper()
	line := edgetest.NewPipes()
	web := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = web.Serve(line) }()
	t.Cleanup(func() { _ = web.Close() })

	// The client copies what it dials with.
	usual := http.DefaultTransport
	http.DefaultTransport = &http.Transport{DialContext: line.DialContext}
	defer func() { http.DefaultTransport = usual }()
	c, err := client.New(client.Config{URL: "http://server", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
