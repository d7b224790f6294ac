//go:build linux

package dashboard

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// An owner makes a target, copies its secret, tries it, and sees what waits while it refuses.
func TestATargetIsSetUpAndLookedAt(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Load() {
			http.Error(w, "try later", http.StatusServiceUnavailable)
		}
	}))
	defer hook.Close()
	server := harness.Launch(t, t.TempDir(), "127.0.0.1:0", "server", "--name", "central", "--webhook-allow", "127.0.0.0/8")
	b := openSignedIn(t, server, signUp(t, server))
	source := axe(t)

	b.visit("/targets")
	b.shows("main", "No targets yet", "New target")
	b.screenshots("targets-none")
	b.fill("[name=name]", "on-call")
	b.fill("[name=url]", hook.URL+"/hook")
	b.press(".new-key .primary")
	b.shows(".once", "whsec_", "shown only once")
	b.accessible(source, "a new target")
	b.screenshots("target-made")
	b.press("[action$='/test'] .primary")
	b.shows("body", "The target took the test.")

	refuses.Store(true)
	b.press("[action$='/test'] .primary")
	b.shows(".fault", "it answered 503: try later")
	publishGreet(server)
	b.visit("/targets/on-call")
	if err := b.poll(`document.body.innerText.includes("Next attempt") || location.reload()`); err != nil {
		t.Fatal(err)
	}
	b.shows("main", "failing", "greet customers", "Discard")
	b.accessible(source, "a target that fails")
	b.faultless("a target that fails")
	b.screenshots("target")
	b.do("on a phone", chromedp.EmulateViewport(390, 900))
	b.fits("a target that fails")
	b.haveCards("a target that fails")
	b.do("on a desk", chromedp.EmulateViewport(1440, 900))
	b.visit("/targets")
	b.accessible(source, "targets")
	b.screenshots("targets")
}
