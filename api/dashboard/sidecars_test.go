package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/webhook"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// dropped is a fleet of a sidecar and a server that dropped something today.
type dropped struct {
	wire.Sidecars
	alive bool
}

func (d dropped) Fleet(context.Context, wire.Identity) (wire.Fleet, error) {
	heartbeat := wire.Heartbeat{Name: "pod-1", DroppedToday: []wire.Drop{
		{Count: 1204, What: "log record", Why: "not about model calls"},
		{Count: 1, What: "faulty item", Why: "<x>"},
	}}
	return wire.Fleet{
		Items:        []wire.FleetSidecar{{Heartbeat: heartbeat, LastSeen: time.Now(), Alive: d.alive}},
		DroppedToday: []wire.Drop{{Count: 2, What: "metrics export", Why: "a"}},
	}, nil
}

func TestThePageOfSidecarsShowsWhatWasDroppedToday(t *testing.T) {
	s := openSite(t)
	for _, alive := range []bool{true, false} {
		s.config.Sidecars = dropped{alive: alive}
		s.d = New(s.config)
		page := s.call("ann@example.com", "GET", "/sidecars", nil).Body.String()

		// What a silent one dropped may have been on another day.
		for text, want := range map[string]bool{
			"dropped today</a>: not about model calls": alive,
			"1 faulty item <a":                         alive,
			"dropped today</a>: &lt;x&gt;":             alive,
			"This server: 2 metrics exports <a":        true,
			">online<":                                 alive,
		} {
			if strings.Contains(page, text) != want {
				t.Errorf("alive %v: the page has %q: %v", alive, text, !want)
			}
		}
	}
}

func TestASidecarInNeedIsSeen(t *testing.T) {
	const email = "ann@example.com"
	s := openSite(t)
	const badge = "in need of attention: </span>"
	if page := s.call(email, "GET", "/requests", nil).Body.String(); strings.Contains(page, badge) {
		t.Error("without a sidecar, one needs attention")
	}

	secret, key, err := s.config.Keys.CreateKey(t.Context(), wire.NewKey{
		Account: s.signed[email].User.AccountName, Name: "app", Scope: wire.ScopeApp,
	})
	if err != nil || secret == "" {
		t.Fatal(err)
	}
	id := s.as(email)
	id.KeyID = key.ID
	for _, sidecar := range []string{wire.NewID(), wire.NewID()} {
		beat := wire.Heartbeat{ID: sidecar, Name: "pod", Version: "1", StartedAt: time.Now()}
		if err := s.store.Beat(t.Context(), id, beat); err != nil {
			t.Fatal(err)
		}
		id.KeyID = "" // the second goes by another key
	}
	if page := s.call(email, "GET", "/sidecars", nil).Body.String(); strings.Contains(page, badge) ||
		strings.Count(page, "<small class=\"soft\">") != 2 || strings.Contains(page, "How to fix this") {
		t.Errorf("of two that are well:\n%s", page)
	}

	if _, err := s.config.Keys.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	page := s.call(email, "GET", "/sidecars", nil).Body.String()
	for _, want := range []string{
		"<dt>Need attention</dt><dd>1</dd>", "</b> Its key was revoked", "How to fix this", badge + "1</b>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if page := s.call(email, "GET", "/requests", nil).Body.String(); !strings.Contains(page, badge+"1</b>") {
		t.Error("the menu does not say so on another page")
	}
	if page := s.call("mallory@example.com", "GET", "/templates", nil).Body.String(); strings.Contains(page, badge) {
		t.Error("another project sees it")
	}
}

// onLoopback makes targets of a site, which may be on this machine.
func onLoopback(s *site) *webhook.Service {
	return webhook.New(webhook.Config{
		Key:     "key",
		Store:   s.store,
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Metrics: metrics.New("server", "test"),
		Logger:  quiet,
	})
}

