package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

// project is that of all scenes.
var project = wire.Identity{Account: "a"}

// call is what a target got.
type call struct {
	at     time.Time
	url    string
	header http.Header
	body   string
}

// world is a database, its servers, and the targets that they reach.
type world struct {
	*testing.T
	rows  keyedtest.Memory
	store *accounts.Store

	mu    sync.Mutex
	hosts map[string]func(n int) (status int, header http.Header, err error) // by name; n counts calls from 1
	calls map[string][]call

	every time.Duration // how often servers look; 0 for the default
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, calls: map[string][]call{}}
	w.hosts = map[string]func(int) (int, http.Header, error){}
	w.store = accounts.New(&w.rows, time.Now)
	return w
}

// RoundTrip is a call of a target.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	host := r.URL.Hostname()
	w.calls[host] = append(w.calls[host], call{time.Now(), r.URL.String(), r.Header, string(body)})
	n, answer := len(w.calls[host]), w.hosts[host]
	w.mu.Unlock()

	status, header, err := 200, http.Header{}, error(nil)
	if answer != nil {
		status, header, err = answer(n)
	}
	if err != nil {
		return nil, err
	}
	if status == 0 {
		// It never answers.
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("<why>"))}, nil
}

// service returns a service that does not run.
func (w *world) service() *Service {
	s := New(Config{
		Store: w.store, Key: "key", Metrics: metrics.New("server", "test"), Logger: slog.New(slog.DiscardHandler),
		PublicURL: "https://spool.example",
	})
	s.client.Transport = w
	return s
}

// server runs a server until it is killed.
func (w *world) server() (s *Service, kill func()) {
	s = w.service()
	s.every = max(s.every, w.every)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	return s, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
}

// target makes a target, whose host has its name.
func (w *world) target(s *Service, name, kind string, types ...string) (secret string) {
	w.Helper()
	secret, err := s.PutTarget(w.Context(), project, wire.TargetSettings{
		Name: name, Kind: kind, URL: "https://" + name + "/hook", Types: types,
	})
	if err != nil {
		w.Fatal(err)
	}
	return secret
}

// notify commits notices.
func (w *world) notify(titles ...string) {
	for _, title := range titles {
		w.notice(wire.Notice{Type: wire.NoticeAlertFiring, Title: title})
	}
}

func (w *world) notice(n wire.Notice) {
	w.Helper()
	err := w.rows.Change(w.Context(), project.Account, true, func(tx *keyed.Tx) error {
		return accounts.Notify(tx, project.Account, time.Now(), n)
	})
	if err != nil {
		w.Fatal(err)
	}
}

// got returns the calls of a target.
func (w *world) got(host string) []call {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls[host])
}

// titles returns the titles that a webhook was told, and the ids that came with each.
func (w *world) titles(host string) (titles []string, ids map[string][]string) {
	w.Helper()
	ids = map[string][]string{}
	for _, c := range w.got(host) {
		var body struct{ Data struct{ Title string } }
		if err := json.Unmarshal([]byte(c.body), &body); err != nil {
			w.Fatal(err)
		}
		titles = append(titles, body.Data.Title)
		if id := c.header.Get("webhook-id"); !slices.Contains(ids[body.Data.Title], id) {
			ids[body.Data.Title] = append(ids[body.Data.Title], id)
		}
	}
	return titles, ids
}

func (w *world) wantTitles(host string, want ...string) {
	w.Helper()
	got, _ := w.titles(host)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s was told (-want +got):\n%s", host, diff)
	}
}

// state returns a target.
func (w *world) state(s *Service, name string) wire.Target {
	w.Helper()
	all, err := s.Targets(w.Context(), project)
	at := slices.IndexFunc(all, func(t wire.Target) bool { return t.Name == name })
	if err != nil || at < 0 {
		w.Fatalf("no target %s: %v", name, err)
	}
	return all[at]
}

// answers makes a target answer statuses one after the other, and the last one then.
func answers(statuses ...int) func(int) (int, http.Header, error) {
	return func(n int) (int, http.Header, error) { return statuses[min(n, len(statuses))-1], nil, nil }
}

func TestASlowTargetDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, kill := w.server()
		defer kill()
		w.target(s, "fast", wire.TargetWebhook)
		w.target(s, "slow", wire.TargetWebhook)
		w.target(s, "others", wire.TargetWebhook, wire.NoticeKeyCreated)
		w.hosts["slow"] = answers(0)

		w.notify("first", "second", "third")
		time.Sleep(2 * time.Second)
		w.wantTitles("fast", "first", "second", "third")
		w.wantTitles("slow", "first")
		w.wantTitles("others")

		// It is given up after 15 seconds, and the order is kept.
		time.Sleep(time.Minute)
		titles, _ := w.titles("slow")
		if len(titles) < 2 || slices.Contains(titles, "second") {
			t.Errorf("slow was told %v", titles)
		}
		if state := w.state(s, "slow"); state.Waiting != 3 || !strings.Contains(state.Error, "deadline") {
			t.Errorf("slow is %+v", state)
		}
	})
}

func TestATargetThatIsAwayForAWeekMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.every = time.Minute
		s, kill := w.server()
		defer func() { kill() }()
		w.target(s, "hook", wire.TargetWebhook)
		// Not at the moment of a restart.
		back := time.Now().Add(7*24*time.Hour + 30*time.Second)
		w.hosts["hook"] = func(int) (int, http.Header, error) {
			if time.Now().Before(back) {
				return 0, nil, errors.New("connection reset by peer")
			}
			return 204, nil, nil
		}

		for day := range 7 {
			w.notify(fmt.Sprint("day ", day))
			time.Sleep(24 * time.Hour)
			// The server is restarted as well, and killed at that.
			kill()
			s, kill = w.server()
		}
		if state := w.state(s, "hook"); state.Waiting != 7 || state.Tries < 800 || state.RetryAt == nil {
			t.Errorf("after a week: %+v", state)
		}

		time.Sleep(pauseMax + time.Minute)
		titles, ids := w.titles("hook")
		var taken []string
		for i, c := range w.got("hook") {
			if !c.at.Before(back) {
				taken = append(taken, titles[i])
			}
		}
		want := []string{"day 0", "day 1", "day 2", "day 3", "day 4", "day 5", "day 6"}
		if diff := cmp.Diff(want, taken); diff != "" {
			t.Errorf("taken (-want +got):\n%s", diff)
		}
		for title, all := range ids {
			if len(all) != 1 {
				t.Errorf("%s had the ids %v", title, all)
			}
		}
		state := w.state(s, "hook")
		if state.Waiting != 0 || state.Delivered != 7 || state.Error != "" || state.Tries != 0 {
			t.Errorf("in the end: %+v", state)
		}
	})
}

func TestWhatATargetRefusesIsDeadAndCanBeReplayed(t *testing.T) {
	for _, status := range []int{410, 404, 401, 302} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s, kill := w.server()
			defer kill()
			w.target(s, "hook", wire.TargetWebhook)
			w.hosts["hook"] = answers(status, status, status, status, status, 200)
			w.notify("refused", "taken")
			time.Sleep(2 * time.Minute)
			w.wantTitles("hook", "refused", "refused", "refused", "refused", "refused", "taken")

			dead, err := s.Deliveries(t.Context(), project, "hook", wire.DeliveryQuery{Dead: true})
			why := fmt.Sprintf("it answered %d: <why>", status)
			if err != nil || len(dead) != 1 || dead[0].Error != why {
				t.Fatalf("dead letters: %+v, %v", dead, err)
			}
			again := wire.DeliveryChoice{Dead: true, Replay: true, ID: dead[0].Notice.ID}
			if n, err := s.TakeDeliveries(t.Context(), project, "hook", again); n != 1 || err != nil {
				t.Errorf("%d were replayed, %v", n, err)
			}
			if n, err := s.TakeDeliveries(t.Context(), project, "hook", again); n != 0 || err != nil {
				t.Errorf("what is not there any more: %d were replayed, %v", n, err)
			}
			time.Sleep(2 * time.Second)
			titles, ids := w.titles("hook")
			if len(titles) != 7 || titles[6] != "refused" || len(ids["refused"]) != 1 {
				t.Errorf("after the replay: %v, %v", titles, ids)
			}
			if state := w.state(s, "hook"); state.Dead != 0 || state.Delivered != 2 {
				t.Errorf("in the end: %+v", state)
			}
		})
	}
}

func TestRetryAfterIsHonouredWithinBounds(t *testing.T) {
	for after, want := range map[string]time.Duration{
		"120":                           2 * time.Minute,
		"60000":                         retryAfterMax,
		"Sat, 01 Jan 2000 00:05:00 GMT": 5 * time.Minute,
		"-5":                            pauseMin / 2,
		"":                              pauseMin / 2,
		"soon":                          pauseMin / 2,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s, kill := w.server()
			defer kill()
			w.target(s, "hook", wire.TargetWebhook)
			w.hosts["hook"] = func(n int) (int, http.Header, error) {
				if n == 1 {
					return 429, http.Header{"Retry-After": {after}}, nil
				}
				return 200, nil, nil
			}
			w.notify("one")
			time.Sleep(want + pauseMin + 10*time.Second)
			calls := w.got("hook")
			if len(calls) != 2 {
				t.Fatalf("%q: %d calls", after, len(calls))
			}
			waited := calls[1].at.Sub(calls[0].at)
			if waited < want-2*time.Second || waited > want+pauseMin+2*time.Second {
				t.Errorf("%q: tried again after %v, want %v", after, waited, want)
			}
		})
	}
}

