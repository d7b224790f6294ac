package oidc_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/auth/oidc"
	"promptspool/api/wire"
)

// hung is an issuer that answers only when it is let go.
type hung struct {
	*httptest.Server
	goOn                    chan struct{}
	asked, now, most, conns atomic.Int64
}

func hang(t *testing.T) *hung {
	t.Helper()
	h := &hung{goOn: make(chan struct{})}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or it would not be seen that the caller has left
		h.asked.Add(1)
		if now := h.now.Add(1); now > h.most.Load() {
			h.most.Store(now)
		}
		defer h.now.Add(-1)
		select {
		case <-h.goOn:
		case <-r.Context().Done():
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": h.URL, "authorization_endpoint": h.URL + "/a",
			"token_endpoint": h.URL + "/t", "jwks_uri": h.URL + "/k",
		})
	}))
	h.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			h.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			h.conns.Add(-1)
		}
	}
	h.Start()
	t.Cleanup(h.Close)

	return h
}

// crowd lets many people ask at the same time. While those who may wait do, it calls meanwhile. It returns
// how many were sent away before, and how many were answered.
func crowd(t *testing.T, ask func() error, h *hung, meanwhile func()) (refused, answered int64) {
	t.Helper()
	const people, waiting = 500, 64
	var sent, done atomic.Int64
	var wait sync.WaitGroup
	for range people {
		wait.Go(func() {
			switch err := ask(); {
			case wire.IsCode(err, wire.CodeUnavailable) && wire.AsError(err).RetryAfter > 0:
				sent.Add(1)
			default:
				done.Add(1)
			}
		})
	}
	for end := time.Now().Add(5 * time.Second); sent.Load() < people-waiting && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	meanwhile()
	wait.Wait()

	return sent.Load(), done.Load()
}

func TestAnIssuerThatDoesNotAnswerHoldsFewPeopleAndConnections(t *testing.T) {
	h := hang(t)
	i := oidc.New(oidc.Config{Issuer: h.URL, ClientID: "promptspool", Now: time.Now})
	begin := func() error {
		_, _, err := i.Begin(t.Context(), callback)
		return err
	}
	expect := func(what string, refused, answered, most int64) {
		t.Helper()
		if refused != 500-64 || answered != 64 || h.most.Load() > most {
			t.Errorf("%s: %d were sent away, %d answered, with %d questions at the same time (at most %d)",
				what, refused, answered, h.most.Load(), most)
		}
	}

	// All who sign in wait for one discovery.
	refused, answered := crowd(t, begin, h, func() { h.goOn <- struct{}{} })
	expect("discovery", refused, answered, 1)
	if asked := h.asked.Load(); asked != 1 {
		t.Errorf("the discovery document was fetched %d times", asked)
	}

	// Codes, real or invented, are each a question.
	finish := func() error {
		_, err := i.Finish(t.Context(), callback, url.Values{"state": {"s"}, "code": {"invented"}},
			wire.LoginAttempt{State: "s"})
		return err
	}
	refused, answered = crowd(t, finish, h, func() {
		if err := begin(); !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("one more person who signs in: %v", err)
		}
		close(h.goOn)
	})
	expect("codes", refused, answered, 64)
	if err := begin(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	for end := time.Now().Add(5 * time.Second); h.conns.Load() > 2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if open := h.conns.Load(); open > 2 {
		t.Errorf("%d connections are left", open)
	}
}