// A target is made, tested, told of a key, and refuses; what it refused is delivered again.
func TestATargetIsToldAndTriedAgain(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	var status atomic.Int64
	status.Store(http.StatusOK)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	defer hook.Close()
	send := s.sender(ann)

	if page := s.call(ann, "GET", "/targets", nil); !says(page, "No targets yet") {
		t.Errorf("no targets:\n%s", page.Body)
	}
	wrong := send("/targets", 422, "name", "On call", "kind", "webhook", "url", "hooks")
	if !strings.Contains(wrong, `value="On call"`) || !strings.Contains(wrong, "https://") {
		t.Errorf("what is wrong:\n%s", wrong)
	}
	made := send("/targets", 200,
		"name", "on-call", "kind", "webhook", "url", hook.URL+"/t0ken", "types", "key.created")
	if !strings.Contains(made, `<code id="secret">whsec_`) || strings.Contains(made, "t0ken") {
		t.Errorf("it was made:\n%s", made)
	}
	if to := send("/targets/on-call/test", 303); to != "/targets/on-call?done=target-tested" {
		t.Errorf("a test leads to %s", to)
	}
	status.Store(http.StatusGone)
	if failed := send("/targets/on-call/test", 409); !strings.Contains(failed, "it answered 410") {
		t.Errorf("a failed test:\n%s", failed)
	}

	// The server that delivers gives up after five refusals.
	send("/keys", 200, "name", "bot", "scope", "app")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	service := onLoopback(s)
	if err := service.SpreadNotices(ctx); err != nil {
		t.Fatal(err)
	}
	page := s.call(ann, "GET", "/targets/on-call", nil)
	if !says(page, "Waiting") || !says(page, "The key bot was created") || says(page, "whsec_") {
		t.Errorf("the queue:\n%s", page.Body)
	}
	of, err := service.SealedTargets(ctx, s.as(ann))
	if err != nil || len(of) != 1 {
		t.Fatalf("%d targets, %v", len(of), err)
	}
	var last *wire.Attempt
	for range 2 {
		last, err = service.Deliver(ctx, s.as(ann).Account, "on-call", "a", last, time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if last != nil {
			last.Error, last.Dead = "it answered 410: gone", true
		}
	}
	page = s.call(ann, "GET", "/targets/on-call", nil)
	if !says(page, "it answered 410: gone") || !says(page, "Deliver all again") {
		t.Errorf("the dead letters:\n%s", page.Body)
	}
	if to := send("/targets/on-call/replay", 303); to != "/targets/on-call?done=replayed" {
		t.Errorf("a replay leads to %s", to)
	}
	send("/targets/on-call/discard", 303, "waiting", "1")
	if to := send("/targets/on-call/remove", 303); to != "/targets?done=target-removed" {
		t.Errorf("removing leads to %s", to)
	}
	if page := s.call(ann, "GET", "/targets/on-call", nil); page.Code != http.StatusNotFound {
		t.Errorf("it is there: %d", page.Code)
	}
}

// A rule is tried, saved, changed and removed; its fault is shown at its field.
func TestAnAlertIsTriedAndSaved(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	s.call(ann, "GET", "/", nil)
	send := s.sender(ann)
	if page := s.call(ann, "GET", "/alerts", nil); !says(page, "No alerts yet") {
		t.Errorf("no alerts:\n%s", page.Body)
	}

	for _, name := range []string{"ops", "on-call", "chat"} {
		send("/targets", 303, "name", name, "kind", "slack", "url", "https://hooks.example")
	}
	failures := wire.View{Name: "failures", Address: "/requests?filter=status:error"}
	if err := s.store.PutView(t.Context(), s.as(ann), failures); err != nil {
		t.Fatal(err)
	}
	rule := []string{"name", "costly", "measure", "cost", "when", "above", "threshold", "10", "by", "customer",
		"window_minutes", "60", "view", "failures", "targets", "ops", "targets", "on-call"}
	tried := send("/alerts", 200, append(rule, "try", "1")...)
	if !strings.Contains(tried, "would have fired 0 times") {
		t.Errorf("the try says %s", tried)
	}
	wrong := send("/alerts", 422, append(rule, "filter", "elephant")...)
	if !strings.Contains(wrong, "aria-invalid") {
		t.Errorf("a wrong filter is answered %s", wrong)
	}
	unknown := send("/alerts", 422, append(rule, "targets", "pager")...)
	if !strings.Contains(unknown, "there is no target pager") {
		t.Errorf("an unknown target is answered %s", unknown)
	}
	if to := send("/alerts", 303, rule...); to != "/alerts?done=alert-saved" {
		t.Errorf("saving leads to %s", to)
	}
	page := s.call(ann, "GET", "/alerts?alert=costly", nil)
	for _, want := range []string{
		"cost above $10.00 in 60 min, by customer", `<span class="badge">failures</span>`,
		`<option selected>failures</option>`, `value="ops" checked`, `value="on-call" checked`, `value="chat">`,
	} {
		if !says(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page.Body)
		}
	}
	if to := send("/alerts/costly/remove", 303); to != "/alerts?done=alert-removed" {
		t.Errorf("removing leads to %s", to)
	}
}