// A target has got the notice, and the server is killed before it knows.
func TestAfterAKillAnotherServerDeliversUnderTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, kill := w.server()
		w.target(s, "hook", wire.TargetWebhook)
		w.hosts["hook"] = answers(0, 200)
		w.notify("one")
		time.Sleep(2 * time.Second)
		kill()

		_, end := w.server()
		defer end()
		time.Sleep(heldFor + 2*time.Second)
		titles, ids := w.titles("hook")
		if len(titles) != 2 || len(ids["one"]) != 1 {
			t.Errorf("told %v under %v", titles, ids)
		}
	})
}

func TestThreeServersDeliverOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, kill := w.server()
		_, endB := w.server()
		defer endB()
		_, endC := w.server()
		defer endC()
		w.target(s, "hook", wire.TargetWebhook)
		w.target(s, "other", wire.TargetWebhook)
		w.hosts["other"] = answers(500, 500, 200)

		var want []string
		for n := range 60 {
			title := fmt.Sprint("notice ", n)
			want = append(want, title)
			w.notify(title)
			time.Sleep(300 * time.Millisecond)
			if n == 30 {
				kill()
			}
		}
		time.Sleep(time.Minute)
		w.wantTitles("hook", want...)
		w.wantTitles("other", append([]string{want[0], want[0]}, want...)...)
	})
}

// alerts decodes what an Alertmanager got.
func alerts(t *testing.T, c call) (all []struct {
	Labels           map[string]string
	StartsAt, EndsAt time.Time
	GeneratorURL     string
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(c.body), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnAlertmanagerIsToldAgainUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, kill := w.server()
		defer func() { kill() }()
		w.target(s, "alertmanager", wire.TargetAlertmanager)
		labels := map[string]string{"rule": "errors", "model": "gpt-4o"}
		began := time.Now()
		firing := wire.Notice{Type: wire.NoticeAlertFiring, Title: "Errors", Labels: labels, URL: "/alerts/errors"}
		w.notice(firing)
		w.notice(wire.Notice{Type: wire.NoticeLabelMoved, Title: "prod moved"})
		time.Sleep(2 * time.Second)
		calls := w.got("alertmanager")
		if len(calls) != 2 || calls[0].url != "https://alertmanager/hook/api/v2/alerts" {
			t.Fatalf("calls: %+v", calls)
		}
		a := alerts(t, calls[0])[0]
		want := map[string]string{
			"alertname": "alert.firing", "project": "", "rule": "errors", "model": "gpt-4o",
		}
		if diff := cmp.Diff(want, a.Labels); diff != "" || a.GeneratorURL != "https://spool.example/alerts/errors" {
			t.Errorf("labels (-want +got):\n%s\n%+v", diff, a)
		}
		if !a.StartsAt.Equal(began) || !a.EndsAt.After(began.Add(2*repeats)) {
			t.Errorf("it is from %v until %v", a.StartsAt, a.EndsAt)
		}

		// An end that is not heard in time would end the alert, so another server goes on with it.
		time.Sleep(5 * repeats)
		kill()
		_, kill = w.server()
		time.Sleep(5 * repeats)
		calls = w.got("alertmanager")
		if len(calls) < 11 || len(calls) > 13 {
			t.Fatalf("%d calls in ten minutes", len(calls))
		}
		for i, c := range calls[2:] {
			a := alerts(t, c)
			if len(a) != 1 || a[0].Labels["rule"] != "errors" || !a[0].StartsAt.Equal(began) ||
				a[0].EndsAt.Sub(c.at) < 2*repeats {
				t.Errorf("repetition %d: %+v", i, a)
			}
		}

		firing.Type = wire.NoticeAlertResolved
		w.notice(firing)
		time.Sleep(2 * time.Second)
		ended := w.got("alertmanager")
		last := alerts(t, ended[len(ended)-1])[0]
		if cmp.Diff(want, last.Labels) != "" || last.EndsAt.After(time.Now()) {
			t.Errorf("the end: %+v", last)
		}
		time.Sleep(10 * repeats)
		if after := w.got("alertmanager"); len(after) != len(ended) {
			t.Errorf("%d calls after the end", len(after)-len(ended))
		}
	})
}

// repeats is how often an Alertmanager is told.
const repeats = time.Minute

func TestAWebhookIsSignedAndSlackIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, kill := w.server()
		defer kill()
		secret := w.target(s, "hook", wire.TargetWebhook)
		if made := w.target(s, "slack", wire.TargetSlack); made != "" {
			t.Errorf("Slack has the secret %s", made)
		}
		w.notice(wire.Notice{
			Type: wire.NoticeTemplatePublished, Title: "a <b> & c", Text: "by ann", URL: "/template?name=greet",
			Data: json.RawMessage(`{"version":3}`),
		})
		time.Sleep(2 * time.Second)

		c := w.got("hook")[0]
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) < 24 {
			t.Fatalf("secret %q: %v", secret, err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", c.header.Get("webhook-id"), c.header.Get("webhook-timestamp"), c.body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); c.header.Get("webhook-signature") != want {
			t.Errorf("signature %s, want %s", c.header.Get("webhook-signature"), want)
		}
		if at := fmt.Sprint(c.at.Unix()); c.header.Get("webhook-timestamp") != at {
			t.Errorf("timestamp %s, want %s", c.header.Get("webhook-timestamp"), at)
		}
		for _, part := range []string{`"details":{"version":3}`, `"type":"template.published"`} {
			if !strings.Contains(c.body, part) {
				t.Errorf("%s is not in the body %s", part, c.body)
			}
		}

		// The example of Standard Webhooks.
		signed := http.Header{}
		sign(signed, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek",
			time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
		if got := signed.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
			t.Errorf("the example is signed by %s", got)
		}

		var message struct{ Text string }
		if err := json.Unmarshal([]byte(w.got("slack")[0].body), &message); err != nil {
			t.Fatal(err)
		}
		want := "*a &lt;b&gt; &amp; c*\nby ann\n<https://spool.example/template?name=greet|Open>"
		if message.Text != want || w.got("slack")[0].header.Get("webhook-signature") != "" {
			t.Errorf("Slack was told %q, want %q", message.Text, want)
		}
	})
}

// What is secret is not in the database in the clear, nor shown; a copy of it is of no use elsewhere.
func TestSecretsAreSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.service()
		ctx := t.Context()
		url := "https://user:pass@hooks.example/T0/SECRETPATH?token=SECRETTOKEN"
		settings := wire.TargetSettings{Name: "hook", Kind: wire.TargetWebhook, URL: url}
		secret, err := s.PutTarget(ctx, project, settings)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := w.rows.Walk(ctx, keyed.Key{}, 10)
		if err != nil || len(stored) != 1 {
			t.Fatalf("%d values, %v", len(stored), err)
		}
		for _, part := range []string{"pass", "SECRETPATH", "SECRETTOKEN", secret[10:]} {
			if strings.Contains(string(stored[0].Value), part) {
				t.Errorf("%s is in %s", part, stored[0].Value)
			}
		}
		if state := w.state(s, "hook"); state.URL != "https://hooks.example" {
			t.Errorf("%s is shown", state.URL)
		}

		// What is left out stays. Another kind is another target.
		settings.URL, settings.Types = "", []string{wire.NoticeKeyCreated}
		if made, err := s.PutTarget(ctx, project, settings); made != "" || err != nil {
			t.Errorf("changed types made %q, %v", made, err)
		}
		if err := s.TestTarget(ctx, project, "hook"); err != nil || w.got("hooks.example")[0].url != url {
			t.Errorf("the test: %v, %+v", err, w.got("hooks.example"))
		}
		settings.Kind = wire.TargetSlack
		if _, err := s.PutTarget(ctx, project, settings); !wire.IsCode(err, wire.CodeInvalid) {
			t.Errorf("a kind without its URL: %v", err)
		}

		// Another server's key opens nothing, and without one no target is made. The notices wait.
		for _, key := range []wire.Secret{"another", ""} {
			other := New(Config{Store: w.store, Key: key, Metrics: s.c.Metrics, Logger: s.c.Logger})
			other.client.Transport = w
			if err := other.TestTarget(ctx, project, "hook"); !strings.Contains(fmt.Sprint(err), "--seal-key") {
				t.Errorf("the key %q: %v", key, err)
			}
			_, err := other.PutTarget(ctx, project, wire.TargetSettings{Name: "new", Kind: wire.TargetSlack, URL: url})
			if refused := wire.IsCode(err, wire.CodeConflict); refused != (key == "") {
				t.Errorf("a new target with the key %q: %v", key, err)
			}
			w.notice(wire.Notice{Type: wire.NoticeKeyCreated})
			running, cancel := context.WithTimeout(ctx, time.Minute)
			_ = other.Run(running)
			cancel()
		}
		state := w.state(s, "hook")
		if state.Dead != 0 || state.Waiting != 2 || !strings.Contains(state.Error, "another key") {
			t.Errorf("without the key: %+v", state)
		}
	})
}
